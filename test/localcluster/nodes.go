package localcluster

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// populate waits until the namespace default exists and, in a full cluster, makes the nodes and waits until Pods can run.
func (c *Cluster) populate(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(c.admin)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	all := slices.Collect(maps.Values(c.processes))
	err = c.await(ctx, "the namespace default", all, func(ctx context.Context) error {
		_, err := client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceDefault, metav1.GetOptions{})
		return err
	})
	if err != nil || c.options.ControlPlaneOnly {
		return err
	}
	if err := createNodes(ctx, client, c.options.Nodes); err != nil {
		return err
	}
	return c.await(ctx, "the nodes and the default ServiceAccount", all, func(ctx context.Context) error {
		return readyForPods(ctx, client)
	})
}

// createNodes leaves alone the nodes that kept data has already.
func createNodes(ctx context.Context, client kubernetes.Interface, count int) error {
	for i := range count {
		name := fmt.Sprintf("node-%d", i)
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			corev1.LabelHostname:   name,
			corev1.LabelOSStable:   "linux",
			corev1.LabelArchStable: "amd64", // what kwok's own stage reports, whatever this machine is
		}}}
		_, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create %s: %w", name, err)
		}
	}
	return nil
}

func readyForPods(ctx context.Context, client kubernetes.Interface) error {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, node := range nodes.Items {
		if !schedulable(node) {
			return fmt.Errorf("%s is not ready", node.Name)
		}
		if _, err := client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, node.Name, metav1.GetOptions{}); err != nil {
			return fmt.Errorf("%s has no lease yet: %w", node.Name, err)
		}
	}
	_, err = client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("default ServiceAccount: %w", err)
	}
	return nil
}

// schedulable wants the taint not-ready gone too; the node lifecycle controller removes it some time after Ready.
func schedulable(node corev1.Node) bool {
	return len(node.Spec.Taints) == 0 && slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
