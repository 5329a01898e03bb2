package requests

import (
	"context"
	"errors"
	"fmt"
	"time"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/test/bench/rivals"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
)

// rollOut is what the Deployment controller tells of a rollout, step by step.
func (l *life) rollOut(ctx context.Context, steps ...rivals.Counts) error {
	for _, c := range steps {
		if err := l.step(ctx); err != nil {
			return err
		}
		if err := l.observe(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

func (l *life) observe(ctx context.Context, c rivals.Counts) error {
	return persist(ctx, func() error { return rivals.Observe(ctx, l.user, l.key, c) })
}

// change changes the App's spec and returns when the Deployment has followed.
func (l *life) change(ctx context.Context, how func(*quellv1alpha1.AppSpec)) error {
	err := persist(ctx, func() error {
		app, _, err := l.objects(ctx)
		if err != nil {
			return err
		}
		how(&app.Spec)
		return l.user.Update(ctx, app)
	})
	if err != nil {
		return fmt.Errorf("change the App: %w", err)
	}
	return l.await(ctx, "the Deployment follows", func(app *quellv1alpha1.App, d *appsv1.Deployment) bool {
		return image(d) == app.Spec.Image && ptr.Deref(d.Spec.Replicas, 1) == ptr.Deref(app.Spec.Replicas, 1)
	})
}

// persist tries a write again and again while others win: a storm can refuse it many times.
func persist(ctx context.Context, write func() error) error {
	backoff := wait.Backoff{Steps: 1000, Duration: 5 * time.Millisecond, Jitter: 1}
	return retry.OnError(backoff, func(err error) bool { return ctx.Err() == nil && apierrors.IsConflict(err) }, write)
}

func image(d *appsv1.Deployment) string {
	for _, c := range d.Spec.Template.Spec.Containers {
		return c.Image
	}
	return ""
}

// untrue says what of the App's status is not as the Deployment is, or what of the Deployment is not as the App asks; "" when
// nothing. It looks at what every contestant shows.
func (l *life) untrue(ctx context.Context) (string, error) {
	app, d, err := l.objects(ctx)
	if err != nil {
		return "", err
	}
	if app.UID == "" || d.UID == "" {
		return "", errors.New("the App or its Deployment is gone")
	}
	switch {
	case image(d) != app.Spec.Image:
		return fmt.Sprintf("the Deployment has the image %s", image(d)), nil
	case ptr.Deref(d.Spec.Replicas, 1) != ptr.Deref(app.Spec.Replicas, 1):
		return fmt.Sprintf("the Deployment has %d replicas", ptr.Deref(d.Spec.Replicas, 1)), nil
	}
	return untrueStatus(app, d), nil
}

func untrueStatus(app *quellv1alpha1.App, d *appsv1.Deployment) string {
	s, is := app.Status, d.Status
	said := []*int32{s.Replicas, s.UpdatedReplicas, s.ReadyReplicas, s.AvailableReplicas}
	for i, n := range []int32{is.Replicas, is.UpdatedReplicas, is.ReadyReplicas, is.AvailableReplicas} {
		if said[i] == nil || *said[i] != n {
			return fmt.Sprintf("status does not tell the replica counts %d/%d/%d/%d", is.Replicas, is.UpdatedReplicas, is.ReadyReplicas, is.AvailableReplicas)
		}
	}
	want := ptr.Deref(d.Spec.Replicas, 1)
	complete := is.ObservedGeneration == d.Generation && rivals.Counts{Replicas: is.Replicas, Updated: is.UpdatedReplicas, Available: is.AvailableReplicas} == rivals.Full(want)
	switch {
	case s.ObservedGeneration != app.Generation:
		return fmt.Sprintf("status.observedGeneration is %d, not %d", s.ObservedGeneration, app.Generation)
	case (s.Phase == quellv1alpha1.PhaseRunning) != complete:
		return fmt.Sprintf("status.phase is %s", s.Phase)
	case meta.IsStatusConditionTrue(s.Conditions, quellv1alpha1.ConditionReady) != complete:
		return fmt.Sprintf("condition Ready does not say %t", complete)
	}
	return ""
}
