package app

import (
	"cmp"
	"slices"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	quellv1alpha1ac "github.com/hduolab/quell/applyconfig/quell/v1alpha1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// Reasons in status.children beside those of problems and of rollouts.
const (
	reasonExists         = "Exists"
	reasonDeleting       = "Deleting"
	reasonPending        = "Pending"
	reasonActive         = "Active"
	reasonAddressed      = "AddressAssigned"
	reasonAddressPending = "AddressPending"
	reasonRouteAccepted  = "Accepted"
	reasonRoutePending   = "RouteNotAccepted"
	reasonNotReady       = "NotReady"
)

// maxWord bounds a reason in status.children, as its schema does.
const maxWord = 63

// state is how a child that exists does what it is for.
type state struct {
	ready  metav1.ConditionStatus
	reason string
	// lack is what the App lacks by it, nil when the App can be used as asked all the same.
	lack *finding
}

// existing is the state of a child that does what it is for by existing.
func existing(client.Object) state { return state{ready: metav1.ConditionTrue, reason: reasonExists} }

func serviceState(s *corev1.Service) state {
	switch {
	case s.Spec.Type != corev1.ServiceTypeLoadBalancer:
		return existing(s)
	case len(addresses(s)) == 0:
		return state{metav1.ConditionFalse, reasonAddressPending, found(reasonAddressPending,
			"Service %q has no address from a load balancer yet; if the cluster has none, choose another spec.service.type", s.Name)}
	}
	return state{ready: metav1.ConditionTrue, reason: reasonAddressed}
}

// autoscalerState follows the autoscaler's own word; without metrics the App runs with the number of Pods that it has.
func autoscalerState(h *autoscalingv2.HorizontalPodAutoscaler) state {
	for _, kind := range []autoscalingv2.HorizontalPodAutoscalerConditionType{autoscalingv2.AbleToScale, autoscalingv2.ScalingActive} {
		i := slices.IndexFunc(h.Status.Conditions, func(c autoscalingv2.HorizontalPodAutoscalerCondition) bool { return c.Type == kind })
		switch {
		case i < 0:
			return state{ready: metav1.ConditionUnknown, reason: reasonPending}
		case h.Status.Conditions[i].Status == corev1.ConditionFalse:
			return state{ready: metav1.ConditionFalse, reason: word(h.Status.Conditions[i].Reason)}
		}
	}
	return state{ready: metav1.ConditionTrue, reason: reasonActive}
}

// budgetState does not tell whether a Pod may be evicted just now, which moves with the Pods.
func budgetState(b *policyv1.PodDisruptionBudget) state {
	if c := meta.FindStatusCondition(b.Status.Conditions, policyv1.DisruptionAllowedCondition); c != nil && c.Reason == policyv1.SyncFailedReason {
		return state{ready: metav1.ConditionFalse, reason: c.Reason}
	}
	if b.Status.ObservedGeneration == 0 {
		return state{ready: metav1.ConditionUnknown, reason: reasonPending}
	}
	return state{ready: metav1.ConditionTrue, reason: reasonActive}
}

// routeState wants every Gateway that the route names to have accepted it.
func routeState(r *gatewayv1.HTTPRoute) state {
	for _, parent := range r.Spec.ParentRefs {
		conditions := parentConditions(r, parent)
		for _, kind := range []gatewayv1.RouteConditionType{gatewayv1.RouteConditionAccepted, gatewayv1.RouteConditionResolvedRefs} {
			switch c := meta.FindStatusCondition(conditions, string(kind)); {
			case c == nil || c.Status == metav1.ConditionUnknown:
				return state{metav1.ConditionUnknown, reasonPending, found(reasonRoutePending, "Gateway %q has not accepted HTTPRoute %q yet", parent.Name, r.Name)}
			case c.Status == metav1.ConditionFalse:
				return state{metav1.ConditionFalse, word(c.Reason), found(reasonRoutePending, "Gateway %q does not accept HTTPRoute %q: %s", parent.Name, r.Name, c.Reason)}
			}
		}
	}
	return state{ready: metav1.ConditionTrue, reason: reasonRouteAccepted}
}

// parentConditions are what a Gateway's controller says of the newest generation of a route.
func parentConditions(r *gatewayv1.HTTPRoute, parent gatewayv1.ParentReference) []metav1.Condition {
	own := gatewayv1.Namespace(r.Namespace)
	same := func(a, b gatewayv1.ParentReference) bool {
		return a.Name == b.Name && ptr.Deref(a.Namespace, own) == ptr.Deref(b.Namespace, own) && ptr.Equal(a.SectionName, b.SectionName)
	}
	var current []metav1.Condition
	for _, p := range r.Status.Parents {
		for _, c := range p.Conditions {
			if same(p.ParentRef, parent) && c.ObservedGeneration >= r.Generation {
				current = append(current, c)
			}
		}
	}
	return current
}

// word is another controller's reason within what the schema allows.
func word(reason string) string {
	if reason == "" || len(reason) > maxWord {
		return reasonNotReady
	}
	return reason
}

// lack is what the App lacks by its children, the first in the order of kinds.
func lack(children []applied) *finding {
	for _, c := range children {
		if o := c.current(); o != nil && c.wanted {
			if s := kindNamed(c.kind).state(o); s.lack != nil {
				return s.lack
			}
		}
	}
	return nil
}

// childRows tell of each child that the App asks for, and of one that does not go. They are sorted as their list is keyed.
func childRows(seen observed, children []applied, rollout *finding) []*quellv1alpha1ac.AppChildApplyConfiguration {
	if deletionPending(seen.app) {
		children = remaining(seen)
	}
	var rows []*quellv1alpha1ac.AppChildApplyConfiguration
	for _, c := range children {
		if !c.wanted && c.err == nil && !c.leaving {
			continue
		}
		s := rowState(c, rollout)
		row := quellv1alpha1ac.AppChild().WithKind(c.kind).WithName(c.name).WithReady(s.ready).WithReason(s.reason)
		if n := rowGeneration(seen.app, c, s); n > 0 {
			row.WithGeneration(n)
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b *quellv1alpha1ac.AppChildApplyConfiguration) int {
		return cmp.Or(cmp.Compare(*a.Kind, *b.Kind), cmp.Compare(*a.Name, *b.Name))
	})
	return rows
}

// remaining are the children of an App that is being deleted.
func remaining(seen observed) []applied {
	var children []applied
	for _, k := range kinds {
		if live := seen.live[k.name]; live != nil && isOurs(live, seen.app) {
			children = append(children, applied{child: child{kind: k.name, name: live.GetName(), wanted: k.wanted(seen.app), live: live}})
		}
	}
	return children
}

func rowState(c applied, rollout *finding) state {
	stalled, moving := problem(c)
	o := c.current()
	switch f := cmp.Or(stalled, moving); {
	case f != nil:
		return state{ready: metav1.ConditionFalse, reason: f.reason}
	case o == nil:
		return state{ready: metav1.ConditionUnknown, reason: reasonPending}
	case o.GetDeletionTimestamp() != nil:
		return state{ready: metav1.ConditionFalse, reason: reasonDeleting}
	case c.kind == kindDeployment && rollout != nil:
		return state{ready: metav1.ConditionFalse, reason: rollout.reason}
	case c.kind == kindDeployment:
		return state{ready: metav1.ConditionTrue, reason: reasonRolledOut}
	}
	return kindNamed(c.kind).state(o)
}

// rowGeneration is the generation at which a child was first found so under this generation of its App: every annotation that
// anybody writes to a Deployment makes another, which is no news.
func rowGeneration(app *quellv1alpha1.App, c applied, s state) int64 {
	o := c.current()
	if o == nil {
		return 0
	}
	generation := o.GetGeneration()
	for _, row := range app.Status.Children {
		same := row.Kind == c.kind && row.Name == c.name && row.Ready == s.ready && row.Reason == s.reason
		if same && app.Status.ObservedGeneration == app.Generation && row.Generation > 0 {
			return min(row.Generation, generation)
		}
	}
	return generation
}
