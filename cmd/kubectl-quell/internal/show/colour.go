package show

import (
	"fmt"
	"hash/fnv"
)

// Palette colours text for a terminal, or leaves it as it is.
type Palette bool

// hues are the terminal's 256-colour numbers that read well on dark and light grounds.
var hues = [...]int{33, 36, 64, 69, 97, 98, 103, 125, 130, 133, 136, 161, 166, 172, 37, 31}

// Of colours text in the colour of a name, the same one in every run.
func (p Palette) Of(name, text string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return p.wrap(fmt.Sprintf("38;5;%d", hues[h.Sum32()%uint32(len(hues))]), text)
}

// Warn colours what wants attention.
func (p Palette) Warn(text string) string { return p.wrap("31", text) }

// Dim colours what is there for completeness.
func (p Palette) Dim(text string) string { return p.wrap("2", text) }

func (p Palette) wrap(code, text string) string {
	if !p || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}
