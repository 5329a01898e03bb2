package model

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/hduolab/quell/controller/eventfilter"
)

// Each of these breaks one guard from outside. The explorer must find what follows from it, within as many moves as it takes.
func TestBrokenGuardsAreFound(t *testing.T) {
	none := predicate.NewPredicateFuncs(func(client.Object) bool { return false })
	withRivals := map[string]int{edits: 1, rivals: 1}
	for name, c := range map[string]struct {
		scenario func(*testing.T) *Scenario
		moves    int
		says     string
	}{
		"an event filter that drops foreign writes to the status": {
			func(t *testing.T) *Scenario { return smallScenario(t, small{filter: eventfilter.Asked()}, withRivals) }, 3, "not as desired"},
		"an event filter that drops changes of children": {
			func(t *testing.T) *Scenario { return smallScenario(t, small{children: none}, withRivals) }, 3, "not as desired"},
		"an event filter that drops what people ask for": {
			func(t *testing.T) *Scenario {
				return smallScenario(t, small{filter: predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}}, withRivals)
			}, 3, "not as desired"},
		"a status with the time in it": {
			func(t *testing.T) *Scenario {
				s := smallScenario(t, small{stamped: true}, withRivals)
				s.Tick = time.Second
				return s
			}, 0, "after a restart: apply"},
		"a status written by update, with the time in it": {
			func(t *testing.T) *Scenario {
				s := smallScenario(t, small{naive: true, filter: predicate.Funcs{}}, nil)
				s.Tick = time.Second
				return s
			}, 0, "not quiet after"},
		"Quell without events of Deployments": {
			func(t *testing.T) *Scenario {
				s := appScenario(t, true, withRivals)
				s.Operator.Setup = func(ctx context.Context, mgr ctrl.Manager, clock clock.PassiveClock) ([]any, error) {
					return quell.Setup(ctx, deaf{mgr}, clock)
				}
				return s
			}, 3, "not as desired"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := c.scenario(t)
			found, err := Explore(s, c.moves, time.Time{})
			t.Log(found)
			g.Expect(err).To(HaveOccurred(), "the explorer passes whatever the operator does")
			t.Log(err)
			g.Expect(err.Error()).To(ContainSubstring(c.says))
			var example *Counterexample
			if errors.As(err, &example) && len(example.Path) > 0 {
				g.Expect(example.Trace).To(ContainSubstring(example.Path[len(example.Path)-1].String()), "a counterexample shows what happened")
			}
		})
	}
}

// deaf is a manager whose cache tells nobody when a Deployment changes.
type deaf struct{ ctrl.Manager }

func (d deaf) GetCache() cache.Cache { return deafCache{d.Manager.GetCache()} }

type deafCache struct{ cache.Cache }

func (d deafCache) GetInformer(ctx context.Context, o client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	i, err := d.Cache.GetInformer(ctx, o, opts...)
	if _, ok := o.(*appsv1.Deployment); ok {
		i = deafInformer{i}
	}
	return i, err
}

type deafInformer struct{ cache.Informer }

func (d deafInformer) AddEventHandlerWithOptions(h toolscache.ResourceEventHandler, o toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	return d.Informer.AddEventHandlerWithOptions(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { h.OnAdd(o, false) }, DeleteFunc: h.OnDelete,
	}, o)
}
