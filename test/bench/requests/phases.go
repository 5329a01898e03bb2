package requests

import (
	"context"
	"errors"
	"fmt"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/test/bench/figures"
	"github.com/hduolab/quell/test/bench/rivals"
	"github.com/hduolab/quell/test/program"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	firstImage, secondImage, foreignImage = "registry.example/shop:1.0.0", "registry.example/shop:1.1.0", "registry.example/other:1"
	firstReplicas, secondReplicas         = 2, 3
	// foreigner is the field manager of somebody who writes where the contestant does.
	foreigner = client.FieldOwner("foreigner")
)

// phase is one step of the App's life.
//
// Worth showing, and so a write of the floor, is each change of the phase, of the observed generation and of the status or reason of a
// condition. Replica counts are shown with the next such change, or alone once they stay.
type phase struct {
	figures.Phase
	act func(context.Context, *life) error
	// gone tells that there is no App any more, of which anything could be shown.
	gone bool
}

// untold returns a function that says what is not shown or healed, "" when nothing.
func (p phase) untold(l *life) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		if p.gone {
			return "", nil
		}
		return l.untrue(ctx)
	}
}

func phases(o Options) []phase {
	return []phase{
		{Phase: figures.Phase{Name: "create", Floor: 2, What: "An App is created. Floor: the Deployment, and the status that it rolls out."}, act: create},
		{Phase: figures.Phase{Name: "become ready", Floor: 2, What: "The Deployment is observed, has its Pods, they become available, in three steps. " +
			"Floor: that replicas are unavailable, and that all serve."}, act: becomeReady},
		{Phase: figures.Phase{Name: "at rest", Floor: 0, What: "Nothing happens."}, act: nothing},
		{Phase: figures.Phase{Name: "scale", Floor: 5, What: fmt.Sprintf("spec.replicas goes from %d to %d, the Deployment follows in three steps. "+
			"Floor: the Deployment; that it rolls out, that not enough replicas serve, that replicas are unavailable, that all serve.",
			firstReplicas, secondReplicas)}, act: scale},
		{Phase: figures.Phase{Name: "new image", Floor: 3, What: "spec.image changes, the Deployment follows in three steps. " +
			"Floor: the Deployment; that it rolls out, that all serve."}, act: newImage},
		{Phase: figures.Phase{Name: "foreign status", Floor: 1, What: "Somebody else updates status.phase to Failed. Floor: the status as it is."}, act: foreignStatus},
		{Phase: figures.Phase{Name: "foreign child", Floor: 3, What: "Somebody else updates the Deployment's image; once it is back the Deployment is observed. " +
			"Floor: the Deployment; that it rolls out, that all serve."}, act: foreignChild},
		{Phase: figures.Phase{Name: "flapping child", Floor: 2, What: fmt.Sprintf("The Deployment's condition Available changes %d times, once in %s. "+
			"Floor: that not enough replicas serve, and that all serve.", o.Flaps, o.FlapEvery)}, act: flap},
		{Phase: figures.Phase{Name: "restart", Floor: 0, What: "The operator is stopped and started again; lists, watches and discovery are no writes."}, act: restart},
		{Phase: figures.Phase{Name: "delete", Floor: 0, What: "The App is deleted, and then its Deployment by the garbage collector."}, act: remove, gone: true},
	}
}

func create(ctx context.Context, l *life) error {
	app := &quellv1alpha1.App{
		ObjectMeta: metav1.ObjectMeta{Namespace: l.key.Namespace, Name: l.key.Name},
		Spec:       quellv1alpha1.AppSpec{Image: firstImage, Replicas: ptr.To[int32](firstReplicas)},
	}
	if err := l.user.Create(ctx, app); err != nil {
		return fmt.Errorf("create the App: %w", err)
	}
	return l.await(ctx, "a Deployment", func(_ *quellv1alpha1.App, d *appsv1.Deployment) bool { return d.UID != "" })
}

func becomeReady(ctx context.Context, l *life) error {
	n := int32(firstReplicas)
	return l.rollOut(ctx, rivals.Counts{}, rivals.Counts{Replicas: n, Updated: n}, rivals.Counts{Replicas: n, Updated: n, Available: n})
}

func nothing(context.Context, *life) error { return nil }

func scale(ctx context.Context, l *life) error {
	err := l.change(ctx, func(spec *quellv1alpha1.AppSpec) { spec.Replicas = ptr.To[int32](secondReplicas) })
	if err != nil {
		return err
	}
	a, b := int32(firstReplicas), int32(secondReplicas)
	return l.rollOut(ctx, rivals.Full(a), rivals.Counts{Replicas: b, Updated: b, Available: a}, rivals.Full(b))
}

func newImage(ctx context.Context, l *life) error {
	if err := l.change(ctx, func(spec *quellv1alpha1.AppSpec) { spec.Image = secondImage }); err != nil {
		return err
	}
	n := int32(secondReplicas)
	return l.rollOut(ctx, rivals.Counts{Replicas: n, Available: n}, rivals.Counts{Replicas: n + 1, Updated: n, Available: n}, rivals.Full(n))
}

func foreignStatus(ctx context.Context, l *life) error {
	return persist(ctx, func() error {
		app, _, err := l.objects(ctx)
		if err != nil {
			return err
		}
		app.Status.Phase = quellv1alpha1.PhaseFailed
		return l.user.Status().Update(ctx, app, foreigner)
	})
}

func foreignChild(ctx context.Context, l *life) error {
	err := persist(ctx, func() error {
		_, d, err := l.objects(ctx)
		if err != nil {
			return err
		}
		d.Spec.Template.Spec.Containers[0].Image = foreignImage
		return l.user.Update(ctx, d, foreigner)
	})
	if err != nil {
		return err
	}
	err = l.await(ctx, "the image", func(app *quellv1alpha1.App, d *appsv1.Deployment) bool { return image(d) == app.Spec.Image })
	if ctx.Err() == nil && errors.Is(err, errNotYet) {
		err = nil // untrue tells
	}
	if err != nil {
		return err
	}
	return l.rollOut(ctx, rivals.Full(secondReplicas))
}

func flap(ctx context.Context, l *life) error {
	n := int32(secondReplicas)
	for i := range l.Flaps {
		available := n
		if i%2 == 0 {
			available--
		}
		if err := l.observe(ctx, rivals.Counts{Replicas: n, Updated: n, Available: available}); err != nil {
			return err
		}
		if err := program.Pause(ctx, l.FlapEvery); err != nil {
			return err
		}
	}
	return nil
}

func restart(ctx context.Context, l *life) error {
	if err := l.stop(); err != nil {
		return err
	}
	if _, err := l.read(); err != nil {
		return err
	}
	l.count() // what the old one still sent
	return l.start(ctx)
}

func remove(ctx context.Context, l *life) error {
	app, d, err := l.objects(ctx)
	if err != nil {
		return err
	}
	if err := l.user.Delete(ctx, app); err != nil {
		return fmt.Errorf("delete the App: %w", err)
	}
	if err := l.step(ctx); err != nil {
		return err
	}
	return client.IgnoreNotFound(l.user.Delete(ctx, d))
}
