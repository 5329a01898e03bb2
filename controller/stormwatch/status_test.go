package stormwatch

import (
	"testing"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/controller/storm/live"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestNoCharacterIsCutInTwo(t *testing.T) {
	for length, want := range []string{"", "a", "a", "aé", "aé", "aé", "aé…", "aé…"} {
		if got := bounded("aé…", length); got != want {
			t.Errorf("cut to %d bytes it is %q, want %q", length, got, want)
		}
	}
	if names := add(nil, []string{"é", "ab"}, 1); len(names) != 1 || names[0] != "a" {
		t.Errorf("names are %q", names)
	}
}

// What somebody else owns too is denied in words, since it would not go away.
func TestStalledIsDeniedWhereItWouldStay(t *testing.T) {
	const stalled = `{"f:status":{"f:conditions":{"k:{\"type\":\"Stalled\"}":{".":{},"f:type":{},"f:status":{}}}}}`
	for _, c := range []struct {
		name, manager string
		isFailing     bool
		want          metav1.ConditionStatus
	}{
		{"ours alone", statusManager, false, ""},
		{"after managedFields were wiped", "before-first-apply", false, metav1.ConditionFalse},
		{"while it is so", "before-first-apply", true, metav1.ConditionTrue},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := simulate(t)
			s.watch.ManagedFields = []metav1.ManagedFieldsEntry{{
				Manager: c.manager, Operation: metav1.ManagedFieldsOperationApply, Subresource: "status",
				FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(stalled),
			}}
			s.watch.Status.Conditions = append(s.watch.Status.Conditions, metav1.Condition{Type: "Stalled", Status: metav1.ConditionTrue, Reason: "Forbidden"})
			if c.isFailing {
				s.watches = append(s.watches, watchOf("gadgets", live.Forbidden))
			}
			_, status, _ := decide(s.memory, observed{watch: s.watch, terms: s.terms, watches: s.watches, isDiscovered: true, now: s.now})
			var got metav1.ConditionStatus
			if stalled := meta.FindStatusCondition(status.Conditions, quellv1alpha1.ConditionStalled); stalled != nil {
				got = stalled.Status
			}
			if got != c.want {
				t.Errorf("Stalled is %q, want %q", got, c.want)
			}
		})
	}
}
