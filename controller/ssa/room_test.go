package ssa

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestWhatWasInTheWayHidesNoRemovalOfAFieldWhoseNameBeginsAlike(t *testing.T) {
	c := &call{record: &record{room: []Reason{{Change: InTheWay, Path: ".spec.free"}}}}
	c.result.Reasons = []Reason{{Change: Removed, Path: ".spec.free.part"}, {Change: Removed, Path: ".spec.freed"}}
	c.tellRoom()
	NewWithT(t).Expect(c.result.Reasons).To(ConsistOf(
		Reason{Change: InTheWay, Path: ".spec.free"}, Reason{Change: Removed, Path: ".spec.freed"},
	))
}
