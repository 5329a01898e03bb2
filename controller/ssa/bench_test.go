package ssa

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields/managedfieldstest"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// kinds is a client that knows kinds and sends nothing: any request is a nil pointer.
type kinds struct{ client.Client }

func (kinds) GroupVersionKindFor(o runtime.Object) (schema.GroupVersionKind, error) {
	return apiutil.GVKForObject(o, clientgoscheme.Scheme)
}

// web is a child as operators apply it: labels, an owner, one container with its restrictions and a spread.
func web() *appsv1ac.DeploymentApplyConfiguration {
	selector := map[string]string{"app.kubernetes.io/name": "web", "app.kubernetes.io/instance": "web"}
	labels := map[string]string{"app.kubernetes.io/name": "web", "app.kubernetes.io/instance": "web", "app.kubernetes.io/managed-by": "operator"}
	spread := func(key string) *corev1ac.TopologySpreadConstraintApplyConfiguration {
		return corev1ac.TopologySpreadConstraint().WithMaxSkew(1).WithTopologyKey(key).WithWhenUnsatisfiable(corev1.ScheduleAnyway).
			WithLabelSelector(metav1ac.LabelSelector().WithMatchLabels(selector))
	}
	pod := corev1ac.PodSpec().
		WithSecurityContext(corev1ac.PodSecurityContext().WithRunAsNonRoot(true).
			WithSeccompProfile(corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))).
		WithContainers(corev1ac.Container().WithName("app").WithImage("registry.example/web:1.0.0").
			WithSecurityContext(corev1ac.SecurityContext().WithAllowPrivilegeEscalation(false).
				WithCapabilities(corev1ac.Capabilities().WithDrop("ALL")))).
		WithTopologySpreadConstraints(spread(corev1.LabelTopologyZone), spread(corev1.LabelHostname))
	return appsv1ac.Deployment("web", "shop").
		WithLabels(labels).
		WithAnnotations(map[string]string{"operator.example/rendering": "2"}).
		WithOwnerReferences(metav1ac.OwnerReference().WithAPIVersion("operator.example/v1").WithKind("Web").WithName("web").
			WithUID("6f0c4a86-2f6f-4f0e-9a53-0b1f9f0f8d55").WithController(true).WithBlockOwnerDeletion(true)).
		WithSpec(appsv1ac.DeploymentSpec().WithReplicas(2).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(selector)).
			WithStrategy(appsv1ac.DeploymentStrategy().WithType(appsv1.RollingUpdateDeploymentStrategyType)).
			WithTemplate(corev1ac.PodTemplateSpec().WithLabels(labels).WithSpec(pod)))
}

// stored is what the API server's own field management makes of an apply, as a typed cache holds it.
func stored(tb testing.TB, desired runtime.ApplyConfiguration) *appsv1.Deployment {
	tb.Helper()
	u := &unstructured.Unstructured{}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(desired)
	if err != nil {
		tb.Fatal(err)
	}
	u.Object = content
	server := managedfieldstest.NewTestFieldManager(builtin, appsv1.SchemeGroupVersion.WithKind("Deployment"))
	if err := server.Apply(u, "operator", true); err != nil {
		tb.Fatal(err)
	}
	live := &appsv1.Deployment{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(server.Live().(*unstructured.Unstructured).Object, live); err != nil {
		tb.Fatal(err)
	}
	live.TypeMeta, live.UID, live.ResourceVersion, live.ManagedFields = metav1.TypeMeta{}, "uid", "7", server.ManagedFields()
	return live
}

func applierOf(tb testing.TB) *Applier {
	tb.Helper()
	a, err := NewApplier(Options{Client: kinds{}, Types: builtin, FieldManager: "operator"})
	if err != nil {
		tb.Fatal(err)
	}
	return a
}

func unchanged(tb testing.TB, a *Applier, in Intent) {
	tb.Helper()
	if result, err := a.Apply(tb.Context(), in); err != nil || result.Outcome != Unchanged {
		tb.Fatal(result, err)
	}
}

// BenchmarkPreCheck is what it costs to find out that a child is as desired: the first time, as after a restart or an event, and when
// it is remembered of this version.
func BenchmarkPreCheck(b *testing.B) {
	in := Intent{Desired: web(), Live: stored(b, web()), Inputs: "1"}
	b.Run("first", func(b *testing.B) {
		a := applierOf(b)
		b.ReportAllocs()
		for b.Loop() {
			a.memory.forget(in.Live.GetUID())
			unchanged(b, a, in)
		}
	})
	b.Run("remembered", func(b *testing.B) {
		a := applierOf(b)
		unchanged(b, a, in)
		b.ReportAllocs()
		for b.Loop() {
			unchanged(b, a, in)
		}
	})
}

// The steady state of all objects, so it has to stay cheap. Allocations, unlike time, do not depend on the machine.
func TestARememberedPreCheckIsCheap(t *testing.T) {
	in := Intent{Desired: web(), Live: stored(t, web()), Inputs: "1"}
	a := applierOf(t)
	unchanged(t, a, in)
	if n := testing.AllocsPerRun(100, func() { unchanged(t, a, in) }); n > 20 {
		t.Errorf("a remembered pre-check allocates %.0f times", n)
	}
}
