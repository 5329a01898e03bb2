package app

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"

	"github.com/hduolab/quell/controller/ssa"
)

func TestHeldBack(t *testing.T) {
	g := NewWithT(t)
	named := func(kind string, pending bool, reasons ...ssa.Reason) applied {
		return applied{child: child{kind: kind, name: "shop"}, pending: pending, Result: ssa.Result{Reasons: reasons}}
	}
	g.Expect(heldBack(nil)).To(BeNil())
	g.Expect(heldBack([]applied{named(kindDeployment, false)})).To(BeNil())
	held := heldBack([]applied{
		named(kindDeployment, true, ssa.Reason{Change: ssa.Changed, Path: ".spec.replicas"}),
		named(kindService, true),
	})
	g.Expect(held.reason).To(Equal(reasonSuspended))
	g.Expect(held.message).To(Equal(`spec.suspend holds changes back: Deployment "shop": .spec.replicas; Service "shop"`))
}

func TestStatusOfASuspendedApp(t *testing.T) {
	app := shop()
	app.Spec.Suspend = ptr.To(true)
	for name, c := range map[string]struct {
		child func(*applied)
		ready bool
	}{
		"nothing is held back": {nil, true},
		"a change is":          {func(a *applied) { a.pending = true }, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := situation{app: app, deployment: running(app), child: c.child}.status(g)
			g.Expect(string(s.Phase)).To(Equal("Suspended"))
			words := map[string]string{}
			for _, condition := range s.Conditions {
				words[condition.Type] = string(condition.Status) + " " + condition.Reason
			}
			if c.ready {
				g.Expect(words).To(HaveKeyWithValue("Ready", "True AllReplicasReady"))
				g.Expect(kstatusOf(g, app, s)).To(Equal(status.CurrentStatus))
			} else {
				g.Expect(words).To(HaveKeyWithValue("Ready", "False Suspended"))
				g.Expect(words).To(HaveKeyWithValue("Progressing", "False Suspended"))
				g.Expect(kstatusOf(g, app, s)).To(Equal(status.InProgressStatus))
			}
			g.Expect(words).NotTo(HaveKey("Stalled"))
			g.Expect(words).NotTo(HaveKey("Reconciling"))
			g.Expect(s.Children).NotTo(BeEmpty())
			g.Expect(string(s.Children[0].Ready)).To(Equal("True"), "the child does what it is for")
		})
	}
}
