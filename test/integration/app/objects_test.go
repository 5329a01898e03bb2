package app_test

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
)

const image = "registry.example.com/team/shop:1"

// newNamespace makes a namespace that is removed, with the Apps in it, when the spec ends.
func newNamespace(ctx context.Context) string {
	GinkgoHelper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "spec-"}}
	Expect(admin.Create(ctx, ns)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) {
		Expect(admin.DeleteAllOf(ctx, &quellv1alpha1.App{}, client.InNamespace(ns.Name))).To(Succeed())
		Expect(admin.Delete(ctx, ns)).To(Succeed())
	})
	return ns.Name
}

// newApp is an App with one port, not created yet.
func newApp(namespace, name string, change ...func(*quellv1alpha1.AppSpec)) *quellv1alpha1.App {
	replicas := int32(1)
	a := &quellv1alpha1.App{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: quellv1alpha1.AppSpec{
			Image: image, Replicas: &replicas,
			Ports: []quellv1alpha1.AppPort{{Name: "http", ContainerPort: 8080}},
		},
	}
	for _, f := range change {
		f(&a.Spec)
	}
	return a
}

func minimal(s *quellv1alpha1.AppSpec) { s.Ports = nil }

func replicas(n int32) func(*quellv1alpha1.AppSpec) {
	return func(s *quellv1alpha1.AppSpec) { s.Replicas = &n }
}

func labelled(key, value string) func(*quellv1alpha1.AppSpec) {
	return func(s *quellv1alpha1.AppSpec) { s.CommonLabels = map[string]string{key: value} }
}

func create(ctx context.Context, a *quellv1alpha1.App) *quellv1alpha1.App {
	GinkgoHelper()
	Expect(admin.Create(ctx, a)).To(Succeed())
	return a
}

// createReady creates an App and waits until its status says all there is to say.
func createReady(ctx context.Context, a *quellv1alpha1.App) *quellv1alpha1.App {
	GinkgoHelper()
	create(ctx, a)
	converge(ctx, a)
	return a
}

// converge waits until an App is Ready, its counts are those of its Deployment, and its event is written.
func converge(ctx context.Context, a *quellv1alpha1.App) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(a), a)).To(Succeed())
		d := deployment(ctx, g, a)
		g.Expect(isReady(a)).To(BeTrue(), "status %+v", a.Status)
		g.Expect(*a.Status.ReadyReplicas).To(Equal(d.Status.ReadyReplicas))
		g.Expect(*a.Status.Replicas).To(Equal(d.Status.Replicas))
		g.Expect(*a.Status.UpdatedReplicas).To(Equal(d.Status.UpdatedReplicas))
		g.Expect(eventsOf(ctx, g, a, "Ready")).NotTo(BeEmpty())
	}).Should(Succeed())
}

// isReady reports whether the status says that the newest generation is Ready.
func isReady(a *quellv1alpha1.App) bool {
	return a.Status.ObservedGeneration == a.Generation && meta.IsStatusConditionTrue(a.Status.Conditions, quellv1alpha1.ConditionReady)
}

// deployment reads the Deployment of an App.
func deployment(ctx context.Context, g Gomega, a *quellv1alpha1.App) *appsv1.Deployment {
	d := &appsv1.Deployment{}
	g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(a), d)).To(Succeed())
	return d
}

func service(ctx context.Context, g Gomega, a *quellv1alpha1.App) *corev1.Service {
	s := &corev1.Service{}
	g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(a), s)).To(Succeed())
	return s
}

// eventsOf lists the operator's events about an App with a reason, or all for "".
func eventsOf(ctx context.Context, g Gomega, a *quellv1alpha1.App, reason string) []eventsv1.Event {
	var list eventsv1.EventList
	g.Expect(admin.List(ctx, &list, client.InNamespace(a.Namespace))).To(Succeed())
	var found []eventsv1.Event
	for _, e := range list.Items {
		if e.Regarding.UID == a.UID && e.ReportingController == "quell" && (reason == "" || e.Reason == reason) {
			found = append(found, e)
		}
	}
	return found
}

// status returns the status that an App has now.
func status(ctx context.Context, g Gomega, a *quellv1alpha1.App) quellv1alpha1.AppStatus {
	g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(a), a)).To(Succeed())
	return a.Status
}

// eventuallyCondition waits until a condition of the newest generation is True with this reason, and returns its message.
func eventuallyCondition(ctx context.Context, a *quellv1alpha1.App, kind, reason string) string {
	GinkgoHelper()
	var message string
	Eventually(ctx, func(g Gomega) {
		s := status(ctx, g, a)
		c := meta.FindStatusCondition(s.Conditions, kind)
		g.Expect(c).NotTo(BeNil(), "status %+v", s)
		g.Expect(c.Reason).To(Equal(reason), c.Message)
		g.Expect(c.Status).To(Equal(metav1.ConditionTrue))
		g.Expect(s.ObservedGeneration).To(Equal(a.Generation))
		message = c.Message
	}).Should(Succeed())
	return message
}

func eventuallyPhase(ctx context.Context, a *quellv1alpha1.App, phase quellv1alpha1.AppPhase) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) { g.Expect(status(ctx, g, a).Phase).To(Equal(phase)) }).Should(Succeed())
}

// change updates an object as a person would, again when somebody else was faster.
func change[T client.Object](ctx context.Context, o T, f func(T)) {
	GinkgoHelper()
	Expect(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := admin.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		f(o)
		return admin.Update(ctx, o, client.FieldOwner("kubectl-edit"))
	})).To(Succeed())
}

// touch wakes the operator for an App without asking for anything. It sends nothing of the spec, whose numbers a Go client
// would write in another form.
func touch(ctx context.Context, a *quellv1alpha1.App) {
	GinkgoHelper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"touched":%q}}}`, time.Now())
	Expect(admin.Patch(ctx, a, client.RawPatch(types.MergePatchType, []byte(patch)))).To(Succeed())
}

func kubectl(args ...string) string {
	GinkgoHelper()
	return kubectlAs(cluster.Kubeconfig(), args...)
}

func kubectlAs(kubeconfig string, args ...string) string {
	GinkgoHelper()
	out, err := kubectlCommand(kubeconfig, args...).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "kubectl %s: %s", strings.Join(args, " "), out)
	return string(out)
}

func kubectlCommand(kubeconfig string, args ...string) *exec.Cmd {
	return exec.Command(cluster.Kubectl(), append([]string{"--kubeconfig=" + kubeconfig, "--cache-dir=" + cluster.DataDir() + "/kubectl-cache"}, args...)...)
}

func named(prefix string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%d", prefix, i)
	}
	return names
}

// eachItem calls f for each object of a list.
func eachItem(list client.ObjectList, f func(client.Object)) {
	GinkgoHelper()
	Expect(meta.EachListItem(list, func(o runtime.Object) error {
		f(o.(client.Object))
		return nil
	})).To(Succeed())
}

// overwriteStatus writes the status as another controller would that does not know whose it is.
func overwriteStatus(ctx context.Context, a *quellv1alpha1.App, f func(*quellv1alpha1.AppStatus)) {
	GinkgoHelper()
	Expect(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := admin.Get(ctx, client.ObjectKeyFromObject(a), a); err != nil {
			return err
		}
		f(&a.Status)
		return admin.Status().Update(ctx, a, client.FieldOwner("kubectl-edit"))
	})).To(Succeed())
}

// withoutLine drops a line from a text.
func withoutLine(text, line string) string { return strings.ReplaceAll(text, line+"\n", "") }
