package show

import (
	"strconv"
	"strings"
	"unicode"
)

// Escape replaces every character that does not print, line breaks and tabs among them, by its Go escape, such as \x1b.
func Escape(text string) string { return escape(text, "") }

// EscapeLines is Escape for text of several lines.
func EscapeLines(text string) string { return escape(text, "\n\t") }

func escape(text, kept string) string {
	isHarmful := func(r rune) bool { return !unicode.IsPrint(r) && !strings.ContainsRune(kept, r) }
	text = strings.ToValidUTF8(text, string(unicode.ReplacementChar))
	if !strings.ContainsFunc(text, isHarmful) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if isHarmful(r) {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
