package fieldowners_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hduolab/quell/controller/fieldowners"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

func ExampleHandover() {
	entries := []metav1.ManagedFieldsEntry{managed("helm", `{"f:spec":{"f:replicas":{},"f:paused":{}}}`)}
	isHelm := func(o fieldowners.Owner) bool { return o.Manager == "helm" }
	replicas := []fieldpath.Path{fieldpath.MakePathOrDie("spec", "replicas")}
	after, err := fieldowners.Handover{From: isHelm, Paths: replicas, To: "argocd"}.Apply(entries)
	for _, e := range fieldowners.Parse(after) {
		fmt.Println(e.Owner, e.Fields)
	}
	fmt.Println(err)
	// Output:
	// "helm" (Apply) .spec.paused
	// "argocd" (Apply) .spec.replicas
	// <nil>
}

func ExampleAttribute() {
	entries := fieldowners.Parse([]metav1.ManagedFieldsEntry{
		managed("helm", `{"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{"f:image":{}}}}}`),
	})
	object := map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "web", "image": "nginx"}}}}
	item := fieldowners.Attribute(object, entries, nil).Root.Children[0].Children[0].Children[0]
	for _, field := range item.Children {
		fmt.Println(fieldowners.FormatPath(field.Path), field.Value, len(field.Owners))
	}
	// Output:
	// .spec.containers[name="web"].image nginx 1
	// .spec.containers[name="web"].name web 0
}

func ExampleBelow() {
	owned := fieldpath.NewSet(fieldpath.MakePathOrDie("spec", "replicas"), fieldpath.MakePathOrDie("metadata", "labels", "app"))
	fmt.Println(fieldowners.Below(owned, []fieldpath.Path{fieldpath.MakePathOrDie("spec")}))
	// Output: .spec.replicas
}

func ExampleSpellings_Path() {
	entries := fieldowners.Parse([]metav1.ManagedFieldsEntry{managed("helm", `{"f:metadata":{"f:labels":{"f:example.com/app":{}}}}`)})
	conflict := fieldowners.Conflict{Path: ".metadata.labels.example.com/app"}
	fmt.Println(fieldowners.FormatPath(fieldowners.NewSpellings(entries, nil).Path(conflict)))
	// Output: .metadata.labels["example.com/app"]
}

func ExampleStructure() {
	types := applyconfigurations.NewTypeConverter(scheme.Scheme)
	live := &corev1.Service{Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "web"}}}
	paths, err := fieldowners.Structure(live, corev1.SchemeGroupVersion.WithKind("Service"), types)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(fieldowners.Below(paths, []fieldpath.Path{fieldpath.MakePathOrDie("spec")}))
	// Output: .spec.selector
}

func ExampleValue() {
	object := map[string]any{"ports": []any{map[string]any{"port": int64(80), "name": "http"}}}
	path, err := fieldowners.ParsePath(`.ports[port=80].name`)
	name, found := fieldowners.Value(object, path)
	fmt.Println(name, found, err)
	// Output: http true <nil>
}

func entry(manager string, operation metav1.ManagedFieldsOperationType, subresource, fields string) metav1.ManagedFieldsEntry {
	e := managed(manager, fields)
	e.Operation, e.Subresource = operation, subresource
	return e
}

func fromManager(name string) func(fieldowners.Owner) bool {
	return func(o fieldowners.Owner) bool { return o.Manager == name }
}

func summary(entries []metav1.ManagedFieldsEntry) string {
	var lines []string
	for _, e := range fieldowners.Parse(entries) {
		lines = append(lines, fmt.Sprintf("%s:%s", e.Owner, strings.ReplaceAll(e.Fields.String(), "\n", " ")))
	}
	return strings.Join(lines, "; ")
}

func TestHandover(t *testing.T) {
	const apply, upd = metav1.ManagedFieldsOperationApply, metav1.ManagedFieldsOperationUpdate
	a := entry("a", apply, "", `{"f:spec":{"f:x":{},"f:y":{}}}`)
	aStatus := entry("a", upd, "status", `{"f:status":{"f:z":{}}}`)
	b := entry("b", apply, "", `{"f:spec":{"f:w":{}}}`)
	bUpdate := entry("b", upd, "", `{"f:spec":{"f:x":{}}}`)
	blind := metav1.ManagedFieldsEntry{Manager: "blind", Operation: upd, APIVersion: "apps/v1"}
	old := entry("old", apply, "", `{"f:spec":{"f:o":{}}}`)
	old.APIVersion = "apps/v1beta1"
	for name, c := range map[string]struct {
		entries  []metav1.ManagedFieldsEntry
		handover fieldowners.Handover
		want     string
	}{
		"all of one, to a new manager, by subresource": {
			[]metav1.ManagedFieldsEntry{a, aStatus}, fieldowners.Handover{From: fromManager("a"), To: "c"},
			`"c" (Apply):.spec.x .spec.y; "c" (Apply, status):.status.z`,
		},
		"united with what the heir has": {
			[]metav1.ManagedFieldsEntry{a, b}, fieldowners.Handover{From: fromManager("a"), To: "b"}, `"b" (Apply):.spec.w .spec.x .spec.y`,
		},
		"updates of the heir itself": {
			[]metav1.ManagedFieldsEntry{b, bUpdate}, fieldowners.Handover{From: fromManager("b"), To: "b"}, `"b" (Apply):.spec.w .spec.x`,
		},
		"a path": {
			[]metav1.ManagedFieldsEntry{a, b}, fieldowners.Handover{From: fromManager("a"), To: "b", Paths: []fieldpath.Path{fieldpath.MakePathOrDie("spec", "y")}},
			`"a" (Apply):.spec.x; "b" (Apply):.spec.w .spec.y`,
		},
		"to nobody": {
			[]metav1.ManagedFieldsEntry{a, b}, fieldowners.Handover{From: fromManager("a")}, `"b" (Apply):.spec.w`,
		},
		"to nobody, what cannot be read": {
			[]metav1.ManagedFieldsEntry{blind, b}, fieldowners.Handover{From: fromManager("blind")}, `"b" (Apply):.spec.w`,
		},
		"to nobody, in an old version": {
			[]metav1.ManagedFieldsEntry{old, b}, fieldowners.Handover{From: fromManager("old")}, `"b" (Apply):.spec.w`,
		},
		"nothing": {[]metav1.ManagedFieldsEntry{a}, fieldowners.Handover{From: fromManager("c"), To: "d"}, "error: " + fieldowners.ErrNothing.Error()},
		"what cannot be read": {
			[]metav1.ManagedFieldsEntry{blind}, fieldowners.Handover{From: fromManager("blind"), To: "d"}, `error: entry of "blind" (Update): entry has no fieldsV1`,
		},
		"two versions": {
			[]metav1.ManagedFieldsEntry{old, b}, fieldowners.Handover{From: fromManager("old"), To: "b"}, "error: the entries of",
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := summary(c.entries)
			after, err := c.handover.Apply(c.entries)
			got := summary(after)
			if err != nil {
				got = "error: " + err.Error()
			}
			if got != c.want && (err == nil || !strings.HasPrefix(got, c.want)) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if summary(c.entries) != before {
				t.Error("the given entries were changed")
			}
		})
	}
}

// The migration from client-side to server-side apply is what client-go makes of it.
func TestHandoverIsClientGosUpgrade(t *testing.T) {
	const upd = metav1.ManagedFieldsOperationUpdate
	client := entry("kubectl-client-side-apply", upd, "", `{"f:data":{".":{},"f:a":{},"f:b":{}}}`)
	server := entry("kubectl", metav1.ManagedFieldsOperationApply, "", `{"f:data":{"f:b":{},"f:c":{}}}`)
	other := entry("edit", upd, "", `{"f:data":{"f:e":{}}}`)
	for _, entries := range [][]metav1.ManagedFieldsEntry{{client, other}, {client, server, other}, {other, server, client}} {
		o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ManagedFields: entries}}
		o = o.DeepCopy()
		if err := csaupgrade.UpgradeManagedFields(o, sets.New("kubectl-client-side-apply"), "kubectl"); err != nil {
			t.Fatal(err)
		}
		after, err := fieldowners.Handover{From: fromManager("kubectl-client-side-apply"), To: "kubectl"}.Apply(entries)
		if err != nil {
			t.Fatal(err)
		}
		if moves := fieldowners.Diff(fieldowners.Parse(o.ManagedFields), fieldowners.Parse(after)); len(moves) > 0 || len(after) != len(o.ManagedFields) {
			t.Errorf("client-go: %s\nhere:      %s", summary(o.ManagedFields), summary(after))
		}
	}
}

func TestHandoverKeepsTimes(t *testing.T) {
	early, late := metav1.Unix(1, 0), metav1.Unix(2, 0)
	a, b := managed("a", `{"f:x":{}}`), managed("b", `{"f:y":{}}`)
	a.Time, b.Time = &late, &early
	after, err := fieldowners.Handover{From: fromManager("a"), To: "b"}.Apply([]metav1.ManagedFieldsEntry{a, b})
	if err != nil || !after[0].Time.Equal(&late) {
		t.Errorf("%v, %v", after, err)
	}
	after, err = fieldowners.Handover{From: fromManager("a"), To: "b"}.Apply([]metav1.ManagedFieldsEntry{{Manager: "x"}, a, b})
	if err != nil || after[0].Manager != "x" || !after[1].Time.Equal(&late) {
		t.Errorf("%v, %v", after, err)
	}
	if errors.Is(err, fieldowners.ErrNothing) {
		t.Error("something was handed over")
	}
}

func TestValue(t *testing.T) {
	object := map[string]any{
		"list":  []any{map[string]any{"name": "a", "v": int64(1)}, map[string]any{"name": "b", "zone": "z"}},
		"set":   []any{"x", int64(2)},
		"null":  nil,
		"a.b/c": "odd",
	}
	for text, want := range map[string]string{
		`.list[name="a"].v`:             "1",
		`.list[name="b",zone="z"].name`: "b",
		`.list[name="a",zone="d"].name`: "a", // the key's default is not in the object
		`.list[name="c"]`:               "none",
		`.list[zone="q"]`:               "none",
		`.list[1].name`:                 "b",
		`.list[2]`:                      "none",
		`.list[-1]`:                     "none",
		`.set[="x"]`:                    "x",
		`.set[=2]`:                      "2",
		`.set[="2"]`:                    "none",
		`.null`:                         "<nil>",
		`.null.x`:                       "none",
		`["a.b/c"]`:                     "odd",
		`.set.x`:                        "none",
	} {
		path, err := fieldowners.ParsePath(text)
		if err != nil {
			t.Fatal(err)
		}
		got := "none"
		if v, found := fieldowners.Value(object, path); found {
			got = fmt.Sprint(v)
		}
		if got != want {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
	}
}

// An item that lacks a key field belongs to the entry whose key has the schema's default for it.
func TestAttributeFillsDefaultsOfKeys(t *testing.T) {
	entries := fieldowners.Parse([]metav1.ManagedFieldsEntry{
		managed("m", `{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{"f:port":{}}}}`),
	})
	object := map[string]any{"ports": []any{map[string]any{"port": int64(80)}, map[string]any{"port": int64(81)}}}
	items := fieldowners.Attribute(object, entries, nil).Root.Children[0].Children
	if got := fieldowners.FormatPath(items[0].Path); got != `.ports[port=80,protocol="TCP"]` || len(items[0].Children[0].Owners) != 1 {
		t.Errorf("the first item is %s", got)
	}
	if got := fieldowners.FormatPath(items[1].Path); got != `.ports[1]` {
		t.Errorf("the second item is %s", got)
	}
}

func TestSpellings(t *testing.T) {
	entries := fieldowners.Parse([]metav1.ManagedFieldsEntry{managed("m", `{"f:metadata":{"f:labels":{"f:a.b/c":{}}}}`)})
	document := map[string]any{"data": map[string]any{"d.e": "x"}}
	spellings := fieldowners.NewSpellings(entries, document)
	for spelling, want := range map[string]string{
		".metadata.labels.a.b/c":  `.metadata.labels["a.b/c"]`,
		".data.d.e":               `.data["d.e"]`, // nobody owns it: an object without managedFields
		`.ports[name="x"].port`:   `.ports[name="x"].port`,
		".cannot be read as path": `[".cannot be read as path"]`,
	} {
		if got := fieldowners.FormatPath(spellings.Path(fieldowners.Conflict{Path: spelling})); got != want {
			t.Errorf("the API server's %s is %s, want %s", spelling, got, want)
		}
	}
}

func TestManagedFieldsThemselvesAreLeftOut(t *testing.T) {
	object := map[string]any{"metadata": map[string]any{"managedFields": []any{map[string]any{"manager": "m"}}}}
	metadata := fieldowners.Attribute(object, nil, nil).Root.Children[0]
	if got := fieldowners.FormatPath(metadata.Path); got != ".metadata" || len(metadata.Value.(map[string]any)) != 0 {
		t.Errorf("%s is %v", got, metadata.Value)
	}
	if len(object["metadata"].(map[string]any)) != 1 {
		t.Error("the object was changed")
	}
}
