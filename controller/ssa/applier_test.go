package ssa

import (
	"context"
	"errors"
	"testing"
	"time"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/applyconfig"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

var errSent = errors.New("a request was sent")

// answered is an applier whose applies are answered with an error.
func answered(g Gomega, clock *testclock.FakeClock, answer func() error) *Applier {
	c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build(), interceptor.Funcs{
		Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
			return answer()
		},
	})
	a, err := NewApplier(Options{Client: c, Types: builtin, FieldManager: "me", Clock: clock})
	g.Expect(err).NotTo(HaveOccurred())
	return a
}

// inPlace is a live object that has this content, applied by us.
func inPlace(t *testing.T, u *unstructured.Unstructured, version string) *unstructured.Unstructured {
	t.Helper()
	raw, err := contentOf(t, u, "").fields.ToJSON()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	live := u.DeepCopy()
	live.SetUID("1")
	live.SetResourceVersion(version)
	live.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: "me", Operation: metav1.ManagedFieldsOperationApply, APIVersion: "apps/v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(string(raw)),
	}})
	return live
}

func replicas(n int64) client.Object { return deployment(object{"replicas": n}) }

func wanting(o client.Object, live *unstructured.Unstructured) Intent {
	return Intent{Desired: client.ApplyConfigurationFromUnstructured(o.(*unstructured.Unstructured)), Live: live}
}

func TestAfterTwoRequestsWithoutAnswerNothingIsKnown(t *testing.T) {
	g := NewWithT(t)
	sent := 0
	a := answered(g, testclock.NewFakeClock(time.Now()), func() error { sent++; return errors.New("connection reset") })
	live := inPlace(t, deployment(object{"replicas": int64(1)}), "5")
	for i, n := range []int64{2, 1, 1} { // the first may have been committed, the second not
		_, err := a.Apply(context.Background(), wanting(replicas(n), live))
		g.Expect(err).To(HaveOccurred())
		g.Expect(sent).To(Equal(i+1), "what live shows may be older than the first request")
	}
}

func TestARefusalThatIsRepeatedTellsWhenItIsAskedAgain(t *testing.T) {
	g := NewWithT(t)
	clock, sent := testclock.NewFakeClock(time.Now()), 0
	a := answered(g, clock, func() error {
		sent++
		return apierrors.NewInvalid(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "web", nil)
	})
	live := inPlace(t, deployment(object{"replicas": int64(1)}), "5")
	var result Result
	for range 3 * DefaultContentionPace.Free {
		var err error
		before := sent
		result, err = a.Apply(context.Background(), wanting(replicas(2), live))
		g.Expect(IsTerminal(err)).To(BeTrue())
		g.Expect(result.Held()).To(Equal(sent == before), "%d requests, again in %s", sent, result.RetryAfter)
	}
	g.Expect(result.Held()).To(BeTrue())
	before := sent
	clock.Step(result.RetryAfter)
	result, err := a.Apply(context.Background(), wanting(replicas(2), live))
	g.Expect(IsTerminal(err)).To(BeTrue())
	g.Expect(result.Held()).To(BeFalse())
	g.Expect(sent).To(Equal(before + 1))
}

func TestARefusalIsToldAlsoWhereDryRunsMeetConflicts(t *testing.T) {
	g := NewWithT(t)
	live := pods(object{"containers": []any{object{"name": "web", "image": "x"}}, "hostNetwork": true})
	live.SetUID("1")
	live.SetResourceVersion("7")
	live.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: "they", Operation: "Update", APIVersion: "apps/v1", FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:template":{"f:spec":{"f:hostNetwork":{}}}}}`),
	}})
	invalid := apierrors.NewInvalid(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "web", nil)
	invalid.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeFieldValueInvalid, Field: "spec.template.spec", Message: "no"}}
	applies := 0
	k := interceptor.NewClient(fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build(), interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
			into.(*unstructured.Unstructured).Object = live.DeepCopy().Object
			return nil
		},
		Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
			applies++
			return invalid
		},
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return apierrors.NewConflict(schema.GroupResource{}, "web", errors.New("a webhook says so"))
		},
	})
	a, err := NewApplier(Options{Client: k, Reader: k, Types: builtin, FieldManager: "me"})
	g.Expect(err).NotTo(HaveOccurred())
	for range 2 * DefaultContentionPace.Free {
		_, err = a.Apply(context.Background(), wanting(pods(object{"priority": int64(1)}), live))
		g.Expect(IsTerminal(err)).To(BeTrue(), "%v", err)
	}
	g.Expect(applies).To(BeNumerically("<=", (DefaultContentionPace.Free+1)*maxRequests), "a refusal is paced")
}

func TestOfOneKindThatTheCacheStripsNothingIsConcludedForAnother(t *testing.T) {
	g := NewWithT(t)
	a := answered(g, testclock.NewFakeClock(time.Now()), func() error { return errSent })
	content := deployment(object{"replicas": int64(1)})
	result, err := a.Apply(context.Background(), wanting(content, inPlace(t, content, "5")))
	g.Expect(result.Outcome, err).To(Equal(Unchanged))
	wiped := inPlace(t, content, "6")
	wiped.SetManagedFields(nil)
	a.stripped.Store(schema.GroupKind{Group: "other", Kind: "Deployment"}, true)
	_, err = a.Apply(context.Background(), wanting(content, wiped))
	g.Expect(err).To(MatchError(errSent))
	a = answered(g, testclock.NewFakeClock(time.Now()), func() error { return errSent })
	a.stripped.Store(schema.GroupKind{Group: "apps", Kind: "Deployment"}, true)
	_, _ = a.Apply(context.Background(), wanting(content, inPlace(t, content, "5")))
	result, err = a.Apply(context.Background(), wanting(content, wiped))
	g.Expect(result.Outcome, err).To(Equal(Unchanged))
}

func TestAFieldOfANewerServerIsLeftOut(t *testing.T) {
	g := NewWithT(t)
	a := answered(g, testclock.NewFakeClock(time.Now()), func() error { return errSent })
	content := deployment(object{"replicas": int64(1)})
	live := inPlace(t, content, "5")
	live.Object["spec"].(object)["ofTheNextRelease"] = "x"
	result, err := a.Apply(context.Background(), wanting(content, live))
	g.Expect(result.Outcome, err).To(Equal(Unchanged))

	preview, err := a.Preview(context.Background(), wanting(replicas(2), live))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(preview.Values).To(Equal([]string{".spec.replicas"}))
	_, err = (&call{Applier: a, content: contentOf(t, content, "")}).survey(live)
	g.Expect(err).NotTo(HaveOccurred())
}

func TestOfACustomResourceThatIsReadThroughItsGoTypeZerosAreNotKnown(t *testing.T) {
	scheme := runtime.NewScheme()
	NewWithT(t).Expect(quellv1alpha1.AddToScheme(scheme)).To(Succeed())
	app := &unstructured.Unstructured{Object: object{
		"apiVersion": quellv1alpha1.SchemeGroupVersion.String(), "kind": "App", "metadata": object{"name": "web"}, "spec": object{},
	}}
	c := &call{
		Applier: &Applier{opts: Options{Client: fake.NewClientBuilder().WithScheme(scheme).Build(), Types: applyconfig.NewTypeConverter(scheme)}},
		content: &content{object: app},
	}
	for _, newer := range []bool{false, true} {
		live := app.DeepCopy()
		if newer {
			live.Object["spec"].(object)["ofTheNextRelease"] = "x"
		}
		_, exact, err := c.typedOf(live)
		NewWithT(t).Expect(exact, err).To(Equal(!newer))
	}
}

func TestOurOwnEntryIsNoFormerOne(t *testing.T) {
	c := &call{Applier: &Applier{opts: Options{FieldManager: "me", FormerManagers: []string{"me", "old"}}}, content: contentOf(t, deployment(nil), "")}
	for manager, operations := range map[string]map[metav1.ManagedFieldsOperationType]bool{
		"me":   {metav1.ManagedFieldsOperationApply: false, metav1.ManagedFieldsOperationUpdate: true},
		"old":  {metav1.ManagedFieldsOperationApply: true, metav1.ManagedFieldsOperationUpdate: true},
		"they": {metav1.ManagedFieldsOperationApply: false},
	} {
		for operation, former := range operations {
			NewWithT(t).Expect(c.isFormer(metav1.ManagedFieldsEntry{Manager: manager, Operation: operation})).To(Equal(former), "%s %s", manager, operation)
		}
	}
}

func TestSubresourcesThatCannotBeAppliedAreRefused(t *testing.T) {
	_, err := NewApplier(Options{Client: fake.NewClientBuilder().Build(), Types: builtin, FieldManager: "me", Subresource: "scale"})
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring(`Options.Subresource must be status, or empty for the object itself, is "scale"`)))
}
