package app_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/test/localcluster"
)

const (
	imagePath = `.spec.template.spec.containers[name="app"].image`
	theirs    = "registry.example.com/team/shop:theirs"
)

func ruledBy(mode quellv1alpha1.ConflictMode, rules ...quellv1alpha1.ConflictRule) func(*quellv1alpha1.AppSpec) {
	return func(s *quellv1alpha1.AppSpec) {
		s.ConflictPolicy = &quellv1alpha1.ConflictPolicy{Mode: mode, Rules: rules}
	}
}

func setPolicy(ctx context.Context, a *quellv1alpha1.App, mode quellv1alpha1.ConflictMode) {
	GinkgoHelper()
	change(ctx, a, func(a *quellv1alpha1.App) { ruledBy(mode)(&a.Spec) })
}

// kubectlEdit edits an object as a person would whose editor replaces text by a sed script.
func kubectlEdit(namespace, object, script string) {
	GinkgoHelper()
	cmd := kubectlCommand(cluster.Kubeconfig(), "-n", namespace, "edit", object)
	cmd.Env = append(os.Environ(), "KUBE_EDITOR=sed -i -e '"+script+"'")
	out, err := cmd.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
	Expect(string(out)).To(ContainSubstring("edited"))
}

func kubectlApply(manifest string, args ...string) *exec.Cmd {
	cmd := kubectlCommand(cluster.Kubeconfig(), append([]string{"apply", "--server-side", "-f", "-"}, args...)...)
	cmd.Stdin = bytes.NewBufferString(manifest)
	return cmd
}

// imageOf is a manifest of an App's Deployment that says nothing but the image.
func imageOf(namespace, name, image string) string {
	return fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: %q, namespace: %q}, spec: {template: {spec: {containers: [{name: app, image: %q}]}}}}`, name, namespace, image)
}

func deployedImage(ctx context.Context, g Gomega, a *quellv1alpha1.App) string {
	return deployment(ctx, g, a).Spec.Template.Spec.Containers[0].Image
}

// conflictWith matches an entry of status.conflicts.
func conflictWith(kind, path string, mode quellv1alpha1.ConflictMode, manager string, operation metav1.ManagedFieldsOperationType, subresource string) gomegatypes.GomegaMatcher {
	return And(
		HaveField("Kind", kind), HaveField("Path", path), HaveField("Mode", mode), HaveField("Manager", manager),
		HaveField("Operation", operation), HaveField("Subresource", subresource), HaveField("Since.IsZero()", false),
	)
}

// eventuallyConflicts waits until status.conflicts are these, and condition FieldConflict says so or is gone.
func eventuallyConflicts(ctx context.Context, a *quellv1alpha1.App, reason string, conflicts ...any) quellv1alpha1.AppStatus {
	GinkgoHelper()
	var s quellv1alpha1.AppStatus
	Eventually(ctx, func(g Gomega) {
		s = status(ctx, g, a)
		g.Expect(s.ObservedGeneration).To(Equal(a.Generation))
		g.Expect(s.Conflicts).To(ConsistOf(conflicts...), "%+v", s.Conditions)
		c := meta.FindStatusCondition(s.Conditions, quellv1alpha1.ConditionFieldConflict)
		if reason == "" {
			g.Expect(c).To(BeNil())
			return
		}
		g.Expect(c).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", reason)))
		for _, conflict := range s.Conflicts {
			g.Expect(c.Message).To(And(ContainSubstring(conflict.Path), ContainSubstring(conflict.Manager)))
		}
	}).Should(Succeed())
	return s
}

// expectNoApply wants no write for an App that is Ready while a person keeps waking the operator.
func expectNoApply(ctx context.Context, a *quellv1alpha1.App) {
	GinkgoHelper()
	converge(ctx, a)
	awaitIdle(ctx)
	since, before := mark(), status(ctx, Default, a)
	for range 2 {
		touch(ctx, a)
		awaitIdle(ctx)
	}
	ofApp := func(r localcluster.Request) bool { return r.Name == a.Name }
	Expect(count(manager.writes(since, a.Namespace), ofApp)).To(BeZero())
	Expect(status(ctx, Default, a)).To(Equal(before))
}

var _ = Describe("conflictPolicy", func() {
	DescribeTable("rules what somebody else sets", func(ctx SpecContext, strike func(ns, name string), path string, see func(Gomega, *appsv1.Deployment) bool,
		by string, operation metav1.ManagedFieldsOperationType, subresource string) {
		ns := newNamespace(ctx)
		force, yield, report := create(ctx, newApp(ns, "force")), create(ctx, newApp(ns, "yield", ruledBy(quellv1alpha1.ConflictYield))), create(ctx, newApp(ns, "report", ruledBy(quellv1alpha1.ConflictReport)))
		apps := []*quellv1alpha1.App{force, yield, report}
		for _, a := range apps {
			converge(ctx, a)
		}
		start := mark()
		for _, a := range apps {
			strike(ns, a.Name)
		}

		By("Force taking it back, and telling whose it was")
		Eventually(ctx, func(g Gomega) {
			g.Expect(see(g, deployment(ctx, g, force))).To(BeFalse())
			events := eventsOf(ctx, g, force, "FieldTakenBack")
			g.Expect(events).To(HaveLen(1))
			g.Expect(events[0].Note).To(And(ContainSubstring(path), ContainSubstring(by)))
		}).Should(Succeed())
		converge(ctx, force)
		eventuallyConflicts(ctx, force, "")

		By("Yield letting it stand, and being Ready with it")
		s := eventuallyConflicts(ctx, yield, "Yielded", conflictWith("Deployment", path, quellv1alpha1.ConflictYield, by, operation, subresource))
		converge(ctx, yield)
		Expect(status(ctx, Default, yield).Conflicts).To(Equal(s.Conflicts))
		Expect(meta.IsStatusConditionTrue(s.Conditions, quellv1alpha1.ConditionStalled)).To(BeFalse())
		Expect(see(Default, deployment(ctx, Default, yield))).To(BeTrue())
		Eventually(ctx, func(g Gomega) { g.Expect(eventsOf(ctx, g, yield, "FieldConflict")).To(HaveLen(1)) }).Should(Succeed())

		By("Report leaving the Deployment alone, and calling for a person")
		eventuallyConflicts(ctx, report, "Reported", conflictWith("Deployment", path, quellv1alpha1.ConflictReport, by, operation, subresource))
		Expect(eventuallyCondition(ctx, report, quellv1alpha1.ConditionStalled, "FieldConflict")).To(And(ContainSubstring(path), ContainSubstring(by)))
		Expect(see(Default, deployment(ctx, Default, report))).To(BeTrue())

		writes := manager.writes(start, ns)
		for _, a := range apps {
			Expect(applies(writes, a.Name)).To(Equal(map[string]int{"force": 1}[a.Name]), a.Name)
		}
		expectNoApply(ctx, yield)
	},
		Entry("with kubectl edit", func(ns, name string) {
			kubectlEdit(ns, "deployment/"+name, "s|shop:1|shop:theirs|")
		}, imagePath, hasTheirImage, "kubectl-edit", metav1.ManagedFieldsOperationUpdate, ""),
		Entry("with kubectl set image", func(ns, name string) {
			kubectl("-n", ns, "set", "image", "deployment/"+name, "app="+theirs)
		}, imagePath, hasTheirImage, "kubectl-set", metav1.ManagedFieldsOperationUpdate, ""),
		Entry("with kubectl scale", func(ns, name string) {
			kubectl("-n", ns, "scale", "deployment/"+name, "--replicas=3")
		}, ".spec.replicas", func(_ Gomega, d *appsv1.Deployment) bool { return *d.Spec.Replicas == 3 }, "kubectl", metav1.ManagedFieldsOperationUpdate, "scale"),
		Entry("with kubectl apply --server-side --force-conflicts", func(ns, name string) {
			out, err := kubectlApply(imageOf(ns, name, theirs), "--force-conflicts").CombinedOutput()
			Expect(err).NotTo(HaveOccurred(), string(out))
		}, imagePath, hasTheirImage, "kubectl", metav1.ManagedFieldsOperationApply, ""),
	)

	It("rules a scale to zero too, of which the API server does not know who did it", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		force, yield, report := create(ctx, newApp(ns, "force")), create(ctx, newApp(ns, "yield", ruledBy(quellv1alpha1.ConflictYield))), create(ctx, newApp(ns, "report", ruledBy(quellv1alpha1.ConflictReport)))
		for _, a := range []*quellv1alpha1.App{force, yield, report} {
			converge(ctx, a)
			kubectl("-n", ns, "scale", "deployment/"+a.Name, "--replicas=0")
		}
		Eventually(ctx, func(g Gomega) { g.Expect(*deployment(ctx, g, force).Spec.Replicas).To(BeEquivalentTo(1)) }).Should(Succeed())
		eventuallyConflicts(ctx, yield, "Yielded", conflictWith("Deployment", ".spec.replicas", quellv1alpha1.ConflictYield, "", "", ""))
		eventuallyConflicts(ctx, report, "Reported", conflictWith("Deployment", ".spec.replicas", quellv1alpha1.ConflictReport, "", "", ""))
		Expect(eventuallyCondition(ctx, report, quellv1alpha1.ConditionStalled, "FieldConflict")).To(ContainSubstring(".spec.replicas belongs to an unknown writer"))
		expectNoApply(ctx, yield)
		for _, a := range []*quellv1alpha1.App{yield, report} {
			Expect(*deployment(ctx, Default, a).Spec.Replicas).To(BeZero())
		}
		setPolicy(ctx, yield, quellv1alpha1.ConflictForce)
		converge(ctx, yield)
		Expect(*deployment(ctx, Default, yield).Spec.Replicas).To(BeEquivalentTo(1))
	})

	It("does not matter to kubectl apply --server-side without force, which is refused, or owns the same value too", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		a := createReady(ctx, newApp(ns, "shop", ruledBy(quellv1alpha1.ConflictYield)))
		start := mark()
		out, err := kubectlApply(imageOf(ns, "shop", theirs)).CombinedOutput()
		Expect(err).To(HaveOccurred())
		Expect(string(out)).To(And(ContainSubstring("quell-app"), ContainSubstring(imagePath)))
		out, err = kubectlApply(imageOf(ns, "shop", image)).CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(out))
		awaitIdle(ctx)
		Expect(manager.writes(start, ns)).To(BeEmpty())
		Expect(status(ctx, Default, a).Conflicts).To(BeEmpty())

		By("wanting another image than the other owner, and getting it once that one has let go")
		change(ctx, a, func(a *quellv1alpha1.App) { a.Spec.Image = "registry.example.com/team/shop:2" })
		eventuallyConflicts(ctx, a, "Yielded", conflictWith("Deployment", imagePath, quellv1alpha1.ConflictYield, "kubectl", metav1.ManagedFieldsOperationApply, ""))
		Expect(deployedImage(ctx, Default, a)).To(Equal(image))
		release := fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: shop, namespace: %q, labels: {held: "no"}}}`, ns)
		rest := `{apiVersion: apps/v1, kind: Deployment, metadata: {name: shop, namespace: ` + ns + `}, spec: {template: {spec: {containers: [{name: app, image: "registry.example.com/team/shop:2"}]}}}}`
		out, err = kubectlApply(rest).CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(out))
		eventuallyConflicts(ctx, a, "")
		out, err = kubectlApply(release).CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(out))
		converge(ctx, a)
		Expect(deployedImage(ctx, Default, a)).To(HaveSuffix(":2"))
		Eventually(ctx, func(g Gomega) { g.Expect(eventsOf(ctx, g, a, "FieldConflictEnded")).To(HaveLen(1)) }).Should(Succeed())
	})

	It("may change while a conflict stands, and leaves conditions of others alone", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		a := createReady(ctx, newApp(ns, "shop", ruledBy(quellv1alpha1.ConflictYield)))
		overwriteStatus(ctx, a, func(s *quellv1alpha1.AppStatus) {
			meta.SetStatusCondition(&s.Conditions, metav1.Condition{Type: "example.com/Audited", Status: metav1.ConditionTrue, Reason: "Yes"})
		})
		kubectl("-n", ns, "set", "image", "deployment/shop", "app="+theirs)
		by := func(mode quellv1alpha1.ConflictMode) any {
			return conflictWith("Deployment", imagePath, mode, "kubectl-set", metav1.ManagedFieldsOperationUpdate, "")
		}
		since := eventuallyConflicts(ctx, a, "Yielded", by(quellv1alpha1.ConflictYield)).Conflicts[0].Since
		setPolicy(ctx, a, quellv1alpha1.ConflictReport)
		s := eventuallyConflicts(ctx, a, "Reported", by(quellv1alpha1.ConflictReport))
		Expect(s.Conflicts[0].Since).To(Equal(since))
		Expect(meta.IsStatusConditionTrue(s.Conditions, quellv1alpha1.ConditionStalled)).To(BeTrue())
		setPolicy(ctx, a, quellv1alpha1.ConflictYield)
		s = eventuallyConflicts(ctx, a, "Yielded", by(quellv1alpha1.ConflictYield))
		Expect(s.Conflicts[0].Since).To(Equal(since))
		Expect(deployedImage(ctx, Default, a)).To(Equal(theirs))
		converge(ctx, a)

		By("restarting, with the conflict as it stands")
		start := mark()
		manager.restart()
		touch(ctx, a)
		awaitIdle(ctx)
		Expect(manager.writes(start, ns)).To(BeEmpty())
		Expect(status(ctx, Default, a).Conflicts).To(Equal(s.Conflicts))

		setPolicy(ctx, a, quellv1alpha1.ConflictForce)
		s = eventuallyConflicts(ctx, a, "")
		converge(ctx, a)
		Expect(deployedImage(ctx, Default, a)).To(Equal(image))
		setPolicy(ctx, a, quellv1alpha1.ConflictYield)
		converge(ctx, a)
		Expect(applies(manager.writes(start, ns), "shop")).To(Equal(1))
		Expect(meta.IsStatusConditionTrue(status(ctx, Default, a).Conditions, "example.com/Audited")).To(BeTrue())
	})

	It("has rules for single fields", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		a := createReady(ctx, newApp(ns, "shop", ruledBy(quellv1alpha1.ConflictForce,
			quellv1alpha1.ConflictRule{Kind: "Deployment", Path: ".spec.replicas", Mode: quellv1alpha1.ConflictYield},
			quellv1alpha1.ConflictRule{Kind: "Service", Path: ".spec.selector", Mode: quellv1alpha1.ConflictReport})))
		kubectlEdit(ns, "deployment/shop", "s|shop:1|shop:theirs|;s|replicas: 1|replicas: 2|")
		eventuallyConflicts(ctx, a, "Yielded", conflictWith("Deployment", ".spec.replicas", quellv1alpha1.ConflictYield, "kubectl-edit", metav1.ManagedFieldsOperationUpdate, ""))
		converge(ctx, a)
		d := deployment(ctx, Default, a)
		Expect(*d.Spec.Replicas).To(BeEquivalentTo(2))
		Expect(a.Status.Ready).To(Equal("2/2"))
		Expect(d.Spec.Template.Spec.Containers[0].Image).To(Equal(image))

		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"selector":{"app.kubernetes.io/name":"other"},"type":"NodePort"}}`))
		Expect(admin.Patch(ctx, service(ctx, Default, a), patch, client.FieldOwner("meddler"))).To(Succeed())
		eventuallyConflicts(ctx, a, "Reported",
			conflictWith("Deployment", ".spec.replicas", quellv1alpha1.ConflictYield, "kubectl-edit", metav1.ManagedFieldsOperationUpdate, ""),
			conflictWith("Service", ".spec.selector", quellv1alpha1.ConflictReport, "meddler", metav1.ManagedFieldsOperationUpdate, ""))
		Expect(service(ctx, Default, a).Spec.Type).To(Equal(corev1.ServiceTypeNodePort), "nothing of the Service is applied")
	})

	It("with a path that cannot be read says what is wrong with it before anything is applied, and ends no conflict", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		unreadable := ruledBy(quellv1alpha1.ConflictYield, quellv1alpha1.ConflictRule{Kind: "Service", Path: ".spec.ports[app]", Mode: quellv1alpha1.ConflictYield})
		start := mark()
		fresh := create(ctx, newApp(ns, "fresh", unreadable))
		Expect(eventuallyCondition(ctx, fresh, quellv1alpha1.ConditionStalled, "Rejected")).To(And(
			ContainSubstring("spec.conflictPolicy.rules"), ContainSubstring(".spec.ports[app]"), ContainSubstring(`containers[name="app"]`)))
		Expect(count(manager.writes(start, ns), to("deployments")) + count(manager.writes(start, ns), to("services"))).To(BeZero())

		a := createReady(ctx, newApp(ns, "shop", ruledBy(quellv1alpha1.ConflictYield)))
		kubectl("-n", ns, "set", "image", "deployment/shop", "app="+theirs)
		yielded := conflictWith("Deployment", imagePath, quellv1alpha1.ConflictYield, "kubectl-set", metav1.ManagedFieldsOperationUpdate, "")
		before := eventuallyConflicts(ctx, a, "Yielded", yielded).Conflicts
		change(ctx, a, func(a *quellv1alpha1.App) { unreadable(&a.Spec) })
		eventuallyCondition(ctx, a, quellv1alpha1.ConditionStalled, "Rejected")
		Expect(eventuallyConflicts(ctx, a, "Yielded", yielded).Conflicts).To(Equal(before))
		setPolicy(ctx, a, quellv1alpha1.ConflictYield)
		converge(ctx, a)
		Expect(a.Status.Conflicts).To(Equal(before))

		By("being deleted with the conflict")
		Expect(admin.Delete(ctx, a, client.PropagationPolicy(metav1.DeletePropagationForeground))).To(Succeed())
		Eventually(ctx, func() error { return admin.Get(ctx, client.ObjectKeyFromObject(a), a) }).Should(MatchError(apierrors.IsNotFound, "IsNotFound"))
		Expect(eventsOf(ctx, Default, a, "FieldConflictEnded")).To(BeEmpty())
	})

	It("bounds what a writer costs that writes ten times a second, under Force and under Yield", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		force, yield := create(ctx, newApp(ns, "force", labelled("team", "a"))), create(ctx, newApp(ns, "yield", labelled("team", "a"), ruledBy(quellv1alpha1.ConflictYield)))
		converge(ctx, force)
		converge(ctx, yield)
		start := mark()
		stopForce, stopYield := write(ctx, force), write(ctx, yield)
		const path = ".metadata.labels.team"
		s := eventuallyConflicts(ctx, yield, "Yielded", conflictWith("Deployment", path, quellv1alpha1.ConflictYield, "meddler", metav1.ManagedFieldsOperationUpdate, ""))
		eventuallyConflicts(ctx, force, "FieldContended", conflictWith("Deployment", path, quellv1alpha1.ConflictForce, "meddler", metav1.ManagedFieldsOperationUpdate, ""))
		Consistently(ctx, func() int { return applies(manager.writes(start, ns), "force") }, 4*time.Second, pollEach).Should(BeNumerically("<=", 3))
		Eventually(ctx, func(g Gomega) {
			theirs, err := cluster.Requests(start, localcluster.ByUserAgent("meddler"), localcluster.Writes)
			g.Expect(err).NotTo(HaveOccurred())
			for _, name := range []string{"force", "yield"} {
				g.Expect(applies(theirs, name)).To(BeNumerically(">", 20), "or nothing was bounded")
			}
		}).Should(Succeed())
		forceWrites, yieldWrites := stopForce(), stopYield()
		writes := manager.writes(start, ns)
		AddReportEntry("ten a second", map[string]int{"on Force": forceWrites, "on Yield": yieldWrites, "children": count(writes, to("deployments")), "statuses": count(writes, to("apps/status"))})
		Expect(applies(writes, "yield")).To(BeZero())
		Expect(count(writes, func(r localcluster.Request) bool { return to("apps/status")(r) && r.Name == "yield" })).To(BeNumerically("<=", 2))
		Expect(status(ctx, Default, yield).Conflicts).To(Equal(s.Conflicts), "since is kept")
		Expect(isReady(yield)).To(BeTrue())

		By("taking it back by itself after the pause")
		Eventually(ctx, func(g Gomega) { g.Expect(deployment(ctx, g, force).Labels).To(HaveKeyWithValue("team", "a")) }).Should(Succeed())
	})

	It("heals what makes the App's own content invalid, under Force, and names it otherwise", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		probed := func(s *quellv1alpha1.AppSpec) {
			s.ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(8080)}}}
		}
		force, yield := create(ctx, newApp(ns, "force", probed)), create(ctx, newApp(ns, "yield", probed, ruledBy(quellv1alpha1.ConflictYield)))
		for _, a := range []*quellv1alpha1.App{force, yield} {
			converge(ctx, a)
		}
		for _, a := range []*quellv1alpha1.App{force, yield} {
			kubectlEdit(ns, "service/"+a.Name, "s|port: 8080|port: 80|")
		}
		kubectlEdit(ns, "deployment/force", `s|containerPort: 8080|containerPort: 9090|;s|tcpSocket:|httpGet:|`)
		Eventually(ctx, func(g Gomega) {
			g.Expect(service(ctx, g, force).Spec.Ports).To(HaveExactElements(HaveField("Port", int32(8080))))
			c := deployment(ctx, g, force).Spec.Template.Spec.Containers[0]
			g.Expect(c.Ports).To(HaveExactElements(HaveField("ContainerPort", int32(8080))))
			g.Expect(c.ReadinessProbe.HTTPGet).To(BeNil())
			g.Expect(c.ReadinessProbe.TCPSocket).NotTo(BeNil())
			notes := ""
			for _, e := range eventsOf(ctx, g, force, "FieldTakenBack") {
				notes += e.Note
			}
			g.Expect(notes).To(And(ContainSubstring(`.spec.ports[port=80,protocol="TCP"]`), ContainSubstring(`.ports[containerPort=9090,protocol="TCP"]`),
				ContainSubstring(".readinessProbe.httpGet"), ContainSubstring(`"kubectl-edit" (Update)`)))
		}).Should(Succeed())
		converge(ctx, force)
		Expect(eventuallyCondition(ctx, yield, quellv1alpha1.ConditionStalled, "Rejected")).To(And(ContainSubstring("spec.ports["), ContainSubstring(`"kubectl-edit" (Update)`)))
		Expect(service(ctx, Default, yield).Spec.Ports).To(HaveExactElements(HaveField("Port", int32(80))))
		expectNoApply(ctx, force)
	})
})

// applies counts what was written to a Deployment.
func applies(writes []localcluster.Request, name string) int {
	return count(accepted(writes), func(r localcluster.Request) bool { return to("deployments")(r) && r.Name == name })
}

func hasTheirImage(_ Gomega, d *appsv1.Deployment) bool {
	return d.Spec.Template.Spec.Containers[0].Image == theirs
}

// write changes a label of an App's Deployment ten times a second until stop is called, which tells how often.
func write(ctx context.Context, a *quellv1alpha1.App) (stop func() int) {
	meddler, key := clientAs(cluster.Config(), "meddler"), client.ObjectKeyFromObject(a)
	return repeat(ctx, 100*time.Millisecond, func(ctx context.Context, n int) error {
		d := &appsv1.Deployment{}
		if err := meddler.Get(ctx, key, d); err != nil {
			return err
		}
		d.Labels["team"] = fmt.Sprintf("theirs-%d", n%2)
		return meddler.Update(ctx, d, client.FieldOwner("meddler"))
	})
}
