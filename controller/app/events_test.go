package app

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/tools/events"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	quellv1alpha1ac "github.com/hduolab/quell/applyconfig/quell/v1alpha1"
)

func TestTransitionsAreTold(t *testing.T) {
	type condition struct {
		kind   string
		status metav1.ConditionStatus
		reason string
	}
	const conflict = quellv1alpha1.ConditionFieldConflict
	for name, c := range map[string]struct {
		before, after []condition
		want          []string
	}{
		"becomes Ready":        {[]condition{{"Ready", "False", "RollingOut"}}, []condition{{"Ready", "True", "AllReplicasReady"}}, []string{"Normal Ready in words"}},
		"stays Ready":          {[]condition{{"Ready", "True", "AllReplicasReady"}}, []condition{{"Ready", "True", "AllReplicasReady"}}, nil},
		"is no longer Ready":   {[]condition{{"Ready", "True", "AllReplicasReady"}}, []condition{{"Ready", "False", "RollingOut"}}, nil},
		"is Stalled":           {nil, []condition{{"Stalled", "True", "ImagePullFailed"}}, []string{"Warning ImagePullFailed in words"}},
		"is Stalled otherwise": {[]condition{{"Stalled", "True", "Rejected"}}, []condition{{"Stalled", "True", "Forbidden"}}, []string{"Warning Forbidden in words"}},
		"is fought over":       {nil, []condition{{"Reconciling", "True", reasonContended}}, []string{"Warning FieldContended in words"}},
		"is rolled out":        {nil, []condition{{"Reconciling", "True", reasonRollingOut}, {"Progressing", "True", reasonRollingOut}}, nil},
		"a conflict begins":    {nil, []condition{{conflict, "True", "Yielded"}}, []string{"Warning FieldConflict in words"}},
		"a conflict goes on":   {[]condition{{conflict, "True", "Yielded"}}, []condition{{conflict, "True", "Yielded"}}, nil},
		"a conflict ends":      {[]condition{{conflict, "True", "Yielded"}}, []condition{{"Ready", "False", "RollingOut"}}, []string{"Normal FieldConflictEnded nobody else owns fields that the App sets any more"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			app, written := shop(), quellv1alpha1ac.AppStatus()
			for _, b := range c.before {
				meta.SetStatusCondition(&app.Status.Conditions, metav1.Condition{Type: b.kind, Status: b.status, Reason: b.reason})
			}
			for _, a := range c.after {
				written.WithConditions(metav1ac.Condition().WithType(a.kind).WithStatus(a.status).WithReason(a.reason).WithMessage("in words"))
			}
			recorder := events.NewFakeRecorder(10)
			(&Reconciler{Options: Options{Events: recorder}}).tell(app, written)
			close(recorder.Events)
			var told []string
			for e := range recorder.Events {
				told = append(told, e)
			}
			g.Expect(told).To(Equal(c.want))
		})
	}
}

func TestAConflictOfAnAppThatIsBeingDeletedDoesNotEnd(t *testing.T) {
	app := shop(deleted)
	meta.SetStatusCondition(&app.Status.Conditions, metav1.Condition{Type: quellv1alpha1.ConditionFieldConflict, Status: metav1.ConditionTrue, Reason: reasonYielded})
	recorder := events.NewFakeRecorder(10)
	(&Reconciler{Options: Options{Events: recorder}}).tell(app, quellv1alpha1ac.AppStatus())
	NewWithT(t).Expect(recorder.Events).To(BeEmpty())
}
