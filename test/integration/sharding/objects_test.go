package sharding_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/controller/app"
	"github.com/hduolab/quell/test/localcluster"
	"github.com/hduolab/quell/test/quiescence"
)

// newApp creates an App with a Deployment and a Service in a shard, or in none.
func newApp(ctx context.Context, name, shard string) *quellv1alpha1.App {
	GinkgoHelper()
	a := &quellv1alpha1.App{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: quellv1alpha1.AppSpec{
			Image: image(1), Replicas: ptr.To[int32](2), Ports: []quellv1alpha1.AppPort{{Name: "http", ContainerPort: 8080}},
		},
	}
	if shard != "" {
		a.Labels = map[string]string{app.LabelShard: shard}
	}
	Expect(admin.Create(ctx, a)).To(Succeed())
	return a
}

func image(n int) string { return fmt.Sprintf("registry.example.com/team/shop:%d", n) }

// change updates an App as a person would.
func change(ctx context.Context, a *quellv1alpha1.App, f func(*quellv1alpha1.App)) {
	GinkgoHelper()
	Expect(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := admin.Get(ctx, client.ObjectKeyFromObject(a), a); err != nil {
			return err
		}
		f(a)
		return admin.Update(ctx, a)
	})).To(Succeed())
}

// move puts an App into a shard, or into none.
func move(a *quellv1alpha1.App, shard string) {
	GinkgoHelper()
	label := app.LabelShard + "-"
	if shard != "" {
		label = app.LabelShard + "=" + shard
	}
	kubectl("", "label", "app.quell.dev", a.Name, label, "--overwrite")
}

// children are an App's Deployment and Service as they are.
func children(ctx context.Context, a *quellv1alpha1.App) (*appsv1.Deployment, *corev1.Service, error) {
	d, s := &appsv1.Deployment{}, &corev1.Service{}
	if err := admin.Get(ctx, client.ObjectKeyFromObject(a), d); err != nil {
		return nil, nil, err
	}
	return d, s, admin.Get(ctx, client.ObjectKeyFromObject(a), s)
}

// areIn returns an error unless an App's status and children are of its newest generation, and the children in a shard.
func areIn(ctx context.Context, a *quellv1alpha1.App, shard string) error {
	if err := admin.Get(ctx, client.ObjectKeyFromObject(a), a); err != nil {
		return err
	}
	if a.Status.ObservedGeneration != a.Generation {
		return fmt.Errorf("App %s: generation %d, status of %d", a.Name, a.Generation, a.Status.ObservedGeneration)
	}
	d, s, err := children(ctx, a)
	switch {
	case err != nil:
		return err
	case d.Labels[app.LabelShard] != shard || s.Labels[app.LabelShard] != shard:
		return fmt.Errorf("App %s: Deployment in shard %q, Service in %q, expected %q", a.Name, d.Labels[app.LabelShard], s.Labels[app.LabelShard], shard)
	case d.Spec.Template.Spec.Containers[0].Image != a.Spec.Image:
		return fmt.Errorf("App %s: image %s", a.Name, d.Spec.Template.Spec.Containers[0].Image)
	}
	return nil
}

// converge waits until Apps are as they ask, and in their shards.
func converge(ctx context.Context, apps ...*quellv1alpha1.App) {
	GinkgoHelper()
	for _, a := range apps {
		Eventually(ctx, func() error { return areIn(ctx, a, a.Labels[app.LabelShard]) }).Should(Succeed())
	}
}

// expectQuiet wants nothing to be written for some seconds, once all has settled.
func expectQuiet(ctx context.Context) {
	GinkgoHelper()
	Expect(quiescence.Check(ctx, cluster.Config(), quiescence.Options{
		Kinds: []schema.GroupKind{
			{Group: "quell.dev", Kind: "App"}, {Group: "apps", Kind: "Deployment"}, {Kind: "Service"}, {Kind: "ServiceAccount"},
		},
		Namespaces: []string{"default"}, Settle: 2500 * time.Millisecond, Hold: 2 * time.Second,
	})).To(Succeed())
}

func mark() localcluster.Mark {
	GinkgoHelper()
	m, err := cluster.Mark()
	Expect(err).NotTo(HaveOccurred())
	return m
}

// requests are those of all shards to Apps and their children since a mark.
func requests(since localcluster.Mark, keep ...localcluster.Filter) []localcluster.Request {
	GinkgoHelper()
	found, err := cluster.Requests(since, append(keep, localcluster.ByUserAgent("manager/"), localcluster.NotLeases)...)
	Expect(err).NotTo(HaveOccurred())
	return found
}

// writes are those to objects in the namespace of the Apps, but for events.
func writes(since localcluster.Mark) []localcluster.Request {
	GinkgoHelper()
	return requests(since, localcluster.Writes, func(r localcluster.Request) bool { return r.Namespace == "default" && r.Resource != "events" })
}

// shardOf is the shard that sent a request.
func shardOf(r localcluster.Request) string {
	_, shard, _ := strings.Cut(r.UserAgent, "/shard-")
	return shard
}

// perShard counts requests.
func perShard(found []localcluster.Request) map[string]int {
	counts := map[string]int{}
	for _, r := range found {
		counts[shardOf(r)]++
	}
	return counts
}

// leads waits until a shard has a leader and returns its identity.
func leads(ctx context.Context, shard string) string {
	GinkgoHelper()
	var lease coordinationv1.Lease
	Eventually(ctx, func(g Gomega) {
		g.Expect(admin.Get(ctx, client.ObjectKey{Namespace: leaseNamespace, Name: strings.TrimSuffix("quell-manager-"+shard, "-")}, &lease)).To(Succeed())
		g.Expect(lease.Spec.HolderIdentity).To(HaveValue(Not(BeEmpty())))
	}).Should(Succeed())
	Expect(lease.Spec.LeaseDurationSeconds).To(HaveValue(BeEquivalentTo(15)), "the bound that docs/scale.md states")
	return *lease.Spec.HolderIdentity
}

// isUp waits until a process of a shard has asked for something since a mark. While it does not lead it asks for the API's description and
// its Lease alone.
func isUp(ctx context.Context, shard string, since localcluster.Mark) {
	GinkgoHelper()
	Eventually(ctx, func() []localcluster.Request {
		return requests(since, func(r localcluster.Request) bool { return r.Resource == "" && shardOf(r) == shard })
	}).ShouldNot(BeEmpty())
}
