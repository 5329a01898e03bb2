package faults_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// startGateway accepts every HTTPRoute until the suite ends, as the controller of a Gateway does: without one, no App with a route
// is Ready.
func startGateway() {
	GinkgoHelper()
	c, err := client.NewWithWatch(cluster.Config(), client.Options{Scheme: scheme, FieldOwner: "gateway"})
	Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			w, err := c.Watch(ctx, &gatewayv1.HTTPRouteList{})
			if err == nil {
				acceptAll(ctx, c, w)
				continue
			}
			select { // an API server that is down
			case <-ctx.Done():
			case <-time.After(pollEach):
			}
		}
	}()
	DeferCleanup(func() { cancel(); <-ended })
}

func acceptAll(ctx context.Context, c client.Client, w watch.Interface) {
	defer w.Stop()
	for e := range w.ResultChan() {
		route, ok := e.Object.(*gatewayv1.HTTPRoute)
		if !ok || e.Type == watch.Deleted || route.DeletionTimestamp != nil || isAccepted(route) {
			continue
		}
		route.Status.Parents = nil
		for _, parent := range route.Spec.ParentRefs {
			accepted := func(kind gatewayv1.RouteConditionType) metav1.Condition {
				return metav1.Condition{Type: string(kind), Status: metav1.ConditionTrue, Reason: string(kind), ObservedGeneration: route.Generation, LastTransitionTime: metav1.Now()}
			}
			route.Status.Parents = append(route.Status.Parents, gatewayv1.RouteParentStatus{
				ParentRef: parent, ControllerName: "example.com/gateway",
				Conditions: []metav1.Condition{accepted(gatewayv1.RouteConditionAccepted), accepted(gatewayv1.RouteConditionResolvedRefs)},
			})
		}
		_ = c.Status().Update(ctx, route) // an outdated one comes again
	}
}

func isAccepted(route *gatewayv1.HTTPRoute) bool {
	for _, p := range route.Status.Parents {
		for _, c := range p.Conditions {
			if c.ObservedGeneration != route.Generation {
				return false
			}
		}
	}
	return len(route.Status.Parents) == len(route.Spec.ParentRefs)
}
