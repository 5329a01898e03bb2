package report

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/hduolab/quell/test/bench/figures"
)

const (
	quell = "quell"
	none  = "-"
)

// number leaves three digits.
func number(v float64) string {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return none
	case math.Abs(v) >= 100 || v == math.Trunc(v):
		return whole(v)
	}
	return strconv.FormatFloat(v, 'f', int(max(0, 2-math.Floor(math.Log10(math.Abs(v))))), 64)
}

// whole groups digits by commas.
func whole(v float64) string {
	text := strconv.FormatFloat(math.Abs(v), 'f', 0, 64)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	if math.Round(v) < 0 {
		return "-" + text
	}
	return text
}

// times is how many times as much one is as the other.
func times(v, base float64) string {
	if base == 0 {
		return none
	}
	return number(v/base) + " x"
}

// cell keeps a text in the cell of a table.
func cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", `\|`)
}

func mebibytes(v int64) float64 { return float64(v) / (1 << 20) }

// machine says where a run was made.
func machine(m figures.Machine) string {
	const gib = 1 << 30
	var modules []string
	for _, name := range slices.Sorted(maps.Keys(m.Modules)) {
		modules = append(modules, name+" "+m.Modules[name])
	}
	return fmt.Sprintf("Measured on %s: %s, %d cores, %s GiB, %s, %s; %s.", m.Date, m.Processor, m.Cores, number(float64(m.Memory)/gib), m.OS, m.Go,
		strings.Join(modules, ", "))
}
