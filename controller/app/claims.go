package app

import "github.com/hduolab/quell/controller/ssa"

// claim is a thing that a field of the App makes.
type claim struct{ by, thing string }

// distinct refuses two claims of one thing with an ssa.InvalidContentError that names both and the remedy.
func distinct(claims []claim, remedy string) error {
	by := map[string]string{}
	for _, c := range claims {
		if other, found := by[c.thing]; found {
			return ssa.Invalid("%s and %s would both be %s: %s", other, c.by, c.thing, remedy)
		}
		by[c.thing] = c.by
	}
	return nil
}
