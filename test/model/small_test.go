package model

import (
	"cmp"
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/applyconfigurations"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/applyconfig"
	quellv1alpha1ac "github.com/hduolab/quell/applyconfig/quell/v1alpha1"
	"github.com/hduolab/quell/controller/eventfilter"
	"github.com/hduolab/quell/controller/fieldowners"
	"github.com/hduolab/quell/controller/ssa"
)

// small is the smallest operator that an author would make of Quell's library: of an App it makes a ConfigMap that says the image,
// and reports in the App's status what the ConfigMap says. What is set in it is a guard broken, for tests of the explorer itself.
type small struct {
	// filter stands for the event filter of Apps, children for that of ConfigMaps.
	filter, children predicate.Predicate
	// stamped puts the time into the status, naive writes the status by update.
	stamped, naive bool

	client  client.Client
	applier *ssa.Applier
	status  *ssa.StatusWriter
	clock   clock.PassiveClock
}

const smallStatus = "small-status"

func (r small) setup(_ context.Context, mgr ctrl.Manager, clock clock.PassiveClock) ([]any, error) {
	o := ssa.Options{Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Clock: clock}
	children, report := o, o
	children.FieldManager, children.Types = "small", applyconfigurations.NewTypeConverter(mgr.GetScheme())
	report.FieldManager, report.Types = smallStatus, applyconfig.NewTypeConverter(mgr.GetScheme())
	r.client, r.clock = mgr.GetClient(), clock
	var err error
	if r.applier, err = ssa.NewApplier(children); err != nil {
		return nil, err
	}
	if r.status, err = ssa.NewStatusWriter(ssa.StatusOptions{Options: report, Details: []string{"image"}, Settle: time.Second}); err != nil {
		return nil, err
	}
	if r.filter == nil {
		r.filter = eventfilter.OwnWrites{Manager: smallStatus, Subresource: "status", Types: report.Types, Scheme: mgr.GetScheme()}.Dropped()
	}
	if r.children == nil {
		r.children = eventfilter.Projected(func(m *corev1.ConfigMap) any {
			return []any{m.Data, m.Labels, m.OwnerReferences, m.DeletionTimestamp, eventfilter.OwnedFields(m, "small", "")}
		})
	}
	return []any{r.applier, r.status}, ctrl.NewControllerManagedBy(mgr).Named("small").
		For(&quellv1alpha1.App{}, builder.WithPredicates(r.filter)).
		Owns(&corev1.ConfigMap{}, builder.WithPredicates(r.children)).
		Complete(r)
}

func (r small) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	a, live := &quellv1alpha1.App{}, &corev1.ConfigMap{}
	if err := r.client.Get(ctx, request.NamespacedName, a); err != nil || a.DeletionTimestamp != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if err := r.client.Get(ctx, request.NamespacedName, live); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	} else if err != nil {
		live = nil
	}
	child, err := r.applier.Apply(ctx, ssa.Intent{Desired: desiredConfigMap(a), Live: live, Inputs: ssa.Generation(a)})
	if err != nil {
		return ctrl.Result{}, err
	}
	said := ""
	if m, ok := child.Object.(*corev1.ConfigMap); ok {
		said = m.Data["image"]
	}
	written, err := r.report(ctx, a, said, child)
	if err != nil {
		return ctrl.Result{}, err
	}
	again := cmp.Or(min(child.RetryAfter, written.RetryAfter), max(child.RetryAfter, written.RetryAfter))
	if child.Outcome == ssa.Gone || child.Outcome == ssa.Replaced {
		again = time.Second
	}
	return ctrl.Result{RequeueAfter: again}, nil
}

func desiredConfigMap(a *quellv1alpha1.App) *corev1ac.ConfigMapApplyConfiguration {
	return corev1ac.ConfigMap(a.Name, a.Namespace).WithData(map[string]string{"image": a.Spec.Image}).
		WithOwnerReferences(metav1ac.OwnerReference().WithAPIVersion(quellv1alpha1.SchemeGroupVersion.String()).WithKind("App").
			WithName(a.Name).WithUID(a.UID).WithController(true))
}

func (r small) report(ctx context.Context, a *quellv1alpha1.App, said string, child ssa.Result) (ssa.Result, error) {
	if r.naive {
		a.Status.ObservedGeneration, a.Status.Image, a.Status.Phase = a.Generation, said, quellv1alpha1.PhaseRunning
		a.Status.URL = fmt.Sprintf("http://x/%d", r.clock.Now().Unix())
		return ssa.Result{}, r.client.Status().Update(ctx, a, client.FieldOwner(smallStatus))
	}
	status := quellv1alpha1ac.AppStatus().WithObservedGeneration(a.Generation).WithPhase(quellv1alpha1.PhaseRunning).WithImage(said).
		WithConditions(metav1ac.Condition().WithType("Ready").WithStatus(metav1.ConditionTrue).WithReason("Said").WithMessage("").
			WithObservedGeneration(a.Generation))
	if r.stamped {
		status.WithURL(fmt.Sprintf("http://x/%d", r.clock.Now().Unix()))
	}
	return r.status.Write(ctx, ssa.Intent{
		Desired: quellv1alpha1ac.App(a.Name, a.Namespace).WithStatus(status), Live: a, Inputs: ssa.Version(child.Object), Children: 1,
	})
}

func smallScenario(t testing.TB, r small, budgets map[string]int) *Scenario {
	return &Scenario{
		Name: "the smallest operator", Kinds: appKinds(t), Operator: Operator{Setup: r.setup}, Converged: true,
		Begin: func(ctx context.Context, c client.Client) error {
			return c.Create(ctx, newShop(), client.FieldOwner("kubectl"))
		},
		Rivals: smallRivals(), Budgets: budgets, Bound: smallBound, Desired: smallAsDesired,
	}
}

func smallRivals() []Rival {
	isThere := has("quell.dev", "App")
	return []Rival{
		{Name: "a user asks for another image", Budget: edits, Do: editShop(func(a *quellv1alpha1.App) { a.Spec.Image += "1" })},
		{Name: "a user deletes the App", Budget: edits, Do: deleteObject(&quellv1alpha1.App{})},
		{Name: "a rival forces the App's phase", Budget: rivals, Can: isThere, Do: forcePhase},
		{Name: "somebody empties the App's status", Budget: rivals, Can: isThere, Do: emptyStatus},
		{Name: "somebody forgets who owns the App's fields", Budget: rivals, Can: isThere, Do: forgetOwners},
		{Name: "a rival forces the ConfigMap's data", Budget: rivals, Can: has("", "ConfigMap"), Do: forceData},
		{Name: "somebody removes the ConfigMap's data", Budget: rivals, Can: has("", "ConfigMap"), Do: removeData},
		{Name: "somebody deletes the ConfigMap", Budget: rivals, Can: has("", "ConfigMap"), Do: deleteObject(&corev1.ConfigMap{})},
	}
}

func forgetOwners(ctx context.Context, c client.Client) error {
	a := &quellv1alpha1.App{}
	if err := c.Get(ctx, shop, a); err != nil {
		return err
	}
	a.ManagedFields = []metav1.ManagedFieldsEntry{{}}
	return c.Update(ctx, a, client.FieldOwner("kubectl-edit"))
}

func forceData(ctx context.Context, c client.Client) error {
	u := object("v1", "ConfigMap", map[string]any{"data": map[string]any{"image": "rival:1"}})
	return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("rival"), client.ForceOwnership)
}

func removeData(ctx context.Context, c client.Client) error {
	m := &corev1.ConfigMap{}
	if err := c.Get(ctx, shop, m); err != nil {
		return err
	}
	m.Data = nil
	return c.Update(ctx, m, client.FieldOwner("kubectl-edit"))
}

// smallBound allows two requests, for the ConfigMap and the status, and one more for the status, for each deed of others and for each
// request whose fate was unknown.
func smallBound(path []Move) int {
	n := 0
	for _, m := range path {
		switch m.Kind {
		case RivalActs, BudgetBetween, BudgetLost, BudgetUnsent, BudgetMidCrash, OldLeader:
			n += 3
		}
	}
	return n
}

func smallAsDesired(s *Server) error {
	c := s.Client()
	a, m := &quellv1alpha1.App{}, &corev1.ConfigMap{}
	if err := c.Get(ctx(), shop, a); err != nil {
		if left := s.Keys(); len(left) > 0 {
			return fmt.Errorf("the App is gone, but there are %v", left)
		}
		return nil
	}
	if err := c.Get(ctx(), shop, m); err != nil {
		return err
	}
	ready := meta.FindStatusCondition(a.Status.Conditions, "Ready")
	owned, _ := fieldowners.Find(fieldowners.Parse(a.ManagedFields), fieldowners.Owner{
		Manager: smallStatus, Operation: metav1.ManagedFieldsOperationApply, Subresource: "status", APIVersion: quellv1alpha1.SchemeGroupVersion.String(),
	})
	switch {
	case !metav1.IsControlledBy(m, a):
		return fmt.Errorf("the ConfigMap is not the App's")
	case m.Data["image"] != a.Spec.Image:
		return fmt.Errorf("the ConfigMap says %s, not %s", m.Data["image"], a.Spec.Image)
	case a.Status.Image != a.Spec.Image || a.Status.ObservedGeneration != a.Generation || a.Status.Phase != quellv1alpha1.PhaseRunning:
		return fmt.Errorf("the status is %+v", a.Status)
	case ready == nil || ready.Status != metav1.ConditionTrue || ready.ObservedGeneration != a.Generation || ready.LastTransitionTime.IsZero():
		return fmt.Errorf("the condition is %+v", ready)
	case owned.Fields == nil || owned.Fields.Size() < 8:
		return fmt.Errorf("the operator owns no more than %v of the status", owned.Fields)
	}
	return nil
}

func TestSmallestOperatorInEveryOrder(t *testing.T) {
	explore(t, smallScenario(t, small{}, map[string]int{
		edits: 1, rivals: 1, BudgetRestart: 1, BudgetLeader: 1, BudgetLost: 1, BudgetUnsent: 1, BudgetMidCrash: 1, BudgetBetween: 1,
	}), 4)
}

func TestSmallestOperatorAsTimePasses(t *testing.T) {
	s := smallScenario(t, small{}, map[string]int{edits: 1, rivals: 2})
	s.Tick = 1100 * time.Millisecond
	explore(t, s, 4)
}
