package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/test/quiescence"
)

// written are the kinds that the operator writes.
var written = []schema.GroupKind{
	{Group: "quell.dev", Kind: quiescence.Any}, {Group: "apps", Kind: "Deployment"}, {Kind: "Service"}, {Kind: "ServiceAccount"},
	{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}, {Group: "networking.k8s.io", Kind: quiescence.Any}, {Group: "policy", Kind: quiescence.Any},
}

// newNamespace makes a namespace, in which the Pod Security Standard "restricted" is enforced, and removes it when the spec ends.
func newNamespace(ctx context.Context) string {
	GinkgoHelper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "quell-e2e-", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}
	Expect(admin.Create(ctx, ns)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) {
		if CurrentSpecReport().Failed() {
			tell(ctx, ns.Name)
		}
		Expect(admin.Delete(ctx, ns)).To(Succeed())
	})
	return ns.Name
}

// tell shows what is in a namespace, before it goes.
func tell(ctx context.Context, namespace string) {
	for _, args := range [][]string{
		{"get", "apps.quell.dev,deployments,replicasets,pods,services", "-o", "wide"}, {"get", "apps.quell.dev,deployments", "-o", "yaml", "--show-managed-fields"},
		{"get", "events", "--sort-by=.lastTimestamp"},
	} {
		r := run(ctx, "", "kubectl", append(args, "-n", namespace)...)
		fmt.Fprintf(GinkgoWriter, "kubectl %s -n %s\n%s%s\n", strings.Join(args, " "), namespace, r.out, r.err)
	}
}

// newApp is an App with one port, not created yet. The pause image may have no user that is not root.
func newApp(namespace, name string, change ...func(*quellv1alpha1.AppSpec)) *quellv1alpha1.App {
	a := &quellv1alpha1.App{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: quellv1alpha1.AppSpec{
			Image: image, ImagePullPolicy: corev1.PullIfNotPresent, Replicas: ptr.To(int32(1)),
			Ports:                         []quellv1alpha1.AppPort{{Name: "http", ContainerPort: 8080}},
			PodSecurityContext:            &corev1.PodSecurityContext{RunAsUser: ptr.To(int64(65532))},
			TerminationGracePeriodSeconds: ptr.To(int64(1)),
		},
	}
	for _, f := range change {
		f(&a.Spec)
	}
	return a
}

func replicas(n int32) func(*quellv1alpha1.AppSpec) {
	return func(s *quellv1alpha1.AppSpec) { s.Replicas = &n }
}

func createReady(ctx context.Context, a *quellv1alpha1.App) *quellv1alpha1.App {
	GinkgoHelper()
	Expect(admin.Create(ctx, a)).To(Succeed())
	eventuallyReady(ctx, a, ptr.Deref(a.Spec.Replicas, 1))
	return a
}

// eventuallyReady waits until an App is Ready as its newest generation asks, with so many Pods, all of them new.
func eventuallyReady(ctx context.Context, a *quellv1alpha1.App, pods int32) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(a), a)).To(Succeed())
		s := a.Status
		g.Expect(s.ObservedGeneration).To(Equal(a.Generation))
		g.Expect(meta.FindStatusCondition(s.Conditions, quellv1alpha1.ConditionReady)).To(HaveField("Status", metav1.ConditionTrue))
		g.Expect(s.Ready).To(Equal(fmt.Sprintf("%d/%d", pods, pods)))
		g.Expect([]*int32{s.Replicas, s.ReadyReplicas, s.AvailableReplicas, s.UpdatedReplicas}).To(HaveEach(HaveValue(Equal(pods))))
	}).Should(Succeed())
}

// change sends a merge patch as a person does.
func change(ctx context.Context, a *quellv1alpha1.App, patch string) {
	GinkgoHelper()
	kubectl(ctx, "patch", "app", a.Name, "-n", a.Namespace, "--type=merge", "-p", patch)
}

func deployment(ctx context.Context, g Gomega, a *quellv1alpha1.App) *appsv1.Deployment {
	GinkgoHelper()
	d := &appsv1.Deployment{}
	g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(a), d)).To(Succeed())
	return d
}

// podsOf are the Pods of an App that are not on their way out.
func podsOf(ctx context.Context, g Gomega, a *quellv1alpha1.App) []corev1.Pod {
	GinkgoHelper()
	var list corev1.PodList
	g.Expect(admin.List(ctx, &list, client.InNamespace(a.Namespace), client.MatchingLabels(deployment(ctx, g, a).Spec.Selector.MatchLabels))).To(Succeed())
	var pods []corev1.Pod
	for _, p := range list.Items {
		if p.DeletionTimestamp == nil {
			pods = append(pods, p)
		}
	}
	return pods
}

// awaitQuiet waits until nothing has been written in a namespace for some seconds.
func awaitQuiet(ctx context.Context, namespace string) {
	GinkgoHelper()
	awaitEnded(ctx, namespace)
	Expect(quiescence.Check(ctx, config, quiescence.Options{Kinds: written, Namespaces: []string{namespace}, Hold: time.Millisecond})).To(Succeed())
}

// expectQuiet wants nothing written in a namespace for longer, once the last write is over.
func expectQuiet(ctx context.Context, namespace string) {
	GinkgoHelper()
	awaitEnded(ctx, namespace)
	Expect(quiescence.Check(ctx, config, quiescence.Options{Kinds: written, Namespaces: []string{namespace}, Hold: watchTime()})).To(Succeed())
}

// awaitEnded waits for the Pods that are on their way out: a Deployment's status counts them down, up to half a minute after it is Ready.
func awaitEnded(ctx context.Context, namespace string) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		pods := &corev1.PodList{}
		g.Expect(admin.List(ctx, pods, client.InNamespace(namespace))).To(Succeed())
		g.Expect(pods.Items).NotTo(ContainElement(HaveField("DeletionTimestamp", Not(BeNil()))))
	}).Should(Succeed())
}

// expectQuietOperator wants nothing written by the operator in the whole cluster.
func expectQuietOperator(ctx context.Context) {
	GinkgoHelper()
	Expect(quiescence.Check(ctx, config, quiescence.Options{Kinds: written, Hold: watchTime(), Ignore: func(w quiescence.Write) bool {
		return !strings.HasPrefix(w.Writer.Manager, "quell-")
	}})).To(Succeed())
}

// countVersions counts the versions of an App after the one at hand, until the spec ends.
func countVersions(ctx context.Context, a *quellv1alpha1.App) *atomic.Int32 {
	GinkgoHelper()
	w, err := admin.Watch(ctx, &quellv1alpha1.AppList{}, client.InNamespace(a.Namespace), client.MatchingFields{"metadata.name": a.Name},
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: a.ResourceVersion}})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(w.Stop)
	n := &atomic.Int32{}
	go func() {
		for e := range w.ResultChan() {
			if e.Type == watch.Modified {
				n.Add(1)
			}
		}
	}()
	return n
}

// result of one run of a program.
type result struct {
	code     int
	out, err string
}

// run runs a program on the cluster, with kubectl and its plugin in PATH.
func run(ctx context.Context, stdin, name string, args ...string) result {
	GinkgoHelper()
	cmd := command(ctx, name, args...)
	var out, errOut bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errOut
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		Fail(err.Error())
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), errOut.String()}
}

func command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(bin, name), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "PATH="+bin+":"+os.Getenv("PATH"), "HOME="+bin)
	return cmd
}

// kubectl runs it, wants success and returns its output.
func kubectl(ctx context.Context, args ...string) string {
	GinkgoHelper()
	return expect(ctx, 0, "", args...)
}

// expect runs kubectl, wants an exit code, and returns its output.
func expect(ctx context.Context, code int, stdin string, args ...string) string {
	GinkgoHelper()
	r := run(ctx, stdin, "kubectl", args...)
	Expect(r.code).To(Equal(code), "kubectl %s: %s%s", strings.Join(args, " "), r.out, r.err)
	return r.out
}
