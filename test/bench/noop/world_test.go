package noop

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/controller/app"
	"github.com/hduolab/quell/test/bench/rivals"
	"github.com/hduolab/quell/test/localcluster"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"
)

const (
	// patience bounds a wait for what has to happen; it is no measure.
	patience = time.Minute
	pollEach = 20 * time.Millisecond
	crds     = "../../../config/crd"
	replicas = 2
)

// cluster is the control plane of all benchmarks, which stand for the Deployment controller themselves.
var cluster *localcluster.Cluster

// admin may do everything; what it does is not counted.
var admin client.Client

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
	if err = install(ctx); err == nil {
		code = m.Run()
	}
	if err = errors.Join(err, cluster.Stop()); err != nil {
		log.Print(err)
		return 1
	}
	return code
}

// install makes admin and brings the CustomResourceDefinitions in.
func install(ctx context.Context) error {
	scheme := runtime.NewScheme()
	err := errors.Join(app.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme))
	if err != nil {
		return err
	}
	if admin, err = client.New(cluster.Config(), client.Options{Scheme: scheme}); err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(crds, "quell.dev_*.yaml"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("find CustomResourceDefinitions in %s: %w", crds, err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(raw, crd); err != nil {
			return err
		}
		if err := admin.Create(ctx, crd); err != nil {
			return err
		}
		if err := localcluster.WaitEstablished(ctx, cluster.Config(), crd.Name); err != nil {
			return err
		}
	}
	return nil
}

// contestant is a rival at work on one App that is Ready.
type contestant struct {
	reconcile.Reconciler
	request reconcile.Request
	agent   string
	sent    *atomic.Int64
}

// started counts contestants: each has a namespace and a user agent of its own.
var started atomic.Int64

// directly marks the requests of the reconciles that are measured, as opposed to those of the manager's own workers.
type directly struct{}

// measured ends the user agent of such requests.
const measured = "-measured"

// start lets a rival's manager bring one App to Ready, and stops it with the test.
func start(tb testing.TB, rival rivals.Rival) *contestant {
	tb.Helper()
	ctx, cancel := context.WithCancel(tb.Context())
	c := &contestant{agent: fmt.Sprintf("noop-%s-%d", rival.Name, started.Add(1)), sent: &atomic.Int64{}}
	config := cluster.Config()
	config.QPS, config.UserAgent = -1, c.agent
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return counter{next, c.agent, c.sent} })
	mgr, reconciler, err := rival.Manager(ctx, config, 1)
	if err != nil {
		tb.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	tb.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			tb.Error(err)
		}
	})
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		tb.Fatal("the caches are not filled")
	}
	c.Reconciler, c.request.NamespacedName = reconciler, client.ObjectKey{Namespace: c.agent, Name: "shop"}
	c.makeReady(tb)
	return c
}

// counter counts the requests of measured reconciles, and gives them a user agent of their own.
type counter struct {
	next  http.RoundTripper
	agent string
	sent  *atomic.Int64
}

func (c counter) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Context().Value(directly{}) != nil {
		c.sent.Add(1)
		r = r.Clone(r.Context())
		r.Header.Set("User-Agent", c.agent+measured)
	}
	return c.next.RoundTrip(r)
}

// makeReady creates the App and plays its Deployment's status.
func (c *contestant) makeReady(tb testing.TB) {
	tb.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.request.Namespace}}
	if err := admin.Create(tb.Context(), namespace); err != nil {
		tb.Fatal(err)
	}
	shop := &quellv1alpha1.App{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.request.Namespace, Name: c.request.Name},
		Spec:       quellv1alpha1.AppSpec{Image: "registry.example/shop:1.0.0", Replicas: new(int32(replicas))},
	}
	if err := admin.Create(tb.Context(), shop); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := admin.Delete(context.WithoutCancel(tb.Context()), shop); err != nil {
			tb.Error(err)
		}
	})
	d := &appsv1.Deployment{}
	eventually(tb, "a Deployment", func(ctx context.Context) (bool, error) {
		err := admin.Get(ctx, c.request.NamespacedName, d)
		return err == nil, client.IgnoreNotFound(err)
	})
	d.Status = rolledOut(d.Generation)
	if err := admin.Status().Update(tb.Context(), d, client.FieldOwner("kube-controller-manager")); err != nil {
		tb.Fatal(err)
	}
	eventually(tb, "an App with ready replicas", func(ctx context.Context) (bool, error) {
		err := admin.Get(ctx, c.request.NamespacedName, shop)
		return err == nil && shop.Status.ReadyReplicas != nil && *shop.Status.ReadyReplicas == replicas, err
	})
}

func rolledOut(generation int64) appsv1.DeploymentStatus {
	now := metav1.Now()
	condition := func(kind appsv1.DeploymentConditionType, reason string) appsv1.DeploymentCondition {
		return appsv1.DeploymentCondition{Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: reason, LastUpdateTime: now, LastTransitionTime: now}
	}
	return appsv1.DeploymentStatus{
		ObservedGeneration: generation, Replicas: replicas, UpdatedReplicas: replicas, ReadyReplicas: replicas, AvailableReplicas: replicas,
		Conditions: []appsv1.DeploymentCondition{condition("Available", "MinimumReplicasAvailable"), condition("Progressing", "NewReplicaSetAvailable")},
	}
}

func eventually(tb testing.TB, what string, is wait.ConditionWithContextFunc) {
	tb.Helper()
	if err := wait.PollUntilContextTimeout(tb.Context(), pollEach, patience, true, is); err != nil {
		tb.Fatalf("wait for %s: %v", what, err)
	}
}

// reconcileOnce is one measured reconcile; what it asks for is counted.
func (c *contestant) reconcileOnce(ctx context.Context) error {
	_, err := c.Reconcile(context.WithValue(ctx, directly{}, true), c.request)
	return err
}

// settle reconciles until one sends nothing, and reports false when there is none.
func (c *contestant) settle(tb testing.TB) bool {
	tb.Helper()
	for range 100 {
		before := c.sent.Load()
		if err := c.reconcileOnce(tb.Context()); err != nil {
			continue // a conflict with the manager's own workers
		}
		if c.sent.Load() == before {
			return true
		}
	}
	return false
}

// served is what measured reconciles asked the API server for since a mark, by its own account.
func (c *contestant) served(tb testing.TB, since localcluster.Mark) []localcluster.Request {
	tb.Helper()
	requests, err := cluster.Requests(since, localcluster.ByUserAgent(c.agent+measured))
	if err != nil {
		tb.Fatal(err)
	}
	return requests
}

func mark(tb testing.TB) localcluster.Mark {
	tb.Helper()
	m, err := cluster.Mark()
	if err != nil {
		tb.Fatal(err)
	}
	return m
}
