package app

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/controller/fieldowners"
	"github.com/hduolab/quell/controller/ssa"
)

var (
	midday      = time.Date(2026, 5, 1, 12, 0, 0, 987654321, time.UTC)
	scalerOwner = fieldowners.Owner{Manager: "kubectl", Operation: metav1.ManagedFieldsOperationUpdate, Subresource: "scale", APIVersion: "apps/v1"}
	applier     = fieldowners.Owner{Manager: "argocd", Operation: metav1.ManagedFieldsOperationApply, APIVersion: "apps/v1"}
)

func left(path string, owners ...fieldowners.Owner) ssa.Reason {
	return ssa.Reason{Change: ssa.Yielded, Path: path, Owners: owners}
}

// childWith is a child that exists, with a result.
func childWith(kind string, result ssa.Result) applied {
	return applied{child: child{kind: kind, name: "shop", live: running(shop())}, Result: result}
}

func conflictsAt(now time.Time, before []quellv1alpha1.FieldConflict, children ...applied) []quellv1alpha1.FieldConflict {
	app := shop()
	app.Status.Conflicts = before
	return fieldConflicts(observed{app: app, now: now}, children)
}

func TestConflictsAreListedByKindAndPath(t *testing.T) {
	g := NewWithT(t)
	children := []applied{
		childWith(kindService, ssa.Result{Outcome: ssa.Conflicted, Conflicts: []fieldowners.Conflict{{Path: ".spec.type", Owner: applier}}}),
		childWith(kindDeployment, ssa.Result{Outcome: ssa.Unchanged, Yielded: []ssa.Reason{left(".spec.replicas", scalerOwner), left(".spec.paused", scalerOwner, applier)}}),
		childWith(kindIngress, ssa.Result{Outcome: ssa.Contended, Reasons: []ssa.Reason{{Change: ssa.Added, Path: ".spec.rules"}}}),
		childWith(kindBudget, ssa.Result{Outcome: ssa.Applied, Reasons: []ssa.Reason{{Change: ssa.Taken, Path: ".spec.minAvailable", Owners: []fieldowners.Owner{applier}}}}),
		{child: child{kind: kindNetworkPolicy}, Result: ssa.Result{Outcome: ssa.Conflicted, Conflicts: []fieldowners.Conflict{{Path: ".spec", Owner: applier}}}},
	}
	at := metav1.NewTime(midday.Truncate(time.Second))
	want := []quellv1alpha1.FieldConflict{
		{Kind: "Deployment", Path: ".spec.paused", Mode: "Yield", Manager: "argocd", Operation: "Apply", Since: at},
		{Kind: "Deployment", Path: ".spec.replicas", Mode: "Yield", Manager: "kubectl", Operation: "Update", Subresource: "scale", Since: at},
		{Kind: "Ingress", Path: ".spec.rules", Mode: "Force", Since: at},
		{Kind: "Service", Path: ".spec.type", Mode: "Report", Manager: "argocd", Operation: "Apply", Since: at},
	}
	for range 20 {
		rand.Shuffle(len(children), func(i, j int) { children[i], children[j] = children[j], children[i] })
		g.Expect(conflictsAt(midday, nil, children...)).To(Equal(want), "taken once is no conflict, nor is an object that somebody made meanwhile")
	}
}

func TestSinceStaysWhileTheWriterIsTheSame(t *testing.T) {
	g := NewWithT(t)
	yielded := func(o fieldowners.Owner) applied {
		return childWith(kindDeployment, ssa.Result{Yielded: []ssa.Reason{left(".spec.replicas", o)}})
	}
	first := conflictsAt(midday, nil, yielded(scalerOwner))
	g.Expect(conflictsAt(midday.Add(time.Hour), first, yielded(scalerOwner))).To(Equal(first))
	reported := childWith(kindDeployment, ssa.Result{Outcome: ssa.Conflicted, Conflicts: []fieldowners.Conflict{{Path: ".spec.replicas", Owner: scalerOwner}}})
	g.Expect(conflictsAt(midday.Add(time.Hour), first, reported)[0].Since).To(Equal(first[0].Since), "another rule is no other conflict")

	later := metav1.NewTime(midday.Add(time.Hour).Truncate(time.Second))
	for name, other := range map[string]fieldowners.Owner{
		"manager":     {Manager: "helm", Operation: scalerOwner.Operation, Subresource: scalerOwner.Subresource},
		"operation":   {Manager: scalerOwner.Manager, Operation: "Apply", Subresource: scalerOwner.Subresource},
		"subresource": {Manager: scalerOwner.Manager, Operation: scalerOwner.Operation},
	} {
		g.Expect(conflictsAt(midday.Add(time.Hour), first, yielded(other))[0].Since).To(Equal(later), name)
	}
	elsewhere := childWith(kindService, ssa.Result{Yielded: []ssa.Reason{left(".spec.replicas", scalerOwner)}})
	g.Expect(conflictsAt(midday.Add(time.Hour), first, elsewhere)[0].Since).To(Equal(later), "kind")
}

func TestConflictsAreBounded(t *testing.T) {
	g := NewWithT(t)
	var reasons []ssa.Reason
	for i := range 100 {
		reasons = append(reasons, left(fmt.Sprintf(".metadata.labels[%q]", fmt.Sprintf("%03d%s", i, strings.Repeat("é", 400))), scalerOwner))
	}
	children := []applied{childWith(kindDeployment, ssa.Result{Yielded: reasons})}
	list := conflictsAt(midday, nil, children...)
	g.Expect(list).To(HaveLen(32))
	keys := map[string]bool{}
	for _, c := range list {
		g.Expect(len(c.Path)).To(BeNumerically("<=", 512))
		keys[c.Path] = true
	}
	g.Expect(keys).To(HaveLen(32), "map keys")
	condition := fieldConflict(fieldConflicts(observed{app: shop(), now: midday}, children))
	g.Expect(len(condition.message)).To(BeNumerically("<=", maxMessage))
	again := []applied{childWith(kindDeployment, ssa.Result{Yielded: []ssa.Reason{left(strings.Repeat("x", 600)+"1", scalerOwner), left(strings.Repeat("x", 600)+"2", scalerOwner)}})}
	g.Expect(conflictsAt(midday, nil, again...)).To(HaveLen(1), "two paths that are one when cut")
}

func TestTheConditionFieldConflict(t *testing.T) {
	yields := childWith(kindDeployment, ssa.Result{Yielded: []ssa.Reason{left(".spec.replicas", scalerOwner)}})
	reports := childWith(kindService, ssa.Result{Outcome: ssa.Conflicted, Conflicts: []fieldowners.Conflict{{Path: ".spec.type", Owner: applier}}})
	fights := childWith(kindIngress, ssa.Result{Outcome: ssa.Contended, Reasons: []ssa.Reason{{Change: ssa.Added, Path: ".spec.rules"}}})
	const (
		yielded  = `Deployment .spec.replicas is left to "kubectl" (Update, scale)`
		reported = `Service .spec.type belongs to "argocd" (Apply), so nothing of the Service is applied`
		fought   = `Ingress .spec.rules is taken again and again by an unknown writer`
	)
	for name, c := range map[string]struct {
		children        []applied
		reason, message string
	}{
		"a yield":    {[]applied{yields}, "Yielded", yielded},
		"a report":   {[]applied{reports}, "Reported", reported},
		"a fight":    {[]applied{fights}, "FieldContended", fought},
		"all":        {[]applied{yields, fights, reports}, "Reported", yielded + "; " + fought + "; " + reported},
		"two of all": {[]applied{fights, yields}, "FieldContended", yielded + "; " + fought},
	} {
		g := NewWithT(t)
		condition := fieldConflict(fieldConflicts(observed{app: shop(), now: midday}, c.children))
		g.Expect(*condition).To(Equal(aspect{kind: "FieldConflict", is: true, finding: finding{c.reason, c.message}}), name)
	}
	NewWithT(t).Expect(fieldConflict(fieldConflicts(observed{app: shop(), now: midday}, []applied{childWith(kindDeployment, ssa.Result{Outcome: ssa.Unchanged})}))).To(BeNil())
}

func TestAYieldLeavesTheAppReady(t *testing.T) {
	g := NewWithT(t)
	app := shop()
	live := running(app)
	seen := observed{app: app, now: midday, live: map[string]client.Object{kindDeployment: live}}
	status := desiredStatus(seen, []applied{{child: child{kind: kindDeployment, name: "shop", live: live}, Result: ssa.Result{
		Outcome: ssa.Unchanged, Object: live, Yielded: []ssa.Reason{left(".spec.minReadySeconds", applier)},
	}}}).Status
	g.Expect(*status.Phase).To(Equal(quellv1alpha1.PhaseRunning))
	g.Expect(status.Conflicts).To(HaveLen(1))
	g.Expect(says(status, quellv1alpha1.ConditionReady)).To(BeTrue())
	g.Expect(says(status, quellv1alpha1.ConditionFieldConflict)).To(BeTrue())
	g.Expect(says(status, quellv1alpha1.ConditionStalled)).To(BeFalse())
}

func TestAConflictOutlivesAnApplyThatFails(t *testing.T) {
	g := NewWithT(t)
	row := func(kind, path string, mode quellv1alpha1.ConflictMode) quellv1alpha1.FieldConflict {
		return quellv1alpha1.FieldConflict{Kind: kind, Path: path, Mode: mode, Manager: "kubectl", Since: metav1.NewTime(midday.Truncate(time.Second))}
	}
	before := []quellv1alpha1.FieldConflict{row(kindDeployment, ".spec.paused", "Yield"), row(kindDeployment, ".spec.replicas", "Force"), row(kindService, ".spec.type", "Report")}
	failing, invalid := childWith(kindDeployment, ssa.Result{}), childWith(kindDeployment, ssa.Result{})
	failing.err = errors.New("no")
	invalid.invalid, invalid.err = failing.err, failing.err
	g.Expect(conflictsAt(midday.Add(time.Hour), before, failing)).To(Equal(before[1:2]), "what is yielded is in the result")
	g.Expect(conflictsAt(midday.Add(time.Hour), before, invalid)).To(Equal(before[:2]))
	g.Expect(conflictsAt(midday.Add(time.Hour), before, childWith(kindDeployment, ssa.Result{Outcome: ssa.Unchanged}))).To(BeEmpty())
	g.Expect(before).To(HaveLen(3), "not changed")
}

func TestConflictRules(t *testing.T) {
	label := ssa.PathRule{Path: `.metadata.labels["app.kubernetes.io/managed-by"]`, Rule: ssa.Force}
	policy := &quellv1alpha1.ConflictPolicy{Mode: quellv1alpha1.ConflictYield, Rules: []quellv1alpha1.ConflictRule{
		{Kind: "Deployment", Path: ".spec.replicas", Mode: "Report"}, {Kind: "Service", Path: ".spec.type", Mode: "Force"},
	}}
	unreadable := &quellv1alpha1.ConflictPolicy{Rules: []quellv1alpha1.ConflictRule{{Kind: "Ingress", Path: ".spec.rules[x]", Mode: "Force"}}}
	refused := []string{"spec.conflictPolicy.rules", ".spec.rules[x]"}
	for name, c := range map[string]struct {
		kind   string
		policy *quellv1alpha1.ConflictPolicy
		exists bool
		want   ssa.Rules
		err    []string
	}{
		"no policy":               {kindDeployment, nil, true, ssa.Rules{}, nil},
		"an object that is made":  {kindDeployment, policy, false, ssa.Rules{Default: ssa.Report}, nil},
		"rules of its kind":       {kindDeployment, policy, true, ssa.Rules{Default: ssa.Yield, Paths: []ssa.PathRule{{Path: ".spec.replicas", Rule: ssa.Report}, label}}, nil},
		"rules of another":        {kindService, policy, true, ssa.Rules{Default: ssa.Yield, Paths: []ssa.PathRule{{Path: ".spec.type", Rule: ssa.Force}, label}}, nil},
		"a path that is no path":  {kindIngress, unreadable, true, ssa.Rules{}, refused},
		"before there is a child": {kindIngress, unreadable, false, ssa.Rules{}, refused},
		"for each other kind":     {kindService, unreadable, false, ssa.Rules{}, refused},
		"a policy without a mode": {kindBudget, &quellv1alpha1.ConflictPolicy{}, true, ssa.Rules{Paths: []ssa.PathRule{label}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			app := shop()
			app.Spec.ConflictPolicy = c.policy
			seen := observed{app: app, live: map[string]client.Object{}}
			if c.exists {
				seen.live[c.kind] = running(app)
			}
			rules, err := conflictRules(seen, c.kind)
			g.Expect(rules).To(Equal(c.want))
			if c.err == nil {
				g.Expect(err).NotTo(HaveOccurred())
			}
			for _, word := range c.err {
				g.Expect(err).To(MatchError(ContainSubstring(word)))
				g.Expect(ssa.IsTerminal(err)).To(BeTrue())
			}
		})
	}
}

func TestAScaleToZeroLeavesNoTrace(t *testing.T) {
	for name, c := range map[string]struct {
		mode     quellv1alpha1.ConflictMode
		replicas int32
		owners   []metav1.ManagedFieldsEntry
		rule     ssa.Rule
		states   bool
	}{
		"under Force":                    {quellv1alpha1.ConflictForce, 0, nil, ssa.Force, true},
		"under Yield":                    {quellv1alpha1.ConflictYield, 0, nil, ssa.Yield, false},
		"under Report":                   {quellv1alpha1.ConflictReport, 0, nil, ssa.Report, true},
		"is not what is one by default":  {quellv1alpha1.ConflictYield, 1, nil, "", true},
		"is not what the operator wrote": {quellv1alpha1.ConflictYield, 0, ownsReplicas(ChildManager, "Apply"), "", true},
		"is not what somebody wrote":     {quellv1alpha1.ConflictYield, 0, ownsReplicas("kubectl-edit", "Update"), "", true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			app := shop()
			app.Spec.ConflictPolicy = &quellv1alpha1.ConflictPolicy{Mode: c.mode}
			d := running(app)
			d.Spec.Replicas, d.ManagedFields = &c.replicas, c.owners
			d.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(app, quellv1alpha1.SchemeGroupVersion.WithKind("App"))}
			seen := observed{app: app, now: midday, live: map[string]client.Object{kindDeployment: d}}
			g.Expect(zeroed(seen)).To(Equal(c.rule))
			g.Expect(replicas(seen).value != nil).To(Equal(c.states))
			a := applied{child: child{kind: kindDeployment, live: d, zeroed: c.rule}}
			if c.rule == ssa.Yield {
				g.Expect(fieldConflict(fieldConflicts(seen, []applied{a})).message).To(Equal("Deployment .spec.replicas is left to an unknown writer"))
			} else {
				g.Expect(fieldConflict(fieldConflicts(seen, []applied{a}))).To(BeNil())
			}
		})
	}
}

func ownsReplicas(manager string, operation metav1.ManagedFieldsOperationType) []metav1.ManagedFieldsEntry {
	return []metav1.ManagedFieldsEntry{{
		Manager: manager, Operation: operation, APIVersion: "apps/v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{}}}`),
	}}
}
