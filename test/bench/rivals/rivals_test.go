package rivals_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
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
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

const (
	// patience bounds a wait for what has to happen; it is no measure.
	patience = time.Minute
	pollEach = 20 * time.Millisecond
)

var (
	cluster *localcluster.Cluster
	admin   client.Client
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	ctrl.SetLogger(logr.Discard())
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute) // the first start builds Kubernetes
	defer cancel()
	var err error
	if cluster, err = localcluster.Start(ctx, localcluster.Options{ControlPlaneOnly: true}); err != nil {
		log.Print(err)
		return 1
	}
	code := 1
	if err = install(); err == nil {
		code = m.Run()
	}
	if err = errors.Join(err, cluster.Stop()); err != nil {
		log.Print(err)
		return 1
	}
	return code
}

func install() error {
	options := envtest.CRDInstallOptions{Paths: []string{"../../../config/crd"}, ErrorIfPathMissing: true}
	if _, err := envtest.InstallCRDs(cluster.Config(), options); err != nil {
		return fmt.Errorf("install the CustomResourceDefinitions: %w", err)
	}
	scheme := runtime.NewScheme()
	err := errors.Join(clientgoscheme.AddToScheme(scheme), quellv1alpha1.AddToScheme(scheme))
	if err != nil {
		return err
	}
	admin, err = client.New(cluster.Config(), client.Options{Scheme: scheme})
	return err
}

// Every contestant does the same job: the Deployment, its state in the status, and a changed image.
func TestTheJob(t *testing.T) {
	for _, rival := range append(rivals.All(), rivals.Quell()) {
		t.Run(rival.Name, func(t *testing.T) {
			g := NewWithT(t)
			g.SetDefaultEventuallyTimeout(patience)
			g.SetDefaultEventuallyPollingInterval(pollEach)
			start(t, rival)
			key := create(t, rival.Name)

			g.Eventually(func(g Gomega) {
				d := deployment(t.Context(), g, key)
				g.Expect(*d.Spec.Replicas).To(BeEquivalentTo(2))
				g.Expect(d.Spec.Template.Spec.Containers).To(HaveLen(1))
				g.Expect(d.Spec.Template.Spec.Containers[0].Image).To(Equal("one"))
				app := app(t.Context(), g, key)
				g.Expect(metav1.IsControlledBy(d, app)).To(BeTrue())
				g.Expect(app.Status.ObservedGeneration).To(Equal(app.Generation))
				g.Expect(app.Status.Phase).To(Equal(quellv1alpha1.PhaseProgressing))
				g.Expect(app.Status.Ready).To(Equal("0/2"))
				g.Expect(app.Status.Image).To(Equal("one"))
				g.Expect(meta.IsStatusConditionTrue(app.Status.Conditions, quellv1alpha1.ConditionReady)).To(BeFalse())
				g.Expect(meta.IsStatusConditionTrue(app.Status.Conditions, quellv1alpha1.ConditionAvailable)).To(BeFalse())
			}).Should(Succeed())

			g.Expect(rollOut(t.Context(), key)).To(Succeed())
			g.Eventually(func(g Gomega) {
				app := app(t.Context(), g, key)
				g.Expect(app.Status.Phase).To(Equal(quellv1alpha1.PhaseRunning))
				g.Expect(app.Status.Ready).To(Equal("2/2"))
				for _, n := range []*int32{app.Status.Replicas, app.Status.UpdatedReplicas, app.Status.ReadyReplicas, app.Status.AvailableReplicas} {
					g.Expect(n).To(HaveValue(BeEquivalentTo(2)))
				}
				g.Expect(meta.IsStatusConditionTrue(app.Status.Conditions, quellv1alpha1.ConditionReady)).To(BeTrue())
				g.Expect(meta.IsStatusConditionTrue(app.Status.Conditions, quellv1alpha1.ConditionAvailable)).To(BeTrue())
			}).Should(Succeed())

			g.Eventually(func(g Gomega) {
				changed := app(t.Context(), g, key)
				changed.Spec.Image = "two"
				g.Expect(admin.Update(t.Context(), changed)).To(Succeed()) // a storm may refuse it at first
			}).Should(Succeed())
			g.Eventually(func(g Gomega) {
				g.Expect(deployment(t.Context(), g, key).Spec.Template.Spec.Containers[0].Image).To(Equal("two"))
				app := app(t.Context(), g, key)
				g.Expect(app.Status.ObservedGeneration).To(Equal(app.Generation))
				g.Expect(app.Status.Image).To(Equal("two"))
				g.Expect(app.Status.Phase).To(Equal(quellv1alpha1.PhaseProgressing))
			}).Should(Succeed())

			// An App without ports is a Deployment and nothing else, whoever looks after it.
			services := &corev1.ServiceList{}
			g.Expect(admin.List(t.Context(), services, client.InNamespace(key.Namespace))).To(Succeed())
			g.Expect(services.Items).To(BeEmpty())
		})
	}
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
func start(t *testing.T, rival rivals.Rival) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	mgr, reconciler, err := rival.Manager(ctx, cluster.Config(), 1)
	if err != nil || reconciler == nil {
		t.Fatal(reconciler, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func create(t *testing.T, namespace string) client.ObjectKey {
	t.Helper()
	shop := &quellv1alpha1.App{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shop"},
		Spec:       quellv1alpha1.AppSpec{Image: "one", Replicas: ptr.To[int32](2)},
	}
	for _, o := range []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, shop} {
		if err := admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { // the next contestant would take care of it as well
		if err := admin.Delete(context.WithoutCancel(t.Context()), shop); err != nil {
			t.Error(err)
		}
	})
	return client.ObjectKeyFromObject(shop)
}

func app(ctx context.Context, g Gomega, key client.ObjectKey) *quellv1alpha1.App {
	app := &quellv1alpha1.App{}
	g.Expect(admin.Get(ctx, key, app)).To(Succeed())
	return app
}

func deployment(ctx context.Context, g Gomega, key client.ObjectKey) *appsv1.Deployment {
	d := &appsv1.Deployment{}
	g.Expect(admin.Get(ctx, key, d)).To(Succeed())
	return d
}

// rollOut writes the status of a Deployment with two replicas that serve.
func rollOut(ctx context.Context, key client.ObjectKey) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		d := &appsv1.Deployment{}
		if err := admin.Get(ctx, key, d); err != nil {
			return err
		}
		d.Status = appsv1.DeploymentStatus{
			ObservedGeneration: d.Generation, Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: 2, AvailableReplicas: 2,
			Conditions: []appsv1.DeploymentCondition{
				{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable"},
				{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
			},
		}
		return admin.Status().Update(ctx, d)
	})
}
