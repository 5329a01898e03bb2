package show

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
)

// Times says how the time of a managedFields entry is written.
type Times string

// The ways to write a time.
const (
	Relative Times = "relative"
	Absolute Times = "absolute"
	NoTimes  Times = "none"
)

// UnknownTime stands for a time that is not recorded, as in kubectl's tables.
const UnknownTime = "<unknown>"

// Known is Format with UnknownTime for an entry without a time, for columns that have nothing else.
func (t Times) Known(when *metav1.Time, now time.Time) string {
	if text := t.Format(when, now); text != "" {
		return text
	}
	return UnknownTime
}

// Format writes a time; "" for an entry without one, and always with NoTimes.
func (t Times) Format(when *metav1.Time, now time.Time) string {
	switch {
	case when == nil || when.IsZero() || t == NoTimes:
		return ""
	case t == Absolute:
		return when.UTC().Format(time.RFC3339)
	}
	return duration.HumanDuration(now.Sub(when.Time))
}

// maxValue is how many characters of a value a table cell shows.
const maxValue = 60

// Value writes a value of an object as one short line of JSON; absent is written as <absent>.
func Value(v any, found bool) string {
	if !found {
		return "<absent>"
	}
	text := Escape(Exact(v))
	if utf8.RuneCountInString(text) > maxValue {
		return string([]rune(text)[:maxValue]) + "..."
	}
	return text
}

// Count writes a number with its noun, in the plural unless it is 1.
func Count(n int, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "y"):
		return fmt.Sprintf("%d %sies", n, strings.TrimSuffix(noun, "y"))
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Exact writes a value as JSON, for comparisons.
func Exact(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(raw)
}
