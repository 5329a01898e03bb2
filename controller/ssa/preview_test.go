package ssa

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

func TestPreview(t *testing.T) {
	desired := deployment(object{"replicas": int64(2), "template": object{"spec": object{"containers": []any{
		object{"name": "web", "image": "a"}, object{"name": "side", "image": "b"},
	}}}})
	live := func(manager string, replicas int64, containers ...any) *unstructured.Unstructured {
		u := deployment(object{"replicas": replicas, "template": object{"spec": object{"containers": containers}}})
		u.SetUID("1")
		fields := contentOf(t, desired, "").fields
		if manager != "me" {
			fields = fieldpath.NewSet(fieldpath.MakePathOrDie("spec", "replicas"))
		}
		raw, err := fields.ToJSON()
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		u.SetManagedFields([]metav1.ManagedFieldsEntry{{
			Manager: manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "apps/v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(string(raw)),
		}})
		return u
	}
	web, side := object{"name": "web", "image": "a"}, object{"name": "side", "image": "b"}
	const list = ".spec.template.spec.containers"
	for name, c := range map[string]struct {
		live                  client.Object
		rules                 Rules
		reasons, values, kept []string
	}{
		"nothing there":         {nil, Rules{}, nil, nil, nil},
		"as desired":            {live("me", 2, web, side), Rules{}, nil, nil, nil},
		"a value":               {live("me", 3, web, side), Rules{}, []string{".spec.replicas changed"}, []string{".spec.replicas"}, nil},
		"a value and its order": {live("me", 2, side, object{"name": "web", "image": "z"}), Rules{}, []string{list + `[name="web"].image changed`}, []string{list + `[name="web"].image`}, nil},
		"another's, alike": {live("they", 2, web, side), Rules{}, []string{
			`.spec.replicas shared with "they" (Apply)`, list + `[name="side"].image added`, list + `[name="side"].name added`,
			list + `[name="web"].image added`, list + `[name="web"].name added`,
		}, nil, nil},
		"an item of another's": {live("me", 2, object{"name": "theirs", "image": "c"}, web, side), Rules{}, nil, nil, []string{list + `[name="theirs"]`}},
		"another's, other": {live("they", 3, web), Rules{}, []string{
			`.spec.replicas taken by "they" (Apply)`, list + `[name="side"].image added`, list + `[name="side"].name added`,
			list + `[name="web"].image added`, list + `[name="web"].name added`,
		}, []string{".spec.replicas", list + `[name="side"]`}, nil},
		"another's, under Report": {live("they", 3, web), Rules{Default: Report}, []string{`.spec.replicas taken by "they" (Apply)`},
			[]string{".spec.replicas", list + `[name="side"]`}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			a := previewer(g)
			for range 2 { // the second look finds what the first one remembered, if anything
				p, err := a.Preview(context.Background(), Intent{Desired: client.ApplyConfigurationFromUnstructured(desired), Live: c.live, Rules: c.rules})
				g.Expect(err).NotTo(HaveOccurred())
				var words []string
				for _, r := range p.Reasons {
					words = append(words, r.String())
				}
				g.Expect(words).To(Equal(c.reasons))
				g.Expect(p.Values).To(Equal(c.values))
				g.Expect(p.Kept).To(Equal(c.kept))
			}
		})
	}
}

func TestPreviewRefusesWhatApplyRefuses(t *testing.T) {
	g := NewWithT(t)
	bad := deployment(object{"replicas": "many"})
	live := deployment(object{"replicas": int64(1)})
	_, err := previewer(g).Preview(context.Background(), Intent{Desired: client.ApplyConfigurationFromUnstructured(bad), Live: live})
	g.Expect(IsTerminal(err)).To(BeTrue(), "%v", err)
}

// previewer is an applier whose client fails the test when it is asked for anything.
func previewer(g Gomega) *Applier {
	c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build(), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			g.Expect("a read").To(BeEmpty())
			return nil
		},
		Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
			g.Expect("an apply").To(BeEmpty())
			return nil
		},
	})
	a, err := NewApplier(Options{Client: c, Reader: c, Types: builtin, FieldManager: "me"})
	g.Expect(err).NotTo(HaveOccurred())
	return a
}
