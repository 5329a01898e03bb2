package storm

import (
	"encoding/json"
	"fmt"
	"hash/maphash"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// step says how a field went from one value to the next.
type step int

const (
	stepOther   step = iota
	stepTime         // a time became another time
	stepUp           // a number grew
	stepDown         // a number fell
	stepText         // a text differs in a number, an id or a duration only
	stepOrder        // the same items in another order
	stepAdded        // the field was not there before
	stepRemoved      // the field is not there any more
	stepLonger       // a list or text begins as before and goes on
	stepTaken        // only the owner is known to have changed
)

// stepOf compares two values that differ.
func stepOf(before, after any) step {
	if isTime(before) && isTime(after) {
		return stepTime
	}
	was, wasNumber := number(before)
	is, isNumber := number(after)
	if wasNumber && isNumber {
		if is > was {
			return stepUp
		}
		return stepDown
	}
	old, wasText := before.(string)
	text, isText := after.(string)
	switch {
	case !wasText || !isText:
		return stepOther
	case old != "" && len(text) > len(old) && strings.HasPrefix(text, old):
		return stepLonger
	case isVolatile(old, text):
		return stepText
	}
	return stepOther
}

func isTime(v any) bool {
	text, isText := v.(string)
	if !isText {
		return false
	}
	_, err := time.Parse(time.RFC3339Nano, text)
	return err == nil
}

// number reads numbers, and texts that are whole numbers, such as a resourceVersion.
func number(v any) (float64, bool) {
	switch n := v.(type) {
	case int64:
		return float64(n), true
	case int:
		return float64(n), true
	case float64:
		return n, true
	case json.Number:
		f, err := n.Float64()
		return f, err == nil
	case string:
		i, err := strconv.ParseInt(n, 10, 64)
		return float64(i), err == nil
	}
	return 0, false
}

// changing are the parts of a text that differ each time: times, uids, hexadecimal ids, generated names, durations, numbers.
var changing = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ][\d:.]+(Z|[+-]\d\d:?\d\d)?` +
	`|[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}` +
	`|\b[0-9a-fA-F]*[0-9][0-9a-fA-F]{5,}\b|\b[bcdfghjklmnpqrstvwxz2456789]{5}\b|(\d+(\.\d+)?(ns|us|µs|ms|h|m|s))+|\d+`)

// isVolatile reports whether two texts are the same but for such parts.
func isVolatile(before, after string) bool {
	return changing.ReplaceAllString(before, "#") == changing.ReplaceAllString(after, "#")
}

// shownRunes is how much of a value is kept to be shown.
const shownRunes = 48

// shown is a value in short, with a digest by which equal values are known.
type shown struct {
	text   string
	digest uint64
}

var seed = maphash.MakeSeed()

func show(v any, isHidden bool) shown {
	raw, err := json.Marshal(v)
	if err != nil {
		raw = fmt.Append(nil, v)
	}
	s := shown{text: string(raw), digest: maphash.Bytes(seed, raw)}
	if isHidden {
		s.text = "<hidden>"
	} else if utf8.RuneCountInString(s.text) > shownRunes {
		s.text = string([]rune(s.text)[:shownRunes]) + "..."
	}
	return s
}

var absent = shown{text: "<absent>"}
