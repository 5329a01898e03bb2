package show

import "strings"

// ShellWord quotes text so that a POSIX shell takes it for one word, as it stands. Names of others must not become commands
// when a line that was printed is copied.
func ShellWord(text string) string {
	isPlain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./:@%+=,", r)
	}
	if text != "" && !strings.ContainsFunc(text, func(r rune) bool { return !isPlain(r) }) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// ListItem writes text as one item of a flag that takes a list with commas.
func ListItem(text string) string {
	if !strings.ContainsAny(text, "\",\n\r") {
		return text
	}
	return `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
}
