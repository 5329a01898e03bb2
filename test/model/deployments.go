package model

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// annotationRevision is where the Deployment controller numbers the templates.
const annotationRevision = "deployment.kubernetes.io/revision"

// Deployments is the Deployment controller with the kubelets: of a Deployment that changed it first reports that the rollout began,
// and with the next step that all Pods serve. A ReplicaSet without Pods is its memory of each template.
func Deployments() Process {
	return Process{Name: "the Deployment controller acts", Step: func(ctx context.Context, s *Server) (bool, error) {
		c := s.Client()
		var list appsv1.DeploymentList
		if err := c.List(ctx, &list); err != nil {
			return false, err
		}
		for i := range list.Items {
			if took, err := roll(ctx, s, c, &list.Items[i]); took || err != nil {
				return took, err
			}
		}
		return false, nil
	}}
}

// roll takes one step with one Deployment.
func roll(ctx context.Context, s *Server, c client.Client, d *appsv1.Deployment) (bool, error) {
	if d.DeletionTimestamp != nil {
		return false, nil
	}
	set, err := replicaSet(ctx, c, d)
	if err != nil {
		return false, err
	}
	want := ptr.Deref(d.Spec.Replicas, 1)
	begun := rolledTo(s, d, set, min(set.Status.AvailableReplicas, want))
	if !equality.Semantic.DeepEqual(begun, d) {
		return true, c.Status().Update(ctx, begun, client.FieldOwner("kube-controller-manager"))
	}
	if set.Status.AvailableReplicas == want {
		return false, nil
	}
	set.Status.Replicas, set.Status.AvailableReplicas = want, want
	if err := c.Status().Update(ctx, set, client.FieldOwner("kube-controller-manager")); err != nil {
		return true, err
	}
	return true, c.Status().Update(ctx, rolledTo(s, d, set, want), client.FieldOwner("kube-controller-manager"))
}

// rolledTo is a Deployment of which so many Pods of the newest template serve, and no other.
func rolledTo(s *Server, d *appsv1.Deployment, set *appsv1.ReplicaSet, available int32) *appsv1.Deployment {
	d = d.DeepCopy()
	want := ptr.Deref(d.Spec.Replicas, 1)
	if d.Annotations == nil {
		d.Annotations = map[string]string{}
	}
	d.Annotations[annotationRevision] = set.Annotations[annotationRevision]
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: want, UpdatedReplicas: want, ReadyReplicas: available, AvailableReplicas: available,
		UnavailableReplicas: want - available, Conditions: d.Status.Conditions,
	}
	serves, progress, reason := corev1.ConditionFalse, "ReplicaSetUpdated", "MinimumReplicasUnavailable"
	if available == want {
		serves, progress, reason = corev1.ConditionTrue, "NewReplicaSetAvailable", "MinimumReplicasAvailable"
	}
	setCondition(s, d, appsv1.DeploymentAvailable, serves, reason)
	setCondition(s, d, appsv1.DeploymentProgressing, corev1.ConditionTrue, progress)
	return d
}

func setCondition(s *Server, d *appsv1.Deployment, kind appsv1.DeploymentConditionType, status corev1.ConditionStatus, reason string) {
	now := metav1.Time{Time: s.second()}
	is := appsv1.DeploymentCondition{Type: kind, Status: status, Reason: reason, LastUpdateTime: now, LastTransitionTime: now}
	i := slices.IndexFunc(d.Status.Conditions, func(c appsv1.DeploymentCondition) bool { return c.Type == kind })
	switch {
	case i < 0:
		d.Status.Conditions = append(d.Status.Conditions, is)
	case d.Status.Conditions[i].Status == status && d.Status.Conditions[i].Reason == reason:
	default:
		if d.Status.Conditions[i].Status == status {
			is.LastTransitionTime = d.Status.Conditions[i].LastTransitionTime
		}
		d.Status.Conditions[i] = is
	}
}

// replicaSet is that of a Deployment's template, made when there is none.
func replicaSet(ctx context.Context, c client.Client, d *appsv1.Deployment) (*appsv1.ReplicaSet, error) {
	raw, err := json.Marshal(d.Spec.Template)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(append(raw, d.UID...))
	set := &appsv1.ReplicaSet{}
	key := client.ObjectKey{Namespace: d.Namespace, Name: d.Name + "-" + hex.EncodeToString(sum[:5])}
	if err := c.Get(ctx, key, set); !apierrors.IsNotFound(err) {
		return set, err
	}
	last, _ := strconv.Atoi(d.Annotations[annotationRevision])
	set.Name, set.Namespace = key.Name, key.Namespace
	set.Annotations = map[string]string{annotationRevision: strconv.Itoa(last + 1)}
	set.Spec.Template, set.Spec.Selector = d.Spec.Template, d.Spec.Selector
	return set, c.Create(ctx, set, client.FieldOwner("kube-controller-manager"))
}
