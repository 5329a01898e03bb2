package ssa

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// heldByThem is a Deployment of which another manager has spec.replicas.
func heldByThem(version string) *unstructured.Unstructured {
	u := deployment(object{"replicas": int64(7)})
	u.SetUID("1")
	u.SetResourceVersion(version)
	u.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: "they", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "apps/v1", FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{}}}`),
	}})
	return u
}

// failing is an applier all of whose requests fail but reads, which find what is in there.
func failing(g Gomega, there client.Object) *Applier {
	c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build(), interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
			if there == nil {
				return errors.New("no read")
			}
			there.(*unstructured.Unstructured).DeepCopyInto(into.(*unstructured.Unstructured))
			return nil
		},
		Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
			return errors.New("no apply")
		},
	})
	a, err := NewApplier(Options{Client: c, Reader: c, Types: builtin, FieldManager: "me"})
	g.Expect(err).NotTo(HaveOccurred())
	return a
}

func TestWhatIsYieldedIsKnownAlthoughTheApplyFails(t *testing.T) {
	g := NewWithT(t)
	a := failing(g, nil)
	in := Intent{
		Desired: client.ApplyConfigurationFromUnstructured(deployment(object{"replicas": int64(2), "minReadySeconds": int64(3)})),
		Live:    heldByThem("5"), Rules: Rules{Default: Yield},
	}
	result, err := a.Apply(context.Background(), in)
	g.Expect(err).To(MatchError(ContainSubstring("no apply")))
	g.Expect(result.Yielded).To(HaveLen(1))
	g.Expect(result.Yielded[0].Path).To(Equal(".spec.replicas"))

	r := a.memory.of("1")
	r.yielded, r.wrote = result.Yielded, "9" // the object is older than that, and cannot be read
	r.Unlock()
	again, err := a.Apply(context.Background(), in)
	g.Expect(err).To(MatchError(ContainSubstring("no read")))
	g.Expect(again.Yielded).To(Equal(result.Yielded), "of the call before")
}

func TestPreviewChangesNothingThatAnApplyGoesBy(t *testing.T) {
	g := NewWithT(t)
	in := Intent{Desired: client.ApplyConfigurationFromUnstructured(deployment(object{"replicas": int64(2)})), Live: heldByThem("5")}
	for _, doubt := range []bool{true, false} {
		for name, a := range map[string]*Applier{"reads": failing(g, heldByThem("9")), "cannot read": failing(g, nil)} {
			r := a.memory.of("1")
			r.wrote, r.doubt, r.last = "9", doubt, digestOf("last")
			r.Unlock()
			_, _ = a.Preview(context.Background(), in)
			r = a.memory.of("1")
			g.Expect(r.doubt).To(Equal(doubt), name)
			g.Expect(r.last).To(Equal(digestOf("last")), name)
			r.Unlock()
		}
	}
	a := failing(g, nil)
	r := a.memory.of("1")
	r.wrote = "4"
	r.Unlock()
	a.memory.answers.Add("1", answer{heldByThem("4"), a.opts.Clock.Now()})
	_, err := a.Preview(context.Background(), in)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(a.memory.answers.Contains("1")).To(BeTrue())
}

func TestWhatIsYieldedIsKnownAlthoughAnotherFieldIsReported(t *testing.T) {
	g := NewWithT(t)
	live := heldByThem("5")
	live.Object["spec"].(object)["paused"] = true
	live.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: "they", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "apps/v1", FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{},"f:paused":{}}}`),
	}})
	result, err := failing(g, nil).Apply(context.Background(), Intent{
		Desired: client.ApplyConfigurationFromUnstructured(deployment(object{"replicas": int64(2), "paused": false})),
		Live:    live, Rules: Rules{Default: Yield, Paths: []PathRule{{Path: ".spec.paused", Rule: Report}}},
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(result.Outcome).To(Equal(Conflicted))
	g.Expect(result.Yielded).To(HaveLen(1))
	g.Expect(result.Yielded[0].Path).To(Equal(".spec.replicas"))
}
