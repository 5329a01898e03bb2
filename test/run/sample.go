package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// applySample is the fourth step.
func (s *session) applySample(ctx context.Context) error {
	key, err := appIn(s.sample)
	if err != nil {
		return err
	}
	s.step("applying the sample and waiting for App %s to be Ready", key)
	if err := s.run(ctx, "apply", "--server-side", "--force-conflicts", "-f", s.sample); err != nil {
		return err
	}
	if err := s.awaitReady(ctx, key); err != nil {
		if ctx.Err() == nil {
			s.explain(ctx, key)
		}
		return fmt.Errorf("wait for App %s: %w", key, err)
	}
	return nil
}

// appIn is the name of the one App in a file.
func appIn(file string) (client.ObjectKey, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return client.ObjectKey{}, fmt.Errorf("read the sample: %w", err)
	}
	var o metav1.PartialObjectMetadata
	if err := yaml.Unmarshal(text, &o); err != nil {
		return client.ObjectKey{}, fmt.Errorf("read the sample %s, which must hold one App: %w", file, err)
	}
	if o.Kind != "App" || o.Name == "" {
		return client.ObjectKey{}, fmt.Errorf("the sample %s must hold one App with a name, holds %s %q", file, o.Kind, o.Name)
	}
	if o.Namespace == "" {
		o.Namespace = metav1.NamespaceDefault
	}
	return client.ObjectKeyFromObject(&o), nil
}

// awaitReady returns nil when the App is Ready. It does not give up earlier when the App says that it waits for a person: it may
// say so from an earlier run. s.app is what was seen last.
func (s *session) awaitReady(ctx context.Context, key client.ObjectKey) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.timeout, fmt.Errorf("not Ready after %s", s.timeout))
	defer cancel()
	watcher, err := s.cluster.Watch(ctx, &quellv1alpha1.AppList{}, client.InNamespace(key.Namespace), client.MatchingFields{"metadata.name": key.Name})
	if err != nil {
		return err
	}
	defer watcher.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case event, open := <-watcher.ResultChan():
			app, ok := event.Object.(*quellv1alpha1.App)
			switch {
			case !open && ctx.Err() != nil:
				return context.Cause(ctx)
			case !ok:
				return errors.New("the API server ended the watch")
			case event.Type == watch.Deleted:
				return errors.New("somebody deleted it")
			case s.see(app):
				return nil
			}
		}
	}
}

// see takes in one version of the App and reports whether it is Ready as its newest generation asks.
func (s *session) see(app *quellv1alpha1.App) bool {
	if summary := summarize(app); s.app == nil || summary != summarize(s.app) {
		s.detail("%s", summary)
	}
	s.app = app
	return app.Status.ObservedGeneration == app.Generation &&
		meta.IsStatusConditionTrue(app.Status.Conditions, quellv1alpha1.ConditionReady)
}

func summarize(app *quellv1alpha1.App) string {
	ready := meta.FindStatusCondition(app.Status.Conditions, quellv1alpha1.ConditionReady)
	if ready == nil {
		return "the operator has not reported yet"
	}
	return fmt.Sprintf("%s, %s replicas ready: %s", app.Status.Phase, app.Status.Ready, ready.Message)
}
