package main

import (
	"context"
	"fmt"
	"time"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/controller/app"
	"github.com/hduolab/quell/test/checkout"
	"github.com/hduolab/quell/test/localcluster"
	"github.com/hduolab/quell/test/naive"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	namespace    = metav1.NamespaceDefault
	statusWriter = "the same on ssa.StatusWriter" // the one that the others are put in proportion to
	// slow is enough for a second stamp to differ at each reconcile.
	slow = 1100 * time.Millisecond
)

// contestant is one operator to compare.
type contestant struct {
	name    string
	manager func(ctx context.Context, config *rest.Config, workers int) (ctrl.Manager, error)
	object  func() client.Object
	list    func() client.ObjectList
	// settled reports whether the operator has done what there was to do for an object.
	settled func(client.Object) bool
}

func contestants() []contestant {
	return []contestant{
		widgets("second stamp", naive.Options{Form: naive.SecondStamp}),
		widgets("second stamp, slow reconcile", naive.Options{Form: naive.SecondStamp, Work: slow}),
		widgets("sub-second stamp", naive.Options{Form: naive.SubSecondStamp}),
		widgets(statusWriter, naive.Options{Form: naive.OnStatusWriter}),
		{
			name:    "Quell's App",
			manager: apps,
			object:  newApp,
			list:    func() client.ObjectList { return &quellv1alpha1.AppList{} },
			settled: func(o client.Object) bool {
				return meta.IsStatusConditionTrue(o.(*quellv1alpha1.App).Status.Conditions, quellv1alpha1.ConditionReady)
			},
		},
	}
}

func widgets(name string, o naive.Options) contestant {
	return contestant{
		name: name,
		manager: func(_ context.Context, config *rest.Config, workers int) (ctrl.Manager, error) {
			o.Workers = workers
			return naive.NewManager(config, o)
		},
		object:  func() client.Object { return naive.NewWidget(namespace, "") },
		list:    func() client.ObjectList { return &naive.WidgetList{} },
		settled: func(o client.Object) bool { return o.(*naive.Widget).Status.LastUpdateTime != "" },
	}
}

// apps is Quell's operator as cmd/manager sets it up.
func apps(ctx context.Context, cfg *rest.Config, workers int) (ctrl.Manager, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:     scheme,
		Cache:      app.CacheOptions(),
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)}, // one after another in this process
	})
	if err != nil {
		return nil, fmt.Errorf("set up the manager: %w", err)
	}
	r, err := app.New(app.Options{
		Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Events: mgr.GetEventRecorder("quell"),
	})
	if err != nil {
		return nil, err
	}
	return mgr, r.SetupWithManager(ctx, mgr, workers)
}

func newApp() client.Object {
	return &quellv1alpha1.App{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace},
		Spec:       quellv1alpha1.AppSpec{Image: "web", Ports: []quellv1alpha1.AppPort{{Name: "http", ContainerPort: 8080}}},
	}
}

// newScheme knows the kinds of all contestants.
func newScheme() (*kruntime.Scheme, error) {
	scheme := kruntime.NewScheme()
	if err := naive.AddToScheme(scheme); err != nil {
		return nil, err
	}
	return scheme, app.AddToScheme(scheme)
}

// install puts the CustomResourceDefinitions of all contestants into the cluster.
func install(ctx context.Context, cluster *localcluster.Cluster) error {
	if err := naive.Install(ctx, cluster.Config()); err != nil {
		return err
	}
	return checkout.InstallDefinitions(ctx, cluster.Config())
}
