package ssa

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
)

func formFor(g Gomega, v any) digest {
	d, ok := formOf(v)
	g.Expect(ok).To(BeTrue(), "%T has a form", v)
	return d
}

// TestFormsDifferWhereTheJSONDoes changes each leaf of an apply configuration, and takes each part of it away.
func TestFormsDifferWhereTheJSONDoes(t *testing.T) {
	g := NewWithT(t)
	whole := rich()
	before := formFor(g, whole)
	raw, err := json.Marshal(whole)
	g.Expect(err).NotTo(HaveOccurred())
	variants := 0
	var tree any
	g.Expect(json.Unmarshal(raw, &tree)).To(Succeed())
	var vary func(v any, set func(any), remove func())
	try := func(what string) {
		changed, err := json.Marshal(tree)
		g.Expect(err).NotTo(HaveOccurred())
		other := &appsv1ac.DeploymentApplyConfiguration{}
		if json.Unmarshal(changed, other) != nil {
			return // another type of value does not fit
		}
		after, err := json.Marshal(other)
		g.Expect(err).NotTo(HaveOccurred())
		variants++
		g.Expect(formFor(g, other)).NotTo(Equal(before), "%s: %s", what, after)
	}
	vary = func(v any, set func(any), remove func()) {
		switch v := v.(type) {
		case map[string]any:
			for key, part := range v {
				vary(part, func(p any) { v[key] = p }, func() { delete(v, key) })
			}
		case []any:
			for i, part := range v {
				vary(part, func(p any) { v[i] = p }, func() { v[i] = v[0] })
			}
		case string:
			set(v + "x")
			try("longer " + v)
		case float64:
			set(v + 1)
			try(fmt.Sprint("more than ", v))
		case bool:
			set(!v)
			try(fmt.Sprint("not ", v))
		}
		set(v)
		if _, isList := v.([]any); !isList {
			return
		}
		remove()
		try("without a list")
		set(v)
	}
	vary(tree, func(any) {}, func() {})
	g.Expect(variants).To(BeNumerically(">", 40))

	for range 20 {
		g.Expect(formFor(g, rich())).To(Equal(before), "the order of maps does not count")
	}
}

// rich has values of all sorts of types.
func rich() *appsv1ac.DeploymentApplyConfiguration {
	d := web()
	pod := d.Spec.Template.Spec
	pod.WithTerminationGracePeriodSeconds(0)
	pod.Containers[0].WithPorts(corev1ac.ContainerPort().WithName("http").WithContainerPort(80)).
		WithResources(corev1ac.ResourceRequirements().WithRequests(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("1Gi")})).
		WithReadinessProbe(corev1ac.Probe().WithHTTPGet(corev1ac.HTTPGetAction().WithPort(intstr.FromString("http")))).
		WithEnv(corev1ac.EnvVar().WithName("A").WithValue(""))
	return d.WithCreationTimestamp(metav1.NewTime(time.Unix(1_800_000_000, 0)))
}

func TestFormsOfSpecialValues(t *testing.T) {
	g := NewWithT(t)
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	distinct := map[digest]any{}
	values := []any{
		nil, "", "1", 1, int32(1), true, 1.0, []string{}, []string(nil), []string{""}, []string{"a", "b"}, []string{"ab"}, map[string]string{}, map[string]string{"a": ""},
		map[string]any{"a": nil}, map[string]any{"a": ""}, map[string]any{"a": map[string]any{"b": int64(1)}}, &unstructured.Unstructured{},
		&unstructured.Unstructured{Object: object{"a": "b"}}, metav1.NewTime(at), metav1.NewTime(at.Add(time.Second)), metav1.NewTime(at.In(time.FixedZone("", 3600))),
		intstr.FromInt32(1), intstr.FromString("1"), resource.MustParse("1"), resource.MustParse("100000000000000000000000"), resource.MustParse("100000000000000000000001"),
	}
	for _, v := range values {
		distinct[formFor(g, v)] = v
	}
	g.Expect(distinct).To(HaveLen(len(values)))
	g.Expect(formFor(g, metav1.NewTime(time.Now()))).NotTo(Equal(formFor(g, metav1.NewTime(time.Now().Add(time.Hour)))))

	now := time.Now()
	g.Expect(formFor(g, metav1.NewTime(now))).To(Equal(formFor(g, metav1.NewTime(now.Round(0)))), "the monotonic clock is no content")
}

func TestFormsTellTypesOfOneNameApart(t *testing.T) {
	g := NewWithT(t)
	one := func() any {
		type T struct {
			A int `json:"a"`
		}
		return T{1}
	}
	other := func() any {
		type T struct {
			A int `json:"b"`
		}
		return T{1}
	}
	g.Expect(formFor(g, map[string]any{"x": one()})).NotTo(Equal(formFor(g, map[string]any{"x": other()})))
}

func TestWhatHasNoForm(t *testing.T) {
	g := NewWithT(t)
	type cycle struct{ Next *cycle }
	round := &cycle{}
	round.Next = round
	type hidden struct{ at time.Time } // as a type with its own MarshalJSON might have
	for _, v := range []any{round, hidden{at: time.Now()}, func() {}, map[int]string{1: ""}, make(chan int)} {
		_, ok := formOf(v)
		g.Expect(ok).To(BeFalse(), "%T", v)
	}
	_, err := identify(unencodable{})
	g.Expect(err).NotTo(HaveOccurred(), "that it cannot be sent is told when it is to be sent")
}
