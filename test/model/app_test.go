package model

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/controller/app"
)

const namespace = metav1.NamespaceDefault

var shop = client.ObjectKey{Namespace: namespace, Name: "shop"}

// kinds are shared by all scenarios.
var kinds = sync.OnceValues(func() (*Kinds, error) {
	scheme := runtime.NewScheme()
	if err := app.AddToScheme(scheme); err != nil {
		return nil, err
	}
	raw, err := os.ReadFile("../../config/crd/quell.dev_apps.yaml")
	if err != nil {
		return nil, err
	}
	return NewKinds(scheme, raw)
})

func appKinds(t testing.TB) *Kinds {
	t.Helper()
	k, err := kinds()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return k
}

// quell is Quell's own operator.
var quell = Operator{
	Cache: app.CacheOptions,
	Setup: func(ctx context.Context, mgr ctrl.Manager, clock clock.PassiveClock) ([]any, error) {
		r, err := app.New(app.Options{
			Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Events: &events.FakeRecorder{}, Version: "v0.0.0-model", Clock: clock,
		})
		if err != nil {
			return nil, err
		}
		return []any{r}, r.SetupWithManager(ctx, mgr, 1)
	},
}

func newShop() *quellv1alpha1.App {
	a := &quellv1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: shop.Namespace, Name: shop.Name}}
	a.Spec.Image, a.Spec.Replicas = "shop:1", ptr.To[int32](2)
	a.Spec.Ports = []quellv1alpha1.AppPort{{Name: "http", ContainerPort: 8080}}
	return a
}

// appScenario is an App with a Deployment and a Service, and everybody who may interfere.
func appScenario(t testing.TB, converged bool, budgets map[string]int) *Scenario {
	return &Scenario{
		Name: "App", Kinds: appKinds(t), Operator: quell, Converged: converged,
		Begin: func(ctx context.Context, c client.Client) error {
			return c.Create(ctx, newShop(), client.FieldOwner("kubectl"))
		},
		Processes: []Process{Deployments()}, Rivals: appRivals(), Budgets: budgets,
		Bound: appBound(converged), Desired: appAsDesired,
	}
}

// appBound allows two children and three writes of the status (what is asked for is known, it rolls out, it serves) for a new App. Each
// deed of others may cost as much: a child repaired or changed, another one with it, and a rollout. A request of unknown fate is sent
// once more, at most with the one after it; a leader who is not any more may do what the new one did, which undoes nothing.
func appBound(converged bool) func([]Move) int {
	return func(path []Move) int {
		n := 5
		if converged {
			n = 0
		}
		for _, m := range path {
			switch m.Kind {
			case RivalActs, BudgetBetween:
				n += 5
			case BudgetLost, BudgetUnsent, BudgetMidCrash:
				n += 2
			case OldLeader:
				n += 3
			}
		}
		return n
	}
}

// Names of the budgets of people and rivals.
const (
	edits  = "edits"
	rivals = "rivals"
)

// appRivals are the deeds of others.
func appRivals() []Rival {
	return []Rival{
		{Name: "a user asks for another image", Budget: edits, Do: editShop(func(a *quellv1alpha1.App) { a.Spec.Image = "shop:2" })},
		{Name: "a user asks for more replicas", Budget: edits, Do: editShop(func(a *quellv1alpha1.App) { a.Spec.Replicas = ptr.To[int32](3) })},
		{Name: "a user deletes the App", Budget: edits, Do: deleteObject(&quellv1alpha1.App{})},
		{Name: "a rival forces the Deployment's image", Budget: rivals, Can: has("apps", "Deployment"), Do: forceDeployment(map[string]any{
			"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "app", "image": "rival:1"}}}},
		})},
		{Name: "a rival forces the Deployment's replicas", Budget: rivals, Can: has("apps", "Deployment"), Do: forceDeployment(map[string]any{"replicas": int64(7)})},
		{Name: "somebody removes the Deployment's labels", Budget: rivals, Can: has("apps", "Deployment"), Do: removeLabels},
		{Name: "a rival forces the App's phase", Budget: rivals, Can: has("quell.dev", "App"), Do: forcePhase},
		{Name: "somebody empties the App's status", Budget: rivals, Can: has("quell.dev", "App"), Do: emptyStatus},
		{Name: "somebody deletes the Deployment", Budget: rivals, Can: has("apps", "Deployment"), Do: deleteObject(&appsv1.Deployment{})},
		{Name: "somebody deletes the Service", Budget: rivals, Can: has("", "Service"), Do: deleteObject(&corev1.Service{})},
	}
}

func has(group, kind string) func(*Server) bool {
	return func(s *Server) bool { return s.Object(keyOf(group, kind)) != nil }
}

func keyOf(group, kind string) Key {
	return Key{schema.GroupKind{Group: group, Kind: kind}, shop}
}

func editShop(edit func(*quellv1alpha1.App)) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error {
		a := &quellv1alpha1.App{}
		if err := c.Get(ctx, shop, a); err != nil {
			return err
		}
		edit(a)
		return c.Update(ctx, a, client.FieldOwner("kubectl-edit"))
	}
}

func deleteObject(o client.Object) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error {
		o := o.DeepCopyObject().(client.Object)
		o.SetName(shop.Name)
		o.SetNamespace(shop.Namespace)
		return c.Delete(ctx, o)
	}
}

func object(apiVersion, kind string, parts map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": shop.Name, "namespace": shop.Namespace},
	}}
	for name, part := range parts {
		u.Object[name] = part
	}
	return u
}

func forceDeployment(spec map[string]any) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error {
		u := object("apps/v1", "Deployment", map[string]any{"spec": spec})
		return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u.DeepCopy()), client.FieldOwner("rival"), client.ForceOwnership)
	}
}

func removeLabels(ctx context.Context, c client.Client) error {
	d := &appsv1.Deployment{}
	if err := c.Get(ctx, shop, d); err != nil {
		return err
	}
	d.Labels = nil
	return c.Update(ctx, d, client.FieldOwner("kubectl-edit"))
}

func forcePhase(ctx context.Context, c client.Client) error {
	u := object(quellv1alpha1.SchemeGroupVersion.String(), "App", map[string]any{"status": map[string]any{"phase": "Failed"}})
	return c.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("rival"), client.ForceOwnership)
}

func emptyStatus(ctx context.Context, c client.Client) error {
	a := &quellv1alpha1.App{}
	if err := c.Get(ctx, shop, a); err != nil {
		return err
	}
	a.Status = quellv1alpha1.AppStatus{}
	return c.Status().Update(ctx, a, client.FieldOwner("rival"))
}

// appAsDesired compares the children and the status with what the App asks for, in its own words.
func appAsDesired(s *Server) error {
	c := s.Client()
	a, d, svc := &quellv1alpha1.App{}, &appsv1.Deployment{}, &corev1.Service{}
	if err := c.Get(ctx(), shop, a); err != nil {
		if left := s.Keys(); slices.ContainsFunc(left, func(k Key) bool { return k.Kind != "ReplicaSet" }) {
			return fmt.Errorf("the App is gone, but there are %v", left)
		}
		return nil
	}
	if err := c.Get(ctx(), shop, d); err != nil {
		return err
	}
	if err := c.Get(ctx(), shop, svc); err != nil {
		return err
	}
	want := *a.Spec.Replicas
	switch {
	case !metav1.IsControlledBy(d, a) || !metav1.IsControlledBy(svc, a):
		return fmt.Errorf("a child is not the App's")
	case d.Labels[app.LabelManagedBy] != app.ManagedBy:
		return fmt.Errorf("the Deployment has no labels")
	case d.Spec.Template.Spec.Containers[0].Image != a.Spec.Image:
		return fmt.Errorf("the Deployment has image %s", d.Spec.Template.Spec.Containers[0].Image)
	case *d.Spec.Replicas != want:
		return fmt.Errorf("the Deployment has %d replicas", *d.Spec.Replicas)
	case svc.Spec.Ports[0].Port != 8080:
		return fmt.Errorf("the Service has port %d", svc.Spec.Ports[0].Port)
	case a.Status.ObservedGeneration != a.Generation:
		return fmt.Errorf("the status is of generation %d", a.Status.ObservedGeneration)
	case a.Status.Phase != quellv1alpha1.PhaseRunning || !meta.IsStatusConditionTrue(a.Status.Conditions, quellv1alpha1.ConditionReady):
		return fmt.Errorf("the App is %s", a.Status.Phase)
	case ptr.Deref(a.Status.AvailableReplicas, 0) != want || a.Status.Image != a.Spec.Image:
		return fmt.Errorf("the status says %s of %s", a.Status.Ready, a.Status.Image)
	case len(a.Status.Conditions) != 3:
		return fmt.Errorf("there are conditions %v", a.Status.Conditions)
	}
	return nil
}

// deeper is by how many moves a test explores deeper than by default.
func deeper() int {
	n, _ := strconv.Atoi(os.Getenv("QUELL_MODEL_DEEPER"))
	return n
}

// explore explores a scenario and wants no counterexample.
func explore(t *testing.T, s *Scenario, depth int) {
	t.Helper()
	start := time.Now()
	found, err := Explore(s, depth+deeper(), time.Time{})
	t.Logf("%s, %v, tick %s: %s, in %s", s.Name, s.Budgets, s.Tick, found, time.Since(start).Round(time.Millisecond))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
}

// TestByHand explores the App as environment variables say: QUELL_MODEL_DEPTH, QUELL_MODEL_BUDGETS as in "edits=1,restart=1",
// QUELL_MODEL_TICK, and QUELL_MODEL_FRESH for an App that nothing was done for yet.
func TestByHand(t *testing.T) {
	budgets, depth := os.Getenv("QUELL_MODEL_BUDGETS"), os.Getenv("QUELL_MODEL_DEPTH")
	if depth == "" {
		t.Skip("only by hand")
	}
	g := NewWithT(t)
	n, err := strconv.Atoi(depth)
	g.Expect(err).NotTo(HaveOccurred())
	of := map[string]int{}
	for _, b := range strings.Split(budgets, ",") {
		name, number, _ := strings.Cut(b, "=")
		if of[name], err = strconv.Atoi(number); name != "" {
			g.Expect(err).NotTo(HaveOccurred())
		}
	}
	var s *Scenario
	if os.Getenv("QUELL_MODEL_SMALL") != "" {
		s = smallScenario(t, small{}, of)
	} else {
		s = appScenario(t, os.Getenv("QUELL_MODEL_FRESH") == "", of)
	}
	if tick := os.Getenv("QUELL_MODEL_TICK"); tick != "" {
		s.Tick, err = time.ParseDuration(tick)
		g.Expect(err).NotTo(HaveOccurred())
	}
	explore(t, s, n)
}

// The figures of the tests below are those of the default depth, on which continuous integration spends less than a minute.

func TestFreshAppInEveryOrder(t *testing.T) {
	explore(t, appScenario(t, false, map[string]int{edits: 1, rivals: 1}), 3)
}

func TestFreshAppWithFaults(t *testing.T) {
	explore(t, appScenario(t, false, map[string]int{BudgetRestart: 1, BudgetLost: 1, BudgetUnsent: 1, BudgetMidCrash: 1}), 3)
}

func TestConvergedAppInEveryOrder(t *testing.T) {
	explore(t, appScenario(t, true, map[string]int{edits: 1, rivals: 1, BudgetRestart: 1, BudgetLeader: 1}), 3)
}

func TestConvergedAppWithFaults(t *testing.T) {
	explore(t, appScenario(t, true, map[string]int{rivals: 1, BudgetLost: 1, BudgetMidCrash: 1, BudgetRelist: 1}), 3)
}

// TestRivalsInTheMiddle lets others act between two writes of one reconcile.
func TestRivalsInTheMiddle(t *testing.T) {
	explore(t, appScenario(t, true, map[string]int{edits: 1, rivals: 1, BudgetBetween: 1}), 3)
}

// TestConvergedAppAsTimePasses moves the clock on with each move, past the resolution of managedFields.
func TestConvergedAppAsTimePasses(t *testing.T) {
	s := appScenario(t, true, map[string]int{edits: 1, rivals: 1})
	s.Tick = 1100 * time.Millisecond
	explore(t, s, 3)
}
