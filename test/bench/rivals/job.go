package rivals

import (
	"context"
	"errors"
	"fmt"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/test/checkout"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Install installs config/crd in a cluster, as Rival.Start wants it, and returns a client with the user agent of config for
// whoever gives the rivals their work.
func Install(ctx context.Context, config *rest.Config) (client.Client, error) {
	if err := checkout.InstallDefinitions(ctx, config); err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), quellv1alpha1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	return c, nil
}

// Counts are the Pods of a Deployment. Those that are ready are available, since there is no minReadySeconds.
type Counts struct{ Replicas, Updated, Available int32 }

// Full are the counts of a Deployment that is rolled out.
func Full(n int32) Counts { return Counts{n, n, n} }

// Observe writes a Deployment's status as its controller does, in a cluster without one. A conflict is an error.
func Observe(ctx context.Context, c client.Client, key client.ObjectKey, counts Counts) error {
	d := &appsv1.Deployment{}
	if err := c.Get(ctx, key, d); err != nil {
		return fmt.Errorf("read the Deployment: %w", err)
	}
	d.Status = counts.status(d)
	return c.Status().Update(ctx, d, client.FieldOwner("kube-controller-manager"))
}

func (c Counts) status(d *appsv1.Deployment) appsv1.DeploymentStatus {
	want := ptr.Deref(d.Spec.Replicas, 1)
	available, progressing := corev1.ConditionFalse, "ReplicaSetUpdated"
	reason := "MinimumReplicasUnavailable"
	if c.Available >= want-want/4 { // maxUnavailable is 25%, rounded down
		available, reason = corev1.ConditionTrue, "MinimumReplicasAvailable"
	}
	if c == Full(want) {
		progressing = "NewReplicaSetAvailable"
	}
	return appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation,
		Replicas:           c.Replicas, UpdatedReplicas: c.Updated, ReadyReplicas: c.Available, AvailableReplicas: c.Available,
		UnavailableReplicas: max(0, want-c.Available),
		Conditions: []appsv1.DeploymentCondition{
			deploymentCondition(appsv1.DeploymentAvailable, available, reason),
			deploymentCondition(appsv1.DeploymentProgressing, corev1.ConditionTrue, progressing),
		},
	}
}

func deploymentCondition(kind appsv1.DeploymentConditionType, is corev1.ConditionStatus, reason string) appsv1.DeploymentCondition {
	now := metav1.Now()
	return appsv1.DeploymentCondition{Type: kind, Status: is, Reason: reason, Message: reason, LastUpdateTime: now, LastTransitionTime: now}
}
