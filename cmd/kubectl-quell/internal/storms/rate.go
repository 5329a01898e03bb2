package storms

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// Rate is a flag with a number per second, written 2, 2/s or 120/m.
type Rate float64

// String is the flag's value.
func (r *Rate) String() string { return strconv.FormatFloat(float64(*r), 'g', 3, 64) + "/s" }

// Type names the kind of value in help texts.
func (r *Rate) Type() string { return "rate" }

// Set reads the flag.
func (r *Rate) Set(text string) error {
	number, unit, _ := strings.Cut(text, "/")
	seconds := map[string]float64{"": 1, "s": 1, "m": 60, "h": 3600}[unit]
	value, err := strconv.ParseFloat(number, 64)
	if err != nil || seconds == 0 || value <= 0 || math.IsInf(value, 0) || math.IsNaN(value) {
		return errors.New("must be a number greater than 0, with /s, /m or /h")
	}
	*r = Rate(value / seconds)
	return nil
}
