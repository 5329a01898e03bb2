package app

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
)

func TestOnlyWhatIsTheAppsBeyondDoubtIsRemovable(t *testing.T) {
	app := shop()
	another := app.DeepCopy()
	another.UID = "another"
	service := func(owner *quellv1alpha1.App, labels map[string]string) client.Object {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{
			Name: app.Name, Labels: labels, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: ChildManager, Operation: metav1.ManagedFieldsOperationApply}},
		}}
		if owner != nil {
			s.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, quellv1alpha1.SchemeGroupVersion.WithKind("App"))}
		}
		return s
	}
	ours := map[string]string{LabelManagedBy: ManagedBy}
	for name, c := range map[string]struct {
		live      client.Object
		removable bool
	}{
		"controlled and labelled":            {service(app, ours), true},
		"an orphan with fields of ours":      {service(nil, ours), false},
		"of an earlier App of the same name": {service(another, ours), false},
		"without our label":                  {service(app, nil), false},
		"with another's label":               {service(app, map[string]string{LabelManagedBy: "helm"}), false},
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(isRemovable(c.live, app)).To(Equal(c.removable)) })
	}
}

func TestAChildIsDeletedOnlyAsItWasSeen(t *testing.T) {
	g := NewWithT(t)
	var given client.DeleteOptions
	c := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Delete: func(_ context.Context, _ client.WithWatch, _ client.Object, opts ...client.DeleteOption) error {
			given.ApplyOptions(opts)
			return nil
		},
	})
	r := &Reconciler{Options: Options{Client: c}}
	g.Expect(r.remove(context.Background(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "1", ResourceVersion: "5"}})).To(Succeed())
	g.Expect(*given.Preconditions.UID).To(Equal(types.UID("1")))
	g.Expect(*given.Preconditions.ResourceVersion).To(Equal("5"))
}

func TestFinalizersAreNamedSorted(t *testing.T) {
	g := NewWithT(t)
	g.Expect(finalizers(nil)).To(BeEmpty())
	g.Expect(finalizers(&corev1.Service{})).To(BeEmpty())
	g.Expect(finalizers(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Finalizers: []string{"b", "a"}}})).To(Equal(", which waits for its finalizers a, b"))
}
