package app_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kstatus "sigs.k8s.io/cli-utils/pkg/kstatus/status"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
)

var _ = Describe("kstatus", func() {
	It("gives our own verdict on every version of an App, in good and in bad rollouts", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		history := record(ctx, ns)
		wait := func(condition string) {
			GinkgoHelper()
			kubectl("wait", "--namespace="+ns, "--for="+condition, "app/shop", "--timeout=90s")
		}
		a := newApp(ns, "shop", replicas(2), unattended)

		By("creating it with Pods that nobody runs")
		create(ctx, a)
		wait("condition=Reconciling")
		By("running it")
		change(ctx, a, attended)
		wait("condition=Ready")
		converge(ctx, a)
		By("rolling out")
		change(ctx, a, func(a *quellv1alpha1.App) { a.Spec.Image = image + "1" })
		converge(ctx, a)
		By("losing a replica")
		lost := pods(ctx, ns, map[string]string{"app.kubernetes.io/name": "shop"})[0]
		setReady(ctx, lost, "False")
		eventuallyPhase(ctx, a, quellv1alpha1.PhaseDegraded)
		setReady(ctx, lost, "True")
		converge(ctx, a)
		By("missing the deadline")
		change(ctx, a, func(a *quellv1alpha1.App) {
			unattended(&a.Spec)
			a.Spec.ProgressDeadlineSeconds = 1
		})
		wait("condition=Stalled")
		change(ctx, a, attended)
		converge(ctx, a)
		By("being refused")
		change(ctx, a, func(a *quellv1alpha1.App) {
			a.Spec.Ports = append(a.Spec.Ports, quellv1alpha1.AppPort{Name: "admin", ContainerPort: 9090})
			a.Spec.Service = &quellv1alpha1.AppService{Ports: []quellv1alpha1.AppServicePort{{Name: "http", Port: 80}, {Name: "admin", Port: 80}}}
		})
		wait("condition=Stalled")
		change(ctx, a, func(a *quellv1alpha1.App) { a.Spec.Service = nil })
		converge(ctx, a)
		By("suspending it with and without a change")
		change(ctx, a, func(a *quellv1alpha1.App) {
			a.Spec.Suspend, a.Spec.Image = new(bool), image+"2"
			*a.Spec.Suspend = true
		})
		wait("jsonpath={.status.phase}=Suspended")
		Expect(isReady(a)).To(BeFalse())
		change(ctx, a, func(a *quellv1alpha1.App) { a.Spec.Image = image + "1" })
		wait("condition=Ready")
		change(ctx, a, func(a *quellv1alpha1.App) { *a.Spec.Suspend = false })
		converge(ctx, a)
		By("deleting it")
		change(ctx, a, func(a *quellv1alpha1.App) { a.Finalizers = []string{"example.com/hold"} })
		Expect(admin.Delete(ctx, a)).To(Succeed())
		wait("jsonpath={.status.phase}=Terminating")
		change(ctx, a, func(a *quellv1alpha1.App) { a.Finalizers = nil })
		kubectl("wait", "--namespace="+ns, "--for=delete", "app/shop", "--timeout=90s")

		history.stop()
		expectSameVerdicts(history.apps)
	})
})

// unattended gives the Pods to a scheduler that does not exist, so that no kubelet runs them.
func unattended(s *quellv1alpha1.AppSpec) {
	s.PodTemplate = &runtime.RawExtension{Raw: []byte(`{"spec":{"schedulerName":"nobody"}}`)}
}

func attended(a *quellv1alpha1.App) { a.Spec.PodTemplate = nil }

// expectSameVerdicts compares kstatus with what each version says by itself, and wants every verdict and phase to occur.
func expectSameVerdicts(versions []*quellv1alpha1.App) {
	GinkgoHelper()
	Expect(versions).NotTo(BeEmpty())
	Expect(kstatusOf(versions[0])).To(Equal(kstatus.InProgressStatus), "a new App, of which nothing is known yet, is not done")
	verdicts, phases := map[kstatus.Status]int{}, map[quellv1alpha1.AppPhase]int{}
	for _, v := range versions {
		Expect(kstatusOf(v)).To(Equal(verdict(v)), "phase %s at resourceVersion %s: %+v", v.Status.Phase, v.ResourceVersion, v.Status)
		verdicts[verdict(v)]++
		phases[v.Status.Phase]++
	}
	AddReportEntry("versions", map[string]any{"verdicts": verdicts, "phases": phases})
	for _, s := range []kstatus.Status{kstatus.InProgressStatus, kstatus.CurrentStatus, kstatus.FailedStatus, kstatus.TerminatingStatus} {
		Expect(verdicts).To(HaveKey(s))
	}
	for _, p := range []quellv1alpha1.AppPhase{
		quellv1alpha1.PhaseProgressing, quellv1alpha1.PhaseRunning, quellv1alpha1.PhaseDegraded, quellv1alpha1.PhaseFailed,
		quellv1alpha1.PhaseSuspended, quellv1alpha1.PhaseTerminating,
	} {
		Expect(phases).To(HaveKey(p))
	}
}

// verdict is what an App says of itself, in the words of kstatus.
func verdict(a *quellv1alpha1.App) kstatus.Status {
	switch {
	case a.DeletionTimestamp != nil:
		return kstatus.TerminatingStatus
	case a.Status.ObservedGeneration != a.Generation:
		return kstatus.InProgressStatus
	case a.Status.Phase == quellv1alpha1.PhaseFailed:
		return kstatus.FailedStatus
	case a.Status.Phase == quellv1alpha1.PhaseRunning, a.Status.Phase == quellv1alpha1.PhaseSuspended && isReady(a):
		return kstatus.CurrentStatus
	}
	return kstatus.InProgressStatus
}

// kstatusOf is what kstatus, and with it Argo CD, Flux and kpt, makes of an App.
func kstatusOf(a *quellv1alpha1.App) kstatus.Status {
	GinkgoHelper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(a)
	Expect(err).NotTo(HaveOccurred())
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(quellv1alpha1.SchemeGroupVersion.WithKind("App"))
	result, err := kstatus.Compute(u)
	Expect(err).NotTo(HaveOccurred())
	return result.Status
}
