package rivals_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/test/bench/rivals"
	"github.com/hduolab/quell/test/localcluster"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// patience bounds a wait for what has to happen; it is no measure.
	patience = time.Minute
	pollEach = 20 * time.Millisecond
)

// site is a control plane with one contestant after the other at work.
type site struct {
	cluster *localcluster.Cluster
	admin   client.Client
}

// Every contestant does the same job: the Deployment, its state in the status, and a changed image.
func TestTheJob(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	ctrl.SetLogger(logr.Discard())
	g := NewWithT(t)
	var s site
	var err error
	s.cluster, err = localcluster.Start(t.Context(), localcluster.Options{ControlPlaneOnly: true, Log: t.Output()})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(s.cluster.Stop()).To(Succeed()) })
	s.admin, err = rivals.Install(t.Context(), s.cluster.Config())
	g.Expect(err).NotTo(HaveOccurred())
	for _, rival := range append(rivals.All(), rivals.Quell()) {
		t.Run(rival.Name, func(t *testing.T) { s.theJob(t, rival) })
	}
}

func (s site) theJob(t *testing.T, rival rivals.Rival) {
	g := NewWithT(t)
	g.SetDefaultEventuallyTimeout(patience)
	g.SetDefaultEventuallyPollingInterval(pollEach)
	s.start(t, rival)
	key := s.create(t, rival.Name)

	g.Eventually(func(g Gomega) {
		d := s.deployment(t.Context(), g, key)
		g.Expect(*d.Spec.Replicas).To(BeEquivalentTo(2))
		g.Expect(d.Spec.Template.Spec.Containers).To(HaveLen(1))
		g.Expect(d.Spec.Template.Spec.Containers[0].Image).To(Equal("one"))
		app := s.app(t.Context(), g, key)
		g.Expect(metav1.IsControlledBy(d, app)).To(BeTrue())
		g.Expect(app.Status.ObservedGeneration).To(Equal(app.Generation))
		g.Expect(app.Status.Phase).To(Equal(quellv1alpha1.PhaseProgressing))
		g.Expect(app.Status.Ready).To(Equal("0/2"))
		g.Expect(app.Status.Image).To(Equal("one"))
		g.Expect(meta.IsStatusConditionTrue(app.Status.Conditions, quellv1alpha1.ConditionReady)).To(BeFalse())
		g.Expect(meta.IsStatusConditionTrue(app.Status.Conditions, quellv1alpha1.ConditionAvailable)).To(BeFalse())
	}).Should(Succeed())

	g.Eventually(func() error { return rivals.Observe(t.Context(), s.admin, key, rivals.Full(2)) }).Should(Succeed()) // a storm may refuse it at first
	g.Eventually(func(g Gomega) {
		app := s.app(t.Context(), g, key)
		g.Expect(app.Status.Phase).To(Equal(quellv1alpha1.PhaseRunning))
		g.Expect(app.Status.Ready).To(Equal("2/2"))
		for _, n := range []*int32{app.Status.Replicas, app.Status.UpdatedReplicas, app.Status.ReadyReplicas, app.Status.AvailableReplicas} {
			g.Expect(n).To(HaveValue(BeEquivalentTo(2)))
		}
		g.Expect(meta.IsStatusConditionTrue(app.Status.Conditions, quellv1alpha1.ConditionReady)).To(BeTrue())
		g.Expect(meta.IsStatusConditionTrue(app.Status.Conditions, quellv1alpha1.ConditionAvailable)).To(BeTrue())
	}).Should(Succeed())

	g.Eventually(func(g Gomega) {
		changed := s.app(t.Context(), g, key)
		changed.Spec.Image = "two"
		g.Expect(s.admin.Update(t.Context(), changed)).To(Succeed()) // so here
	}).Should(Succeed())
	g.Eventually(func(g Gomega) {
		g.Expect(s.deployment(t.Context(), g, key).Spec.Template.Spec.Containers[0].Image).To(Equal("two"))
		app := s.app(t.Context(), g, key)
		g.Expect(app.Status.ObservedGeneration).To(Equal(app.Generation))
		g.Expect(app.Status.Image).To(Equal("two"))
		g.Expect(app.Status.Phase).To(Equal(quellv1alpha1.PhaseProgressing))
	}).Should(Succeed())

	// An App without ports is a Deployment and nothing else, whoever looks after it.
	services := &corev1.ServiceList{}
	g.Expect(s.admin.List(t.Context(), services, client.InNamespace(key.Namespace))).To(Succeed())
	g.Expect(services.Items).To(BeEmpty())
}

func TestNamesAreDistinct(t *testing.T) {
	g := NewWithT(t)
	seen := map[string]bool{}
	for _, rival := range append(rivals.All(), rivals.Quell()) {
		g.Expect(seen).NotTo(HaveKey(rival.Name))
		seen[rival.Name] = true
		g.Expect(rival.How).NotTo(BeEmpty())
		g.Expect(rival.Source).To(HavePrefix("https://"))
	}
}

// start runs a contestant until the test ends.
func (s site) start(t *testing.T, rival rivals.Rival) {
	t.Helper()
	g := NewWithT(t)
	reconciler, stop, err := rival.Start(t.Context(), s.cluster.Config())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(reconciler).NotTo(BeNil())
	t.Cleanup(func() { g.Expect(stop()).To(Succeed()) })
}

func (s site) create(t *testing.T, namespace string) client.ObjectKey {
	t.Helper()
	shop := &quellv1alpha1.App{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shop"},
		Spec:       quellv1alpha1.AppSpec{Image: "one", Replicas: ptr.To[int32](2)},
	}
	for _, o := range []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, shop} {
		if err := s.admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { // the next contestant would take care of it as well
		if err := s.admin.Delete(context.WithoutCancel(t.Context()), shop); err != nil {
			t.Error(err)
		}
	})
	return client.ObjectKeyFromObject(shop)
}

func (s site) app(ctx context.Context, g Gomega, key client.ObjectKey) *quellv1alpha1.App {
	app := &quellv1alpha1.App{}
	g.Expect(s.admin.Get(ctx, key, app)).To(Succeed())
	return app
}

func (s site) deployment(ctx context.Context, g Gomega, key client.ObjectKey) *appsv1.Deployment {
	d := &appsv1.Deployment{}
	g.Expect(s.admin.Get(ctx, key, d)).To(Succeed())
	return d
}
