package app_test

import (
	"context"
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
)

// The events of a life. Each is an upper-case letter when it begins something and a lower-case one when it ends it.
const (
	autoscalingOn  = 'A'
	autoscalingOff = 'a'
	foreignOn      = 'F'
	foreignOff     = 'f'
	otherReplicas  = 'S'
)

const (
	ownLow, ownHigh         = 3, 5
	foreignLow, foreignHigh = 4, 6
)

// life is one App that goes through events, and what they amount to.
type life struct {
	*quellv1alpha1.App
	events []rune
	// more is the number of Pods that otherReplicas asks for.
	more         int32
	own, foreign bool
	// count is the number of Pods after the last event, floor the lowest that any event since settled asked for.
	count, floor int32
}

// bounds are those of the autoscalers that are there.
func (l *life) bounds() (low, high int32) {
	low, high = 1, 1000
	if l.own {
		low, high = max(low, ownLow), min(high, ownHigh)
	}
	if l.foreign {
		low, high = max(low, foreignLow), min(high, foreignHigh)
	}
	return low, high
}

// expect notes what the App comes to after an event.
func (l *life) expect() {
	l.count = *l.Spec.Replicas
	if low, high := l.bounds(); l.own || l.foreign {
		l.count = min(max(l.floor, low), high)
	}
	l.floor = min(l.floor, l.count)
}

// next lets the next event happen.
func (l *life) next(ctx context.Context) {
	GinkgoHelper()
	event := l.events[0]
	l.events = l.events[1:]
	foreign := newScaler(l.Namespace, "foreign-"+l.Name, l.Name, foreignLow, foreignHigh)
	switch event {
	case foreignOn:
		l.foreign = true
		Expect(admin.Create(ctx, foreign)).To(Succeed())
	case foreignOff:
		l.foreign = false
		Expect(admin.Delete(ctx, foreign)).To(Succeed())
	default:
		change(ctx, l.App, func(a *quellv1alpha1.App) { l.edit(event, &a.Spec) })
	}
	l.expect()
}

func (l *life) edit(event rune, s *quellv1alpha1.AppSpec) {
	switch event {
	case autoscalingOn:
		l.own = true
		autoscaled(ownLow, ownHigh)(s)
	case autoscalingOff:
		l.own, s.Autoscaling = false, nil
	case otherReplicas:
		s.Replicas = &l.more
	}
}

// settled waits until the App has come to what its events amount to, and begins anew from there.
func (l *life) settled(ctx context.Context, pods *counter) {
	GinkgoHelper()
	eventuallyAsked(ctx, l.App, l.count)
	Eventually(ctx, func(g Gomega) {
		s := status(ctx, g, l.App)
		g.Expect(isReady(l.App)).To(BeTrue(), "%s: status %+v", l.Name, s)
		g.Expect(s.Ready).To(Equal(fmt.Sprintf("%d/%d", l.count, l.count)), l.Name)
		var types []string
		for _, c := range s.Conditions {
			types = append(types, c.Type)
		}
		g.Expect(slices.Contains(types, quellv1alpha1.ConditionAutoscalingActive)).To(Equal(l.own || l.foreign), l.Name)
		err := admin.Get(ctx, client.ObjectKeyFromObject(l.App), &autoscalingv2.HorizontalPodAutoscaler{})
		g.Expect(client.IgnoreNotFound(err)).To(Succeed())
		g.Expect(err == nil).To(Equal(l.own), l.Name)
	}).Should(Succeed())
	pods.neverBelow(l.Name, l.floor)
	pods.begin(ctx, l.Name, l.count)
	l.floor = l.count
}

// orders are all orders of the events in which nothing ends before it began.
func orders(left string) []string {
	if left == "" {
		return []string{""}
	}
	var all []string
	for i, event := range left {
		if begins := strings.ToUpper(string(event)); string(event) != begins && strings.Contains(left, begins) {
			continue
		}
		for _, rest := range orders(left[:i] + left[i+1:]) {
			all = append(all, string(event)+rest)
		}
	}
	return all
}

// lives are Apps with each order of events.
func lives(namespace, prefix string, all []string) []*life {
	var list []*life
	for i, events := range all {
		l := &life{events: []rune(events), more: int32(1 + 2*(i%2)), count: 2, floor: 2}
		l.App = newApp(namespace, fmt.Sprintf("%s-%s-%d", prefix, strings.ToLower(events), i), replicas(2), minimal)
		list = append(list, l)
	}
	return list
}

func each(lives []*life, f func(*life)) {
	for _, l := range lives {
		f(l)
	}
}

var _ = Describe("The number of Pods never falls below the lower of old and new", func() {
	It("in any order of events, whether the operator runs or not", func(ctx SpecContext) {
		const events = "AaFfS"
		ns := newNamespace(ctx)
		pods := countPods(ctx, ns)
		all := orders(events)
		Expect(all).To(HaveLen(30))
		hasty, watched, unwatched := lives(ns, "hasty", all), lives(ns, "watched", every(3, all)), lives(ns, "unwatched", every(3, all[1:]))
		everybody := slices.Concat(hasty, watched, unwatched)
		each(everybody, func(l *life) { create(ctx, l.App) })
		each(everybody, func(l *life) { l.settled(ctx, pods) })

		By("letting all happen at once")
		for range events {
			each(hasty, func(l *life) { l.next(ctx) })
		}
		for i := range len(events) - 1 {
			By(fmt.Sprintf("letting event %d happen while the operator is away, and while it runs", i+1))
			whileAway(func() {
				each(unwatched, func(l *life) { l.next(ctx) })
				each(unwatched, func(l *life) { l.awaitAutoscalers(ctx) })
			})
			each(watched, func(l *life) { l.next(ctx) })
			each(slices.Concat(watched, unwatched), func(l *life) { l.settled(ctx, pods) })
		}
		each(hasty, func(l *life) { l.settled(ctx, pods) })

		By("being at rest in all these states, also when the operator starts")
		awaitIdle(ctx)
		since := mark()
		manager.restart()
		awaitIdle(ctx)
		Expect(manager.writes(since, ns)).To(BeEmpty())
		each(everybody, func(l *life) { pods.neverBelow(l.Name, l.count) })
	})
})

// every is each nth item of a list, the first one included.
func every(n int, list []string) []string {
	var some []string
	for i := 0; i < len(list); i += n {
		some = append(some, list[i])
	}
	return some
}

// whileAway does something while the operator does not run.
func whileAway(f func()) {
	GinkgoHelper()
	manager.stop()
	defer manager.start()
	f()
}

// awaitAutoscalers waits until the autoscalers that are there have moved the Deployment within their bounds.
func (l *life) awaitAutoscalers(ctx context.Context) {
	GinkgoHelper()
	var scalers autoscalingv2.HorizontalPodAutoscalerList
	Expect(admin.List(ctx, &scalers, client.InNamespace(l.Namespace))).To(Succeed())
	for _, h := range scalers.Items {
		if h.Spec.ScaleTargetRef.Name == l.Name {
			Eventually(ctx, func(g Gomega) {
				g.Expect(*deployment(ctx, g, l.App).Spec.Replicas).To(And(BeNumerically(">=", *h.Spec.MinReplicas), BeNumerically("<=", h.Spec.MaxReplicas)))
			}).Should(Succeed())
		}
	}
}
