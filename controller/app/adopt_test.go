package app

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestOffered(t *testing.T) {
	app := shop()
	service := func(change func(*corev1.Service)) client.Object {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: app.Name, Annotations: map[string]string{AnnotationAdopt: app.Name}}}
		change(s)
		return s
	}
	deployment := running(app)
	deployment.OwnerReferences, deployment.Annotations = nil, map[string]string{AnnotationAdopt: app.Name}
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: selectorLabels(app)}
	wider := deployment.DeepCopy()
	wider.Spec.Selector.MatchLabels["component"] = "web"
	for name, c := range map[string]struct {
		live    client.Object
		offered bool
	}{
		"to this App":    {service(func(*corev1.Service) {}), true},
		"to another App": {service(func(s *corev1.Service) { s.Annotations[AnnotationAdopt] = "other" }), false},
		"to nobody":      {service(func(s *corev1.Service) { s.Annotations = nil }), false},
		"with an owner":  {service(func(s *corev1.Service) { s.OwnerReferences = []metav1.OwnerReference{{UID: "3"}} }), true},
		"with a controller": {service(func(s *corev1.Service) {
			s.OwnerReferences = []metav1.OwnerReference{{UID: "3", Controller: ptr.To(true)}}
		}), false},
		"with our selector":  {deployment, true},
		"with more selected": {wider, false},
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(isOffered(c.live, app)).To(Equal(c.offered)) })
	}
}

func TestChangesAreBoundedAndTheSpecComesFirst(t *testing.T) {
	g := NewWithT(t)
	g.Expect(changes(nil)).To(Equal("would change nothing but its owner"))
	g.Expect(changes([]string{`.metadata.ownerReferences[uid="1"]`})).To(Equal("would change nothing but its owner"))
	g.Expect(changes([]string{".metadata.labels.a", ".spec.b", ".spec.c"})).To(Equal("would change .spec.b, .spec.c, .metadata.labels.a"))
	var many []string
	for i := range maxChanges + 3 {
		many = append(many, fmt.Sprintf(".spec.%02d", i))
	}
	g.Expect(changes(many)).To(And(HavePrefix("would change .spec.00, "), HaveSuffix(".spec.11 and 3 more")))
}
