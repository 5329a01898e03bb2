package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/managedfields/managedfieldstest"
	"k8s.io/client-go/applyconfigurations"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/applyconfig"
	"github.com/hduolab/quell/controller/ssa"
)

var errSent = errors.New("a request was sent")

// shelf is a client whose cache holds these objects. It hands them out as a manager's client does, its own ones when it is asked for
// them and copies otherwise, and fails every request.
type shelf struct {
	client.Client
	scheme  *runtime.Scheme
	objects map[reflect.Type]client.Object
	scalers []autoscalingv2.HorizontalPodAutoscaler
	// copies has it hand out nothing but copies.
	copies bool
}

func (s *shelf) Get(_ context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	object := s.objects[reflect.TypeOf(into)]
	if object == nil || client.ObjectKeyFromObject(object) != key {
		return apierrors.NewNotFound(schema.GroupResource{Resource: fmt.Sprintf("%T", into)}, key.Name)
	}
	o := (&client.GetOptions{}).ApplyOptions(opts)
	if s.copies || o.UnsafeDisableDeepCopy == nil || !*o.UnsafeDisableDeepCopy {
		object = object.DeepCopyObject().(client.Object)
	}
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(object).Elem())
	return nil
}

func (s *shelf) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	if list, ok := into.(*autoscalingv2.HorizontalPodAutoscalerList); ok {
		list.Items = append(list.Items, s.scalers...)
	}
	return nil
}

func (s *shelf) Apply(context.Context, runtime.ApplyConfiguration, ...client.ApplyOption) error {
	return errSent
}

func (s *shelf) SubResource(string) client.SubResourceClient { return unsent{} }

func (s *shelf) Scheme() *runtime.Scheme { return s.scheme }

func (s *shelf) RESTMapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(quellv1alpha1.SchemeGroupVersion.WithKind("App"), meta.RESTScopeNamespace)
	return mapper
}

func (s *shelf) GroupVersionKindFor(o runtime.Object) (schema.GroupVersionKind, error) {
	return apiutil.GVKForObject(o, s.scheme)
}

type unsent struct{ client.SubResourceClient }

func (unsent) Apply(context.Context, runtime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
	return errSent
}

func (s *shelf) put(objects ...client.Object) {
	for _, o := range objects {
		s.objects[reflect.TypeOf(o)] = o
	}
}

func (s *shelf) app() *quellv1alpha1.App {
	return s.objects[reflect.TypeFor[*quellv1alpha1.App]()].DeepCopyObject().(*quellv1alpha1.App)
}

func (s *shelf) deployment() *appsv1.Deployment {
	return s.objects[reflect.TypeFor[*appsv1.Deployment]()].DeepCopyObject().(*appsv1.Deployment)
}

// converged is a Reconciler and the shelf of an App that is as it should be, in a cluster without the Gateway API.
func converged(tb testing.TB) (*Reconciler, *shelf) {
	tb.Helper()
	s := &shelf{scheme: runtime.NewScheme(), objects: map[reflect.Type]client.Object{}}
	if err := AddToScheme(s.scheme); err != nil {
		tb.Fatal(err)
	}
	r, err := New(Options{Client: s, Reader: s})
	if err != nil {
		tb.Fatal(err)
	}
	r.routes.denied = errGatewayMissing
	app := shop()
	deployment := running(app)
	first := observed{app: app, live: map[string]client.Object{}}
	stored(tb, applyconfigurations.NewTypeConverter(s.scheme), ChildManager, "", desiredChild(first, kinds[deploymentKind()]).desired, deployment)
	for range 2 { // a part of the status is kept from the one before
		seen := observed{app: app, live: map[string]client.Object{kindDeployment: deployment}}
		stored(tb, applyconfig.NewTypeConverter(s.scheme), statusManager, "status", desiredStatus(seen, unchanged(seen)), app)
	}
	s.put(app, deployment)
	return r, s
}

func deploymentKind() int {
	for i, k := range kinds {
		if k.name == kindDeployment {
			return i
		}
	}
	return -1
}

// unchanged is what becomes of children that are as they should be.
func unchanged(seen observed) []applied {
	var children []applied
	for _, c := range desiredChildren(seen) {
		a := applied{child: c}
		if c.live != nil {
			a.Result = ssa.Result{Outcome: ssa.Unchanged, Object: c.live}
		}
		children = append(children, a)
	}
	return children
}

// stored brings an apply into an object, by the API server's own field management.
func stored(tb testing.TB, types managedfields.TypeConverter, manager, subresource string, desired runtime.ApplyConfiguration, object client.Object) {
	tb.Helper()
	raw, err := json.Marshal(desired)
	u := &unstructured.Unstructured{}
	if err = errors.Join(err, json.Unmarshal(raw, &u.Object)); err != nil {
		tb.Fatal(err)
	}
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		c.(map[string]any)["lastTransitionTime"] = "2026-01-01T00:00:00Z"
	}
	if len(conditions) > 0 {
		err = unstructured.SetNestedSlice(u.Object, conditions, "status", "conditions")
	}
	server := managedfieldstest.NewTestFieldManagerSubresource(types, u.GroupVersionKind(), subresource)
	if err = errors.Join(err, server.Apply(u, manager, true)); err != nil {
		tb.Fatal(err)
	}
	whole, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		tb.Fatal(err)
	}
	for field, value := range server.Live().(*unstructured.Unstructured).Object {
		if before, isMap := whole[field].(map[string]any); isMap && field == "metadata" {
			maps.Copy(before, value.(map[string]any))
		} else {
			whole[field] = value
		}
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(whole, object); err != nil {
		tb.Fatal(err)
	}
	object.SetManagedFields(server.ManagedFields())
}

func once(r *Reconciler, tb testing.TB) (ctrl.Result, error) {
	tb.Helper()
	return r.Reconcile(tb.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "team", Name: "shop"}})
}

// becomeSettled looks as often as it takes until nothing is looked at anew.
func becomeSettled(g Gomega, r *Reconciler, tb testing.TB) {
	tb.Helper()
	for range 2 { // the first compares, the second remembers
		g.Expect(once(r, tb)).To(BeZero())
	}
	g.Expect(r.settled.apps).To(HaveLen(1))
}

func TestNothingIsComparedWhileTheCacheHoldsTheSameObjects(t *testing.T) {
	g := NewWithT(t)
	r, s := converged(t)
	becomeSettled(g, r, t)
	r.children, r.status = nil, nil // which a look that compares needs
	g.Expect(once(r, t)).To(BeZero())

	s.put(s.deployment())
	g.Expect(func() { _, _ = once(r, t) }).To(Panic(), "an equal object, but another one, has to be compared")
}

func TestCopiesAreNeverTakenForTheSame(t *testing.T) {
	g := NewWithT(t)
	r, s := converged(t)
	s.copies = true
	for range 4 {
		g.Expect(once(r, t)).To(BeZero())
	}
	r.children, r.status = nil, nil // which a look that compares needs
	g.Expect(func() { _, _ = once(r, t) }).To(Panic())
}

// TestAChangeIsNeverSkipped changes what was observed in each of the ways in which it can change, versions left as they are.
func TestAChangeIsNeverSkipped(t *testing.T) {
	scaler := autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "x", UID: "x", ManagedFields: []metav1.ManagedFieldsEntry{{}}}}
	scaler.Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "shop"}
	for name, change := range map[string]func(r *Reconciler, s *shelf){
		"the App's spec": func(_ *Reconciler, s *shelf) { app := s.app(); app.Spec.Image = "shop:2"; s.put(app) },
		"its children": func(_ *Reconciler, s *shelf) {
			app := s.app()
			app.Spec.Service = &quellv1alpha1.AppService{ExtraPorts: []quellv1alpha1.AppExtraPort{{Name: "x", Port: 80}}}
			s.put(app)
		},
		"a child's status":    func(_ *Reconciler, s *shelf) { d := s.deployment(); d.Status.AvailableReplicas = 1; s.put(d) },
		"a child is gone":     func(_ *Reconciler, s *shelf) { delete(s.objects, reflect.TypeFor[*appsv1.Deployment]()) },
		"an autoscaler":       func(_ *Reconciler, s *shelf) { s.scalers = append(s.scalers, scaler) },
		"the Gateway API":     func(r *Reconciler, _ *shelf) { r.routes.denied = errors.New("cannot be read") },
		"nothing of the kind": nil,
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r, s := converged(t)
			becomeSettled(g, r, t)
			if change == nil {
				s.put(s.deployment(), s.app())
				g.Expect(once(r, t)).To(BeZero())
				return
			}
			change(r, s)
			_, err := once(r, t)
			if name != "the Gateway API" { // which an App without a route need not tell
				g.Expect(err).To(MatchError(errSent))
			}
			g.Expect(r.settled.apps).To(BeEmpty())
		})
	}
}

// TestASightingTellsAllThatIsObserved fails for a new field of observed until somebody has thought about it.
func TestASightingTellsAllThatIsObserved(t *testing.T) {
	told := map[string]string{
		"app": "objects", "live": "objects", "scalers": "objects", "configHash": "configHash", "routeError": "noRoutes, or nothing is kept",
		"configStalled": "nothing is kept", "configMoving": "nothing is kept", "former": "nothing is kept",
		"verdict": "decided later", "sure": "decided later", "stuck": "decided later", "now": "decided later", "version": "of the process",
	}
	for f := range reflect.TypeFor[observed]().Fields() {
		NewWithT(t).Expect(told).To(HaveKey(f.Name))
	}
}

func TestASightingIsOfAllThatIsDecidedFrom(t *testing.T) {
	g := NewWithT(t)
	entry := func() []metav1.ManagedFieldsEntry { return []metav1.ManagedFieldsEntry{{Manager: "m"}} }
	seen := observed{app: shop(), configHash: "a"}
	seen.app.ManagedFields = entry()
	first, whole := seen.sight()
	g.Expect(whole).To(BeTrue())
	again, _ := seen.sight()
	g.Expect(first.is(again)).To(BeTrue())

	for name, change := range map[string]func(*observed){
		"another App":    func(o *observed) { o.app = o.app.DeepCopy() },
		"another hash":   func(o *observed) { o.configHash = "b" },
		"no Gateway API": func(o *observed) { o.routeError = errGatewayMissing },
		"one autoscaler more": func(o *observed) {
			o.scalers = []autoscalingv2.HorizontalPodAutoscaler{{ObjectMeta: metav1.ObjectMeta{ManagedFields: entry()}}}
		},
		"a child that is there": func(o *observed) {
			o.live = map[string]client.Object{kindDeployment: &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{ManagedFields: entry()}}}
		},
	} {
		other := seen
		change(&other)
		sight, whole := other.sight()
		g.Expect(whole).To(BeTrue(), name)
		g.Expect(first.is(sight)).To(BeFalse(), name)
	}
	for name, spoil := range map[string]func(*observed){
		"config that stalls":          func(o *observed) { o.configStalled = &finding{} },
		"config that moves":           func(o *observed) { o.configMoving = &finding{} },
		"former children":             func(o *observed) { o.former = []client.Object{&appsv1.Deployment{}} },
		"a route that cannot be read": func(o *observed) { o.routeError = errSent },
		"an App without ownership":    func(o *observed) { o.app = shop() },
	} {
		other := seen
		spoil(&other)
		_, whole := other.sight()
		g.Expect(whole).To(BeFalse(), name)
	}
}

func TestOnlyANewLookAtNothingSettles(t *testing.T) {
	g := NewWithT(t)
	known := ssa.Result{Outcome: ssa.Unchanged, Remembered: true}
	well := applied{child: child{wanted: true}, Result: known}
	g.Expect(isSettled([]applied{well, {}}, known, ctrl.Result{})).To(BeTrue())
	g.Expect(isSettled(nil, known, ctrl.Result{RequeueAfter: 1})).To(BeFalse())
	g.Expect(isSettled(nil, ssa.Result{Outcome: ssa.Unchanged}, ctrl.Result{})).To(BeFalse())
	for name, spoil := range map[string]func(*applied){
		"compared":    func(a *applied) { a.Remembered = false },
		"failed":      func(a *applied) { a.err = errSent },
		"foreign":     func(a *applied) { a.foreign = "x" },
		"leaving":     func(a *applied) { a.leaving = true },
		"held back":   func(a *applied) { a.pending = true },
		"stalled":     func(a *applied) { a.stalled = &finding{} },
		"moving":      func(a *applied) { a.moving = &finding{} },
		"not applied": func(a *applied) { a.Result = ssa.Result{} },
	} {
		a := well
		spoil(&a)
		g.Expect(isSettled([]applied{a}, known, ctrl.Result{})).To(BeFalse(), name)
	}
}

// The steady state of all Apps, so it has to stay cheap. Allocations, unlike time, do not depend on the machine.
func TestANoOpReconcileIsCheap(t *testing.T) {
	g := NewWithT(t)
	r, _ := converged(t)
	becomeSettled(g, r, t)
	g.Expect(testing.AllocsPerRun(100, func() { _, _ = once(r, t) })).To(BeNumerically("<", 120))
}
