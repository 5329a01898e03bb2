package app

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
)

var (
	routesResource  = schema.GroupResource{Group: gatewayv1.GroupName, Resource: "httproutes"}
	routesForbidden = apierrors.NewForbidden(routesResource, "shop", errors.New(`user "quell" cannot get resource "httproutes" in API group "gateway.networking.k8s.io"`))
	routesTimeout   = apierrors.NewTimeoutError("the request timed out", 1)
	routesUnserved  = apierrors.NewGenericServerResponse(404, "get", routesResource, "shop", "404 page not found", 0, true)
)

// routing is a Reconciler with one App, on a cluster that answers as a test asks when it is asked for an HTTPRoute. Once those are
// watched, the cache has one for each name.
type routing struct {
	*Reconciler
	answer error
	asks   int
	clock  *clocktesting.FakeClock
	cache  *metadataCache
	// blocked tells that the cache gets no first list.
	blocked bool
}

func onRoutes(t *testing.T, app *quellv1alpha1.App) *routing {
	t.Helper()
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(AddToScheme(scheme)).To(Succeed())
	r := &routing{clock: clocktesting.NewFakeClock(time.Unix(1000, 0))}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(app).
		WithIndex(&autoscalingv2.HorizontalPodAutoscaler{}, byTarget, targets).
		WithIndex(&corev1.ServiceAccount{}, byController, controllers).
		WithInterceptorFuncs(interceptor.Funcs{Get: r.get}).Build()
	var err error
	r.Reconciler, err = New(Options{Client: c, Reader: c, Events: events.NewFakeRecorder(100), Clock: r.clock})
	g.Expect(err).NotTo(HaveOccurred())
	r.routes.newCache = func(failed toolscache.WatchErrorHandlerWithContext) (cache.Cache, error) {
		r.cache = &metadataCache{FakeInformers: &informertest.FakeInformers{Scheme: scheme}, version: "5", failed: failed, ended: make(chan struct{})}
		if r.blocked {
			return unlistedCache{r.cache}, nil
		}
		return r.cache, nil
	}
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	g.Expect(r.routes.Start(t.Context(), queue)).To(Succeed())
	return r
}

func (r *routing) get(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if _, ok := o.(*gatewayv1.HTTPRoute); !ok {
		return c.Get(ctx, key, o, opts...)
	}
	if r.asks++; r.answer != nil {
		return r.answer
	}
	return apierrors.NewNotFound(routesResource, key.Name)
}

// look is what is seen of the App, and what is to be done about its route.
func (r *routing) look(t *testing.T) (observed, applied, error) {
	t.Helper()
	seen, err := r.observe(t.Context(), client.ObjectKey{Namespace: "team", Name: "shop"})
	if err != nil {
		return seen, applied{}, err
	}
	for _, c := range desiredChildren(seen) {
		if c.kind == kindRoute {
			return seen, applied{child: c, err: c.invalid}, nil
		}
	}
	return seen, applied{}, errors.New("no such child")
}

// unlistedCache is a cache that gets no first list.
type unlistedCache struct{ *metadataCache }

func (unlistedCache) WaitForCacheSync(ctx context.Context) bool {
	<-ctx.Done()
	return false
}

// hadRoute gives an App the status of one that asked for an HTTPRoute before.
func hadRoute(app *quellv1alpha1.App) {
	app.Status.Children = []quellv1alpha1.AppChild{{Kind: kindRoute, Name: app.Name, Ready: metav1.ConditionTrue, Reason: reasonRouteAccepted}}
}

func asksForRoute(app *quellv1alpha1.App) {
	app.Spec.HTTPRoute = &quellv1alpha1.AppHTTPRoute{ParentRefs: []quellv1alpha1.AppRouteParent{{Name: "public"}}}
}

func TestARouteThatIsNotAskedForIsFoundAfterATemporaryError(t *testing.T) {
	for name, answer := range map[string]error{
		"a time out":       routesTimeout,
		"a server's fault": apierrors.NewInternalError(errors.New("no leader")),
		"no answer":        errors.New("connection refused"),
	} {
		t.Run(name, func(t *testing.T) {
			g, r := NewWithT(t), onRoutes(t, shop(hadRoute))
			r.answer = answer
			_, child, err := r.look(t)
			g.Expect(err).NotTo(HaveOccurred(), "the rest of the App does not wait")
			_, err = next([]applied{child}, child.Result, nil, 0)
			g.Expect(err).To(MatchError(answer), "the work queue tries again")

			r.answer = nil
			r.clock.Step(askAgain)
			_, child, err = r.look(t)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(child.live).NotTo(BeNil())
			g.Expect(child.desired).To(BeNil())
		})
	}
}

func TestARouteThatIsNotAskedForAndMustNotBeReadIsToldOf(t *testing.T) {
	g, r := NewWithT(t), onRoutes(t, shop(hadRoute))
	r.answer = routesForbidden
	seen, child, err := r.look(t)
	g.Expect(err).NotTo(HaveOccurred())
	stalled, _ := problem(child)
	g.Expect(*stalled).To(Equal(finding{reasonForbidden, `HTTPRoute "shop" was refused: the operator cannot get resource "httproutes" in API group "gateway.networking.k8s.io"`}))
	g.Expect(childRows(seen, []applied{child}, nil)).To(ConsistOf(HaveField("Kind", HaveValue(Equal(kindRoute)))), "else the next look forgets it")
	again, err := next([]applied{child}, child.Result, nil, 0)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again.RequeueAfter).To(Equal(stalledRetry))

	r.answer = nil
	r.clock.Step(stalledRetry)
	_, child, err = r.look(t)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(child.invalid).NotTo(HaveOccurred())
	g.Expect(child.live).NotTo(BeNil())
}

func TestAnAppThatNeverHadARouteIsNotBotheredByRoutesThatCannotBeRead(t *testing.T) {
	for _, answer := range []error{routesForbidden, routesTimeout} {
		g, r := NewWithT(t), onRoutes(t, shop())
		r.answer = answer
		_, child, err := r.look(t)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(child.err).NotTo(HaveOccurred())
	}
}

func TestRoutesThatAreNotServedAreAskedForByAppsWithARouteAlone(t *testing.T) {
	g, r := NewWithT(t), onRoutes(t, shop(hadRoute))
	r.answer = routesUnserved
	for range 3 {
		_, child, err := r.look(t)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(child.err).NotTo(HaveOccurred())
		r.clock.Step(askAgain)
	}
	g.Expect(r.asks).To(Equal(1))

	app := shop()
	g.Expect(r.Client.Get(t.Context(), client.ObjectKeyFromObject(app), app)).To(Succeed())
	asksForRoute(app)
	g.Expect(r.Client.Update(t.Context(), app)).To(Succeed())
	for range 3 {
		_, child, err := r.look(t)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(child.err).To(MatchError(errGatewayMissing))
	}
	g.Expect(r.asks).To(Equal(2))
}

func TestWhoWaitsForAWatchIsToldWhyItEnds(t *testing.T) {
	for name, c := range map[string]struct{ fails, why error }{
		"not served any more": {apierrors.NewNotFound(routesResource, ""), errGatewayMissing},
		"no right to list":    {routesForbidden, routesForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			g, r := NewWithT(t), onRoutes(t, shop(asksForRoute))
			r.blocked = true
			running, err := r.routes.watch(t.Context(), client.ObjectKey{})
			g.Expect(err).NotTo(HaveOccurred())
			waiter := make(chan error)
			go func() { waiter <- running.read(t.Context(), client.ObjectKey{}, &gatewayv1.HTTPRoute{}) }()
			r.cache.failed(t.Context(), nil, c.fails)
			g.Eventually(waiter).Should(Receive(MatchError(c.why)))
			g.Eventually(r.cache.ended).Should(BeClosed())
			g.Expect(r.routes.why()).To(MatchError(c.why))
			g.Expect(r.routes.queue.Len()).To(Equal(1), "the App with a route is woken")
		})
	}
}

func TestAReconcilerWithoutAManagerHasNoWatches(t *testing.T) {
	g, r := NewWithT(t), onRoutes(t, shop(asksForRoute))
	r.routes.ctx = nil
	_, child, err := r.look(t)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(child.err).To(MatchError(ContainSubstring("has not been started")))
}
