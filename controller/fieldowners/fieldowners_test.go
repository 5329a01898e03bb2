package fieldowners_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hduolab/quell/controller/fieldowners"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields/managedfieldstest"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

var deployment = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}

// server is the API server's own field management of one Deployment.
type server struct {
	t *testing.T
	managedfieldstest.TestFieldManager
}

func newServer(t *testing.T) server {
	types := applyconfigurations.NewTypeConverter(scheme.Scheme)
	return server{t, managedfieldstest.NewTestFieldManager(types, deployment)}
}

func (s server) object(body string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(fmt.Appendf(nil, `{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"}, %s}`, body)); err != nil {
		s.t.Fatal(err)
	}
	return u
}

func (s server) apply(manager, body string) error { return s.Apply(s.object(body), manager, false) }

func (s server) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s server) entries() []fieldowners.Entry { return fieldowners.Parse(s.ManagedFields()) }

func names(owners []fieldowners.Owner) string {
	var n []string
	for _, o := range owners {
		n = append(n, o.Manager)
	}
	slices.Sort(n)
	return strings.Join(n, ",")
}

func TestOwnersOf(t *testing.T) {
	s := newServer(t)
	s.must(s.apply("a", `"spec": {"replicas": 2, "template": {"spec": {"containers": [{"name": "web", "image": "one", "args": ["x"]}]}}}`))
	s.must(s.apply("b", `"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "one"}, {"name": "side", "image": "two"}]}}}`))
	container := func(name string, field ...any) fieldpath.Path {
		parts := append([]any{"spec", "template", "spec", "containers", fieldpath.KeyByFields("name", name)}, field...)
		return fieldpath.MakePathOrDie(parts...)
	}
	for _, c := range []struct {
		path fieldpath.Path
		want string
	}{
		{fieldpath.MakePathOrDie("spec", "replicas"), "a"},
		{container("web", "image"), "a,b"},
		{container("side", "image"), "b"},
		{container("web"), "a,b"},
		{container("web", "args"), "a"},
		{container("none", "image"), ""},
		{fieldpath.MakePathOrDie("spec", "paused"), ""},
	} {
		if got := names(fieldowners.OwnersOf(s.entries(), c.path)); got != c.want {
			t.Errorf("owners of %s are %q, want %q", c.path, got, c.want)
		}
	}
}

func TestFindTellsOperationSubresourceAndVersion(t *testing.T) {
	entries := []fieldowners.Entry{
		{Owner: fieldowners.Owner{Manager: "m", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "apps/v1"}},
		{Owner: fieldowners.Owner{Manager: "m", Operation: metav1.ManagedFieldsOperationApply, APIVersion: "apps/v1"}},
		{Owner: fieldowners.Owner{Manager: "m", Operation: metav1.ManagedFieldsOperationApply, Subresource: "status", APIVersion: "apps/v1beta1"}},
	}
	for i, e := range entries {
		if got, ok := fieldowners.Find(entries, e.Owner); !ok || got.Owner != entries[i].Owner {
			t.Errorf("found %v for %v", got.Owner, e.Owner)
		}
	}
	applier := entries[2].Owner
	applier.APIVersion = "apps/v1"
	if _, ok := fieldowners.Find(entries, applier); !ok {
		t.Error("an applier keeps its entry when its API version changes")
	}
	updater := entries[0].Owner
	updater.APIVersion = "apps/v1beta1"
	if _, ok := fieldowners.Find(entries, updater); ok {
		t.Error("updates in another API version are another entry")
	}
}

func TestDiff(t *testing.T) {
	s := newServer(t)
	s.must(s.apply("a", `"spec": {"replicas": 2, "paused": true}`))
	before := s.entries()
	if moves := fieldowners.Diff(before, before); len(moves) != 0 {
		t.Fatalf("moves between equal versions: %v", moves)
	}
	s.must(s.Apply(s.object(`"spec": {"replicas": 3}`), "b", true))
	u := s.Live().DeepCopyObject().(*unstructured.Unstructured)
	unstructured.RemoveNestedField(u.Object, "spec", "paused")
	s.must(s.Update(u, "remover"))
	var got []string
	for _, m := range fieldowners.Diff(before, s.entries()) {
		got = append(got, fmt.Sprintf("%s +%s -%s", m.Path, names(m.Gained), names(m.Lost)))
	}
	want := []string{".spec.paused + -a", ".spec.replicas +b -a"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestDiffSaysNothingOfEntriesThatCannotBeRead(t *testing.T) {
	s := newServer(t)
	s.must(s.apply("a", `"spec": {"replicas": 2}`))
	broken := s.ManagedFields()
	broken[0].FieldsV1 = nil
	for _, moves := range [][]fieldowners.Move{
		fieldowners.Diff(s.entries(), fieldowners.Parse(broken)), fieldowners.Diff(fieldowners.Parse(broken), s.entries()),
	} {
		if len(moves) != 0 {
			t.Errorf("moves of an entry that cannot be read: %v", moves)
		}
	}
}

func TestParseNeverFails(t *testing.T) {
	raw := func(s string) *metav1.FieldsV1 { f := &metav1.FieldsV1{}; f.SetRawString(s); return f }
	cases := map[string]metav1.ManagedFieldsEntry{
		"no fields":       {Manager: "m"},
		"empty fields":    {Manager: "m", FieldsV1: raw("")},
		"broken JSON":     {Manager: "m", FieldsV1: raw(`{"f:a":`)},
		"not an object":   {Manager: "m", FieldsV1: raw(`[1,2]`)},
		"null":            {Manager: "m", FieldsV1: raw(`null`)},
		"unknown type":    {Manager: "m", FieldsType: "FieldsV2", FieldsV1: raw(`{}`)},
		"bad key":         {Manager: "m", FieldsV1: raw(`{"k:{":{}}`)},
		"bad element":     {Manager: "m", FieldsV1: raw(`{"x:y":{}}`)},
		"bad index":       {Manager: "m", FieldsV1: raw(`{"i:nope":{}}`)},
		"wiped by {}":     {},
		"fields no brace": {Manager: "m", FieldsV1: raw(`"f:a"`)},
	}
	for name, entry := range cases {
		t.Run(name, func(t *testing.T) {
			e := fieldowners.Parse([]metav1.ManagedFieldsEntry{entry})[0]
			if e.Fields == nil {
				t.Fatal("fields are nil")
			}
			if e.Unknown == nil && name != "null" && name != "bad element" {
				t.Errorf("read as %v without a word", e.Fields)
			}
			fieldowners.Diff([]fieldowners.Entry{e}, nil)
			fieldowners.OwnersOf([]fieldowners.Entry{e}, fieldpath.MakePathOrDie("a"))
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`{"f:status":{"f:conditions":{"k:{\"type\":\"Ready\"}":{".":{},"f:status":{}}}}}`,
		`{"f:metadata":{"f:labels":{"f:a.b/c":{},".":{}}},"f:spec":{"f:set":{"v:\"x\"":{},"v:1":{}},"f:list":{"i:0":{}}}}`,
		`{"k:{\"port\":1,\"protocol\":\"TCP\"}":{}}`, `{"v:null":{}}`, `{`, `{"f:":{}}`, "",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		fields := &metav1.FieldsV1{}
		fields.SetRawString(raw)
		entries := fieldowners.Parse([]metav1.ManagedFieldsEntry{{Manager: "m", FieldsV1: fields}})
		moves := fieldowners.Diff(nil, entries)
		for _, m := range moves {
			if len(fieldowners.OwnersOf(entries, m.Path)) != 1 {
				t.Errorf("path %s gained an owner and has none", m.Path)
			}
		}
	})
}

// The words are those of the API server, made by its own code and read back.
func TestConflicts(t *testing.T) {
	s := newServer(t)
	s.must(s.apply("an \"odd\" name", `"spec": {"replicas": 2}`))
	u := s.Live().DeepCopyObject().(*unstructured.Unstructured)
	u.Object["spec"].(map[string]any)["paused"] = true
	s.must(s.Update(u, "kubectl-edit"))
	conflicts := fieldowners.Conflicts(fmt.Errorf("wrapped: %w", s.apply("me", `"spec": {"replicas": 3, "paused": false}`)))
	want := []fieldowners.Conflict{
		{Owner: fieldowners.Owner{Manager: "an \"odd\" name", Operation: metav1.ManagedFieldsOperationApply}, Path: ".spec.replicas"},
		{Owner: fieldowners.Owner{Manager: "kubectl-edit", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "apps/v1"}, Path: ".spec.paused"},
	}
	slices.SortFunc(conflicts, func(a, b fieldowners.Conflict) int { return strings.Compare(b.Path, a.Path) })
	if !slices.Equal(conflicts, want) {
		t.Errorf("got  %+v\nwant %+v", conflicts, want)
	}
}

func TestConflictsOfASubresource(t *testing.T) {
	cause := metav1.StatusCause{
		Type: metav1.CauseTypeFieldManagerConflict, Field: ".spec.replicas",
		Message: `conflict with "kube-controller-manager" with subresource "scale" using apps/v1 at 2026-01-01T00:00:00Z`,
	}
	err := apierrors.NewApplyConflict([]metav1.StatusCause{cause, cause}, "2 conflicts")
	want := fieldowners.Conflict{Path: ".spec.replicas", Owner: fieldowners.Owner{
		Manager: "kube-controller-manager", Operation: metav1.ManagedFieldsOperationUpdate, Subresource: "scale", APIVersion: "apps/v1",
	}}
	if got := fieldowners.Conflicts(err); len(got) != 1 || got[0] != want {
		t.Errorf("got %+v, want one %+v", got, want)
	}
}

func TestConflictsOfOtherErrors(t *testing.T) {
	lock := apierrors.NewConflict(schema.GroupResource{Resource: "x"}, "y", fmt.Errorf("modified"))
	for _, err := range []error{nil, fmt.Errorf("plain"), lock, apierrors.NewNotFound(schema.GroupResource{}, "y")} {
		if got := fieldowners.Conflicts(err); got != nil {
			t.Errorf("%v gives conflicts %v", err, got)
		}
	}
	odd := apierrors.NewApplyConflict([]metav1.StatusCause{{Type: metav1.CauseTypeFieldManagerConflict, Field: ".a", Message: "new words"}}, "")
	if got := fieldowners.Conflicts(odd); len(got) != 1 || got[0].Path != ".a" || got[0].Manager != "" {
		t.Errorf("an unknown wording gives %+v, want the path alone", got)
	}
}

func TestOwnerInWords(t *testing.T) {
	for want, o := range map[string]fieldowners.Owner{
		`"a"`:                  {Manager: "a"},
		`"a" (Apply)`:          {Manager: "a", Operation: metav1.ManagedFieldsOperationApply},
		`"a" (Update, status)`: {Manager: "a", Operation: metav1.ManagedFieldsOperationUpdate, Subresource: "status"},
		`"a" (scale)`:          {Manager: "a", Subresource: "scale"},
	} {
		if got := o.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got := fieldowners.Join(nil); got != "an unknown writer" {
		t.Errorf("nobody is %q", got)
	}
}
