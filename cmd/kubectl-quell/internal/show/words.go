package show

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

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
func Value(v any, found bool) string { return Values(Compared{v, found})[0] }

// Compared is a value, or none, that is shown beside others.
type Compared struct {
	Value any
	Found bool
}

// Values writes values of one field as Value does. Long ones which begin alike are shown from shortly before where they differ.
func Values(values ...Compared) []string {
	var texts [][]rune
	for _, v := range values {
		if v.Found {
			texts = append(texts, []rune(Escape(Exact(v.Value))))
		}
	}
	from := beginning(texts)
	cells := make([]string, len(values))
	for i, v := range values {
		if cells[i] = "<absent>"; v.Found {
			cells[i], texts = cut(texts[0], from), texts[1:]
		}
	}
	return cells
}

// beginning is from where on texts are shown: from their beginning, unless that is alike and leaves no room for what is not.
func beginning(texts [][]rune) int {
	const context = maxValue / 3
	var alike []rune
	longest := 0
	for _, text := range texts {
		alike, longest = common(alike, text), max(longest, len(text))
	}
	if longest <= maxValue || len(alike) == longest || len(alike) <= 2*context {
		return 0
	}
	return len(alike) - context
}

// common is how two texts begin alike; nil stands for any text.
func common(a, b []rune) []rune {
	if a == nil {
		return b
	}
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return a[:n]
}

// cut leaves of a text what a cell shows from a place on.
func cut(text []rune, from int) string {
	const more = "..."
	before, after := "", ""
	if from > 0 {
		before = more
	}
	if len(text)-from > maxValue {
		text, after = text[:from+maxValue], more
	}
	return before + string(text[from:]) + after
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
