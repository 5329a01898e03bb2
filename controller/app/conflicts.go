package app

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	quellv1alpha1ac "github.com/hduolab/quell/applyconfig/quell/v1alpha1"
	"github.com/hduolab/quell/controller/fieldowners"
	"github.com/hduolab/quell/controller/ssa"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Reasons of the condition FieldConflict beside reasonContended.
const (
	reasonReported = "Reported"
	reasonYielded  = "Yielded"
)

// Bounds of status.conflicts, by the CustomResourceDefinition.
const (
	maxConflicts    = 32
	maxConflictPath = 512
)

// conflictRules are the rules of spec.conflictPolicy for one kind of child. An object that does not exist yet is made without
// force: somebody may have made it meanwhile. The error is an ssa.InvalidContentError.
func conflictRules(seen observed, kind string) (ssa.Rules, error) {
	if err := readablePaths(seen.app.Spec.ConflictPolicy); err != nil {
		return ssa.Rules{}, err
	}
	if seen.live[kind] == nil {
		return ssa.Rules{Default: ssa.Report}, nil
	}
	if seen.app.Spec.ConflictPolicy == nil {
		return ssa.Rules{}, nil
	}
	rules := policyRules(seen.app, kind)
	// Without these labels the operator's cache does not have the object.
	rules.Paths = append(rules.Paths, ssa.PathRule{Path: fmt.Sprintf(".metadata.labels[%q]", LabelManagedBy), Rule: ssa.Force})
	if seen.app.Labels[LabelShard] != "" {
		rules.Paths = append(rules.Paths, ssa.PathRule{Path: fmt.Sprintf(".metadata.labels[%q]", LabelShard), Rule: ssa.Force})
	}
	if kind == kindDeployment && seen.count().isHandedBack() { // of several rules for a path the last counts
		rules.Paths = append(rules.Paths, ssa.PathRule{Path: replicasField, Rule: ssa.Force})
	}
	return rules, nil
}

// readablePaths refuses a policy with a path that is none. It is refused for all kinds of children at once, so that none is applied.
func readablePaths(policy *quellv1alpha1.ConflictPolicy) error {
	if policy == nil {
		return nil
	}
	for _, r := range policy.Rules {
		if _, err := fieldowners.ParsePath(r.Path); err != nil {
			return ssa.Invalid(
				"spec.conflictPolicy.rules: %v; write it as status.conflicts shows it, for example .spec.template.spec.containers[name=\"app\"].image", err)
		}
	}
	return nil
}

// zeroed is the rule for a scale to zero that left no trace, "" when there was none. The API server books a zero that came through
// the scale subresource on nobody, for a Scale leaves it out. Nothing but a scale makes a Deployment of zero Pods that nobody owns:
// by default it has one.
func zeroed(seen observed) ssa.Rule {
	d := seen.deployment()
	if d == nil || seen.autoscaled() || ptr.Deref(d.Spec.Replicas, 1) != 0 || desiredReplicas(seen.app) == 0 || !metav1.IsControlledBy(d, seen.app) {
		return ""
	}
	if ours, others := holders(d); ours || len(others) > 0 || leftBehind(seen.app, others) {
		return ""
	}
	rule, err := policyRules(seen.app, kindDeployment).Of(replicasPath)
	if err != nil {
		return ""
	}
	return rule
}

// policyRules are the rules of spec.conflictPolicy for one kind.
func policyRules(app *quellv1alpha1.App, kind string) ssa.Rules {
	policy := app.Spec.ConflictPolicy
	if policy == nil {
		return ssa.Rules{}
	}
	rules := ssa.Rules{Default: ssa.Rule(policy.Mode)}
	for _, r := range policy.Rules {
		if r.Kind == kind {
			rules.Paths = append(rules.Paths, ssa.PathRule{Path: r.Path, Rule: ssa.Rule(r.Mode)})
		}
	}
	return rules
}

// fieldConflicts are the conflicts of the children, sorted by kind and path, at most maxConflicts. What was taken from somebody
// and has not been taken again since is none.
func fieldConflicts(seen observed, children []applied) []quellv1alpha1.FieldConflict {
	var list []quellv1alpha1.FieldConflict
	for _, c := range children {
		list = append(list, conflictsOf(c)...)
		list = append(list, c.unsettled(seen.app.Status.Conflicts)...)
	}
	key := func(a, b quellv1alpha1.FieldConflict) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Path, b.Path))
	}
	slices.SortFunc(list, func(a, b quellv1alpha1.FieldConflict) int {
		return cmp.Or(key(a, b), cmp.Compare(a.Manager, b.Manager), cmp.Compare(a.Operation, b.Operation), cmp.Compare(a.Subresource, b.Subresource))
	})
	list = slices.CompactFunc(list, func(a, b quellv1alpha1.FieldConflict) bool { return key(a, b) == 0 })
	list = list[:min(len(list), maxConflicts)]
	for i := range list {
		list[i].Since = since(list[i], seen.app.Status.Conflicts, seen.now)
	}
	return list
}

// conflictsOf are the conflicts of one child, one for each owner of a field.
func conflictsOf(c applied) []quellv1alpha1.FieldConflict {
	list := conflictsFor(c.kind, quellv1alpha1.ConflictYield, c.Yielded)
	if c.zeroed == ssa.Yield {
		list = append(list, conflictWith(c.kind, replicasField, quellv1alpha1.ConflictYield, fieldowners.Owner{}))
	}
	switch {
	case c.Outcome == ssa.Contended:
		list = append(list, conflictsFor(c.kind, quellv1alpha1.ConflictForce, c.Reasons)...)
	case c.Outcome == ssa.Conflicted && c.live != nil:
		for _, x := range c.Conflicts {
			list = append(list, conflictWith(c.kind, x.Path, quellv1alpha1.ConflictReport, x.Owner))
		}
	}
	return list
}

// unsettled are the conflicts of the status before of which an apply that failed, or was not even tried, tells nothing new. What is
// yielded is known all the same when it was tried.
func (a applied) unsettled(before []quellv1alpha1.FieldConflict) []quellv1alpha1.FieldConflict {
	return slices.DeleteFunc(slices.Clone(before), func(b quellv1alpha1.FieldConflict) bool {
		return b.Kind != a.kind || a.invalid == nil && (a.err == nil || b.Mode == quellv1alpha1.ConflictYield)
	})
}

func conflictsFor(kind string, mode quellv1alpha1.ConflictMode, reasons []ssa.Reason) []quellv1alpha1.FieldConflict {
	var list []quellv1alpha1.FieldConflict
	for _, r := range reasons {
		if len(r.Owners) == 0 {
			list = append(list, conflictWith(kind, r.Path, mode, fieldowners.Owner{}))
		}
		for _, o := range r.Owners {
			list = append(list, conflictWith(kind, r.Path, mode, o))
		}
	}
	return list
}

func conflictWith(kind, path string, mode quellv1alpha1.ConflictMode, owner fieldowners.Owner) quellv1alpha1.FieldConflict {
	if len(path) > maxConflictPath {
		path = strings.ToValidUTF8(path[:maxConflictPath], "")
	}
	return quellv1alpha1.FieldConflict{
		Kind: kind, Path: path, Mode: mode, Manager: owner.Manager, Operation: owner.Operation, Subresource: owner.Subresource,
	}
}

// since is when a conflict began: as the status before says while it is with the same writer, else now.
func since(c quellv1alpha1.FieldConflict, before []quellv1alpha1.FieldConflict, now time.Time) metav1.Time {
	for _, b := range before {
		if b.Kind == c.Kind && b.Path == c.Path && ownerOf(b) == ownerOf(c) {
			return b.Since
		}
	}
	return metav1.NewTime(now).Rfc3339Copy()
}

func ownerOf(c quellv1alpha1.FieldConflict) fieldowners.Owner {
	return fieldowners.Owner{Manager: c.Manager, Operation: c.Operation, Subresource: c.Subresource}
}

func ownerWords(o fieldowners.Owner) string {
	if o.Manager == "" {
		return fieldowners.Join(nil)
	}
	return o.String()
}

// conflictRows are status.conflicts.
func conflictRows(list []quellv1alpha1.FieldConflict) []*quellv1alpha1ac.FieldConflictApplyConfiguration {
	var rows []*quellv1alpha1ac.FieldConflictApplyConfiguration
	for _, c := range list {
		row := quellv1alpha1ac.FieldConflict().WithKind(c.Kind).WithPath(c.Path).WithMode(c.Mode).WithSince(c.Since)
		if c.Manager != "" {
			row.WithManager(c.Manager)
		}
		if c.Operation != "" {
			row.WithOperation(c.Operation)
		}
		if c.Subresource != "" {
			row.WithSubresource(c.Subresource)
		}
		rows = append(rows, row)
	}
	return rows
}

// fieldConflict is the condition FieldConflict: nil while nobody else owns what the App sets.
func fieldConflict(list []quellv1alpha1.FieldConflict) *aspect {
	if len(list) == 0 {
		return nil
	}
	reasons := map[quellv1alpha1.ConflictMode]string{}
	words := make([]string, len(list))
	for i, c := range list {
		owner := ownerWords(ownerOf(c))
		switch c.Mode {
		case quellv1alpha1.ConflictReport:
			reasons[c.Mode], words[i] = reasonReported, fmt.Sprintf("%s %s belongs to %s, so nothing of the %s is applied", c.Kind, c.Path, owner, c.Kind)
		case quellv1alpha1.ConflictForce:
			reasons[c.Mode], words[i] = reasonContended, fmt.Sprintf("%s %s is taken again and again by %s", c.Kind, c.Path, owner)
		default:
			reasons[c.Mode], words[i] = reasonYielded, fmt.Sprintf("%s %s is left to %s", c.Kind, c.Path, owner)
		}
	}
	reason := cmp.Or(reasons[quellv1alpha1.ConflictReport], reasons[quellv1alpha1.ConflictForce], reasons[quellv1alpha1.ConflictYield])
	return &aspect{quellv1alpha1.ConditionFieldConflict, true, finding{reason, bounded(strings.Join(words, "; "))}}
}
