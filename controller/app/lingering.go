package app

import (
	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/controller/ssa"
	"k8s.io/apimachinery/pkg/api/meta"
)

// troubles are the conditions that are absent while there is nothing to tell.
var troubles = []string{quellv1alpha1.ConditionFieldConflict, quellv1alpha1.ConditionReconciling, quellv1alpha1.ConditionStalled}

// reasonOver is that of a condition that is False instead of absent.
const reasonOver = "Over"

// over is what a trouble that lingers says.
var over = finding{reasonOver, "this is over; the condition stays because another field manager owns it too"}

// lingering are the troubles of an App's status that would stay as they are when the operator leaves them out, since somebody else
// owns them too: a person wrote to them, or managedFields were wiped and the API server books them on "before-first-apply". They
// have to be denied in words: kstatus takes an App for failed whose Stalled is True, whoever says so.
func lingering(app *quellv1alpha1.App) []string {
	var found []string
	for _, kind := range troubles {
		if meta.FindStatusCondition(app.Status.Conditions, kind) != nil && ssa.IsSharedCondition(app, statusManager, kind) {
			found = append(found, kind)
		}
	}
	return found
}
