package app

import (
	"errors"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/controller/ssa"
)

func balanced(ingress ...corev1.LoadBalancerIngress) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "shop"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Name: "http", Port: 80}}},
		Status:     corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: ingress}},
	}
}

func hpaWith(conditions ...autoscalingv2.HorizontalPodAutoscalerCondition) *autoscalingv2.HorizontalPodAutoscaler {
	return &autoscalingv2.HorizontalPodAutoscaler{Status: autoscalingv2.HorizontalPodAutoscalerStatus{Conditions: conditions}}
}

func scales(kind autoscalingv2.HorizontalPodAutoscalerConditionType, status corev1.ConditionStatus, reason string) autoscalingv2.HorizontalPodAutoscalerCondition {
	return autoscalingv2.HorizontalPodAutoscalerCondition{Type: kind, Status: status, Reason: reason}
}

func budget(generation int64, reason string) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{Status: policyv1.PodDisruptionBudgetStatus{
		ObservedGeneration: generation, Conditions: []metav1.Condition{{Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: reason}},
	}}
}

// routed is an HTTPRoute with one Gateway and what that says of it.
func routed(conditions ...metav1.Condition) *gatewayv1.HTTPRoute {
	r := &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "shop", Generation: 2}}
	r.Spec.ParentRefs = []gatewayv1.ParentReference{{Name: "edge"}}
	r.Spec.Hostnames = []gatewayv1.Hostname{"shop.example.com"}
	r.Status.Parents = []gatewayv1.RouteParentStatus{
		{ParentRef: gatewayv1.ParentReference{Name: "other"}, Conditions: []metav1.Condition{said("Accepted", metav1.ConditionFalse, "NoMatchingParent")}},
		{ParentRef: gatewayv1.ParentReference{Name: "edge", Namespace: ptr.To(gatewayv1.Namespace("team"))}, Conditions: conditions},
	}
	return r
}

func said(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, ObservedGeneration: 2}
}

func TestStateOfAChild(t *testing.T) {
	able := scales(autoscalingv2.AbleToScale, corev1.ConditionTrue, "SucceededGetScale")
	accepted, resolved := said("Accepted", metav1.ConditionTrue, "Accepted"), said("ResolvedRefs", metav1.ConditionTrue, "ResolvedRefs")
	old := accepted
	old.ObservedGeneration = 1
	for name, c := range map[string]struct {
		kind   string
		object client.Object
		ready  metav1.ConditionStatus
		reason string
		lack   string
	}{
		"ServiceAccount":                 {kindServiceAccount, &corev1.ServiceAccount{}, metav1.ConditionTrue, "Exists", ""},
		"NetworkPolicy":                  {kindNetworkPolicy, &networkingv1.NetworkPolicy{}, metav1.ConditionTrue, "Exists", ""},
		"Ingress":                        {kindIngress, &networkingv1.Ingress{}, metav1.ConditionTrue, "Exists", ""},
		"Service":                        {kindService, &corev1.Service{}, metav1.ConditionTrue, "Exists", ""},
		"load balancer":                  {kindService, balanced(), metav1.ConditionFalse, "AddressPending", `Service "shop" has no address from a load balancer yet; if the cluster has none, choose another spec.service.type`},
		"load balancer with an address":  {kindService, balanced(corev1.LoadBalancerIngress{IP: "192.0.2.1"}), metav1.ConditionTrue, "AddressAssigned", ""},
		"autoscaler, new":                {kindAutoscaler, hpaWith(), metav1.ConditionUnknown, "Pending", ""},
		"autoscaler":                     {kindAutoscaler, hpaWith(able, scales(autoscalingv2.ScalingActive, corev1.ConditionTrue, "ValidMetricFound")), metav1.ConditionTrue, "Active", ""},
		"autoscaler without metrics":     {kindAutoscaler, hpaWith(able, scales(autoscalingv2.ScalingActive, corev1.ConditionFalse, "FailedGetResourceMetric")), metav1.ConditionFalse, "FailedGetResourceMetric", ""},
		"autoscaler without a target":    {kindAutoscaler, hpaWith(scales(autoscalingv2.AbleToScale, corev1.ConditionFalse, "FailedGetScale")), metav1.ConditionFalse, "FailedGetScale", ""},
		"autoscaler of many words":       {kindAutoscaler, hpaWith(scales(autoscalingv2.AbleToScale, corev1.ConditionFalse, strings.Repeat("x", 64))), metav1.ConditionFalse, "NotReady", ""},
		"budget, new":                    {kindBudget, &policyv1.PodDisruptionBudget{}, metav1.ConditionUnknown, "Pending", ""},
		"budget":                         {kindBudget, budget(1, policyv1.InsufficientPodsReason), metav1.ConditionTrue, "Active", ""},
		"budget that fails":              {kindBudget, budget(1, policyv1.SyncFailedReason), metav1.ConditionFalse, "SyncFailed", ""},
		"route, new":                     {kindRoute, routed(), metav1.ConditionUnknown, "Pending", `Gateway "edge" has not accepted HTTPRoute "shop" yet`},
		"route":                          {kindRoute, routed(accepted, resolved), metav1.ConditionTrue, "Accepted", ""},
		"route, changed since":           {kindRoute, routed(old, resolved), metav1.ConditionUnknown, "Pending", `Gateway "edge" has not accepted HTTPRoute "shop" yet`},
		"route to nowhere":               {kindRoute, routed(accepted, said("ResolvedRefs", metav1.ConditionFalse, "BackendNotFound")), metav1.ConditionFalse, "BackendNotFound", `Gateway "edge" does not accept HTTPRoute "shop": BackendNotFound`},
		"route that is not accepted":     {kindRoute, routed(said("Accepted", metav1.ConditionFalse, "NotAllowedByListeners"), resolved), metav1.ConditionFalse, "NotAllowedByListeners", `Gateway "edge" does not accept HTTPRoute "shop": NotAllowedByListeners`},
		"route whose Gateway is unknown": {kindRoute, routed(said("Accepted", metav1.ConditionUnknown, "Pending"), resolved), metav1.ConditionUnknown, "Pending", `Gateway "edge" has not accepted HTTPRoute "shop" yet`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := kindNamed(c.kind).state(c.object)
			g.Expect(s.ready).To(Equal(c.ready))
			g.Expect(s.reason).To(Equal(c.reason))
			if c.lack == "" {
				g.Expect(s.lack).To(BeNil())
			} else {
				g.Expect(s.lack.message).To(Equal(c.lack))
			}
		})
	}
}

// rowsOf are the entries of status.children.
func rowsOf(seen observed, children ...applied) []quellv1alpha1.AppChild {
	var rows []quellv1alpha1.AppChild
	for _, r := range childRows(seen, children, nil) {
		rows = append(rows, quellv1alpha1.AppChild{Kind: *r.Kind, Name: *r.Name, Ready: *r.Ready, Reason: *r.Reason, Generation: ptr.Deref(r.Generation, 0)})
	}
	return rows
}

func TestChildrenAreToldOf(t *testing.T) {
	app := shop(withPorts)
	live := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "shop", Generation: 7}}
	service := func(r ssa.Result) applied {
		return applied{child: child{kind: kindService, name: "shop", wanted: true, live: live}, Result: r}
	}
	row := func(ready metav1.ConditionStatus, reason string, generation int64) quellv1alpha1.AppChild {
		return quellv1alpha1.AppChild{Kind: kindService, Name: "shop", Ready: ready, Reason: reason, Generation: generation}
	}
	refused, foreign, leaving, suspended, gone := service(ssa.Result{}), service(ssa.Result{}), service(ssa.Result{}), service(ssa.Result{}), service(ssa.Result{})
	refused.err, foreign.foreign, leaving.leaving, suspended.pending, gone.live = errors.New("no"), "it has no owner", true, true, nil
	for name, c := range map[string]struct {
		applied
		want quellv1alpha1.AppChild
	}{
		"in place":                {service(ssa.Result{Outcome: ssa.Unchanged}), row(metav1.ConditionTrue, "Exists", 7)},
		"refused":                 {refused, row(metav1.ConditionFalse, "ApplyFailed", 7)},
		"somebody else's":         {foreign, row(metav1.ConditionFalse, "NameTaken", 0)},
		"of an earlier App":       {leaving, row(metav1.ConditionFalse, "WaitingForDeletion", 0)},
		"fought over":             {service(ssa.Result{Outcome: ssa.Contended}), row(metav1.ConditionFalse, "FieldContended", 7)},
		"gone":                    {service(ssa.Result{Outcome: ssa.Gone}), row(metav1.ConditionFalse, "Creating", 0)},
		"not kept":                {service(ssa.Result{Outcome: ssa.DoesNotStick}), row(metav1.ConditionFalse, "NotKept", 7)},
		"suspended":               {suspended, row(metav1.ConditionTrue, "Exists", 7)},
		"suspended before it was": {gone, row(metav1.ConditionUnknown, "Pending", 0)},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(rowsOf(observed{app: app}, c.applied)).To(ConsistOf(c.want))
		})
	}
}

func TestChildrenThatNobodyAsksForAreNotToldOf(t *testing.T) {
	g, app := NewWithT(t), shop()
	unwanted := applied{child: child{kind: kindService, name: "shop", live: &corev1.Service{}}, Result: ssa.Result{Outcome: ssa.Gone}}
	g.Expect(rowsOf(observed{app: app}, unwanted)).To(BeEmpty())
	unwanted.err = errors.New("no")
	g.Expect(rowsOf(observed{app: app}, unwanted)).To(HaveLen(1))
}

func TestChildrenAreSorted(t *testing.T) {
	g, app := NewWithT(t), shop(withPorts)
	deployment := applied{child: child{kind: kindDeployment, name: "shop", wanted: true, live: running(app)}, Result: ssa.Result{Outcome: ssa.Unchanged}}
	service := applied{child: child{kind: kindService, name: "shop", wanted: true, live: balanced()}, Result: ssa.Result{Outcome: ssa.Unchanged}}
	for _, children := range [][]applied{{deployment, service}, {service, deployment}} {
		rows := rowsOf(observed{app: app}, children...)
		g.Expect([]string{rows[0].Kind, rows[1].Kind}).To(Equal([]string{kindDeployment, kindService}))
	}
}

// Each annotation that somebody writes to a Deployment makes a generation; that alone must not make a status.
func TestAGenerationIsTheOneAtWhichItWasFound(t *testing.T) {
	g := NewWithT(t)
	told := func(app *quellv1alpha1.App) {
		app.Status.ObservedGeneration = app.Generation
		app.Status.Children = []quellv1alpha1.AppChild{{Kind: kindDeployment, Name: "shop", Ready: metav1.ConditionTrue, Reason: reasonRolledOut, Generation: 5}}
	}
	at := func(app *quellv1alpha1.App, generation int64, ready metav1.ConditionStatus) int64 {
		d := running(app)
		d.Generation = generation
		c := applied{child: child{kind: kindDeployment, name: "shop", live: d}, Result: ssa.Result{Outcome: ssa.Unchanged}}
		return rowGeneration(app, c, state{ready: ready, reason: reasonRolledOut})
	}
	app := shop(told)
	g.Expect(at(app, 5, metav1.ConditionTrue)).To(BeEquivalentTo(5))
	g.Expect(at(app, 9, metav1.ConditionTrue)).To(BeEquivalentTo(5))
	g.Expect(at(app, 9, metav1.ConditionFalse)).To(BeEquivalentTo(9), "another state")
	g.Expect(at(app, 2, metav1.ConditionTrue)).To(BeEquivalentTo(2), "made anew")
	app.Generation++
	g.Expect(at(app, 9, metav1.ConditionTrue)).To(BeEquivalentTo(9), "another generation of the App")
}

func TestAnAppThatIsBeingDeletedTellsWhatIsLeft(t *testing.T) {
	g := NewWithT(t)
	app := shop(withPorts, deleted)
	d := running(app)
	d.DeletionTimestamp = app.DeletionTimestamp
	seen := observed{app: app, live: map[string]client.Object{kindDeployment: d, kindService: &corev1.Service{}}}
	g.Expect(rowsOf(seen)).To(ConsistOf(quellv1alpha1.AppChild{Kind: kindDeployment, Name: "shop", Ready: metav1.ConditionFalse, Reason: reasonDeleting, Generation: 5}))
}
