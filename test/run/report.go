package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// report is the last step.
func (s *session) report(ctx context.Context) error {
	s.step("App %s is Ready", client.ObjectKeyFromObject(s.app))
	children, err := s.children(ctx)
	if err != nil {
		return err
	}
	s.say("\n%s\n%s", children, conditions(s.app))
	if !s.once {
		s.say("%s", s.advice())
	}
	return nil
}

// children is a table of what the App owns.
func (s *session) children(ctx context.Context) (string, error) {
	var deployments appsv1.DeploymentList
	var services corev1.ServiceList
	for _, list := range []client.ObjectList{&deployments, &services} {
		if err := s.cluster.List(ctx, list, client.InNamespace(s.app.Namespace)); err != nil {
			return "", fmt.Errorf("list the App's children: %w", err)
		}
	}
	rows := []string{"CHILD\tNAME\tREADY"}
	for _, d := range deployments.Items {
		if metav1.IsControlledBy(&d, s.app) {
			rows = append(rows, fmt.Sprintf("Deployment\t%s\t%d/%d", d.Name, d.Status.ReadyReplicas, *d.Spec.Replicas))
		}
	}
	for _, v := range services.Items {
		if metav1.IsControlledBy(&v, s.app) {
			rows = append(rows, fmt.Sprintf("Service\t%s\t%t", v.Name, v.Spec.ClusterIP != ""))
		}
	}
	return table(rows), nil
}

func conditions(app *quellv1alpha1.App) string {
	rows := []string{"CONDITION\tSTATUS\tREASON\tAGE"}
	for _, c := range app.Status.Conditions {
		age := duration.HumanDuration(time.Since(c.LastTransitionTime.Time))
		rows = append(rows, fmt.Sprintf("%s\t%s\t%s\t%s", c.Type, c.Status, c.Reason, age))
	}
	return table(rows)
}

func table(rows []string) string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 3, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(w, row)
	}
	w.Flush()
	return text.String()
}

// advice is what to try from another terminal.
func (s *session) advice() string {
	return fmt.Sprintf(`From another terminal:

%[1]s
%[2]s --namespace %[3]s get app,deployment,service,pod
%[2]s --namespace %[3]s scale app %[4]s --replicas 3
%[2]s --namespace %[3]s get app %[4]s --output yaml --show-managed-fields

Ctrl-C stops it.`,
		s.cluster.export, s.cluster.command, s.app.Namespace, s.app.Name)
}

// explain tells what is known about an App that does not become Ready.
func (s *session) explain(ctx context.Context, key client.ObjectKey) {
	if s.app != nil {
		s.say("\n%s", conditions(s.app))
	}
	events, err := s.kubectl(ctx, "events", "--namespace", key.Namespace)
	if err != nil {
		events = fmt.Sprintf("%v: %s", err, events)
	}
	s.say("\nThe last events in namespace %s:\n%s\n\nThe last lines of the operator's log:\n%s\n",
		key.Namespace, lastLines(events), s.manager.tail())
}
