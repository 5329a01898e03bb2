package scale

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/controller/app"
	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// perNamespace is how many Apps share a namespace.
	perNamespace = 100
	// clients create objects at once, and as many say that Deployments are available.
	clients = 8
	// backlog bounds the Deployments of which that is still to be said.
	backlog = 1 << 20
)

// world is everything but the operator: people, and Kubernetes' Deployment controller. Safe for concurrent use.
type world struct {
	client client.Client
	// changed are the Deployments with a generation that was not told to be available yet.
	changed chan *appsv1.Deployment

	mu sync.Mutex
	// done are the Apps that are Ready.
	done map[types.NamespacedName]bool
	// failed is the first error of the Deployment controller.
	failed error
}

// startWorld starts what goes on by itself until ctx is done.
func startWorld(ctx context.Context, config *rest.Config, scheme *runtime.Scheme) (*world, error) {
	config = rest.CopyConfig(config)
	config.UserAgent = "bench-world"
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	w := &world{client: c, changed: make(chan *appsv1.Deployment, backlog), done: map[types.NamespacedName]bool{}}
	informers, err := cache.New(config, cache.Options{Scheme: scheme, ByObject: map[client.Object]cache.ByObject{
		&appsv1.Deployment{}: {
			Label: labels.SelectorFromSet(labels.Set{app.LabelManagedBy: app.ManagedBy}), Transform: essence,
		},
		&quellv1alpha1.App{}: {Transform: readiness},
	}})
	if err != nil {
		return nil, err
	}
	for object, see := range map[client.Object]func(any){&appsv1.Deployment{}: w.seeDeployment, &quellv1alpha1.App{}: w.seeApp} {
		informer, err := informers.GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, err
		}
		handler := toolscache.ResourceEventHandlerFuncs{AddFunc: see, UpdateFunc: func(_, object any) { see(object) }}
		if _, err := informer.AddEventHandler(handler); err != nil {
			return nil, err
		}
	}
	go func() { w.fail(informers.Start(ctx)) }()
	for range clients {
		go w.control(ctx)
	}
	return w, nil
}

// essence keeps of a Deployment what its controller is played with.
func essence(object any) (any, error) {
	d, ok := object.(*appsv1.Deployment)
	if !ok {
		return object, nil
	}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Name: d.Name, Namespace: d.Namespace, UID: d.UID, ResourceVersion: d.ResourceVersion, Generation: d.Generation,
		},
		Spec:   appsv1.DeploymentSpec{Replicas: d.Spec.Replicas},
		Status: appsv1.DeploymentStatus{ObservedGeneration: d.Status.ObservedGeneration},
	}, nil
}

// readiness keeps of an App its name, and its condition Ready if that is True of the newest generation.
func readiness(object any) (any, error) {
	a, ok := object.(*quellv1alpha1.App)
	if !ok {
		return object, nil
	}
	kept := &quellv1alpha1.App{ObjectMeta: metav1.ObjectMeta{Name: a.Name, Namespace: a.Namespace, ResourceVersion: a.ResourceVersion, UID: a.UID}}
	if c := meta.FindStatusCondition(a.Status.Conditions, quellv1alpha1.ConditionReady); c != nil &&
		c.Status == metav1.ConditionTrue && a.Status.ObservedGeneration == a.Generation {
		kept.Status.Conditions = []metav1.Condition{*c}
	}
	return kept, nil
}

func (w *world) seeApp(object any) {
	a := object.(*quellv1alpha1.App)
	w.mu.Lock()
	defer w.mu.Unlock()
	if key := client.ObjectKeyFromObject(a); len(a.Status.Conditions) > 0 {
		w.done[key] = true
	} else {
		delete(w.done, key)
	}
}

func (w *world) seeDeployment(object any) {
	if d := object.(*appsv1.Deployment); d.Status.ObservedGeneration != d.Generation {
		w.changed <- d
	}
}

// control tells of Deployments that all their Pods are new and available, as their controller would in the end: one write for each
// generation.
func (w *world) control(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case d := <-w.changed:
			if err := w.finish(ctx, d); err != nil && ctx.Err() == nil {
				w.fail(err)
			}
		}
	}
}

// finish tells that the rollout of a Deployment is over. It sends a patch, since an update of the status would have to say all the rest
// too: it takes owner references away.
func (w *world) finish(ctx context.Context, d *appsv1.Deployment) error {
	n, now := ptr.Deref(d.Spec.Replicas, 1), metav1.Now()
	condition := func(kind appsv1.DeploymentConditionType, reason, message string) appsv1.DeploymentCondition {
		return appsv1.DeploymentCondition{
			Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: message, LastUpdateTime: now, LastTransitionTime: now,
		}
	}
	patch, err := json.Marshal(map[string]any{"status": appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n,
		Conditions: []appsv1.DeploymentCondition{
			condition(appsv1.DeploymentAvailable, "MinimumReplicasAvailable", "Deployment has minimum availability."),
			condition(appsv1.DeploymentProgressing, "NewReplicaSetAvailable", fmt.Sprintf("ReplicaSet %q has successfully progressed.", d.Name+"-5d8f9c6b7")),
		},
	}})
	if err != nil {
		return err
	}
	return w.client.Status().Patch(ctx, d.DeepCopy(), client.RawPatch(types.MergePatchType, patch), client.FieldOwner("kube-controller-manager"))
}

func (w *world) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed == nil {
		w.failed = err
	}
}

func (w *world) ready() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.done)
}

// allReady waits until n Apps are Ready.
func (w *world) allReady(ctx context.Context, n int, ended <-chan struct{}) error {
	for w.ready() < n {
		w.mu.Lock()
		failed := w.failed
		w.mu.Unlock()
		if failed != nil {
			return fmt.Errorf("play the Deployment controller: %w", failed)
		}
		if err := pause(ctx, 50*time.Millisecond, ended); err != nil {
			return fmt.Errorf("%d of %d Apps are Ready: %w", w.ready(), n, err)
		}
	}
	return nil
}

// makeApps creates Apps with one port in namespaces of perNamespace. Their Services have no cluster IP: for each one that it gives, the
// API server counts all that it gave before (Kubernetes 1.37), which at 30,000 Services took two thirds of its time.
func (w *world) makeApps(ctx context.Context, n int) error {
	return w.make(ctx, "apps", n, func(meta metav1.ObjectMeta) client.Object {
		return &quellv1alpha1.App{ObjectMeta: meta, Spec: quellv1alpha1.AppSpec{
			Image: "registry.example.com/team/shop:1.0.0", Replicas: ptr.To[int32](2),
			Ports:   []quellv1alpha1.AppPort{{Name: "http", ContainerPort: 8080}},
			Service: &quellv1alpha1.AppService{Mode: quellv1alpha1.ServiceHeadless},
		}}
	})
}

// makeForeign creates Deployments without any label of ours.
func (w *world) makeForeign(ctx context.Context, n int) error {
	return w.make(ctx, "foreign", n, func(meta metav1.ObjectMeta) client.Object {
		selector := map[string]string{"app": meta.Name}
		meta.Labels = selector
		return &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](2), Selector: &metav1.LabelSelector{MatchLabels: selector},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: selector},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "registry.example.com/team/other:1.0.0"}}},
			},
		}}
	})
}

// make creates objects in namespaces of their own, several at once.
func (w *world) make(ctx context.Context, prefix string, n int, object func(metav1.ObjectMeta) client.Object) error {
	for i := 0; i < n; i += perNamespace {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace(prefix, i)}}
		if err := w.client.Create(ctx, ns); err != nil {
			return fmt.Errorf("create a namespace: %w", err)
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(clients)
	for i := range n {
		group.Go(func() error {
			o := object(metav1.ObjectMeta{Namespace: namespace(prefix, i), Name: fmt.Sprintf("shop-%06d", i)})
			if err := w.client.Create(ctx, o); err != nil {
				return fmt.Errorf("create one of the %s: %w", prefix, err)
			}
			return nil
		})
	}
	return group.Wait()
}

func namespace(prefix string, i int) string { return fmt.Sprintf("%s-%d", prefix, i/perNamespace) }
