package command

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Whatever managedFields and an object hold, nothing panics, and nothing printed can harm a terminal.
func FuzzObjectsOfAnyShape(f *testing.F) {
	for _, file := range objects(f) {
		u := load(f, file)
		managed, _, _ := unstructured.NestedFieldNoCopy(u.Object, "metadata", "managedFields")
		entries, err := json.Marshal(managed)
		if err != nil {
			f.Fatal(err)
		}
		unstructured.RemoveNestedField(u.Object, "metadata", "managedFields")
		spec, err := json.Marshal(u.Object["spec"])
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(entries), string(spec))
	}
	f.Add(`[{"manager":"a","operation":"Apply","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"v:1":{},"k:{\"a\":1}":{".":{}},"i:0":{},"f:x":{"f:y":{}}}}}]`, `[{"a":1},1,[1]]`)
	f.Add(`[{},{"fieldsV1":null},{"fieldsV1":{"f:":{"k:{}":{}}}}]`, `{"":[{}],"x":null}`)
	f.Fuzz(func(t *testing.T, entries, spec string) {
		if !json.Valid([]byte(entries)) || !json.Valid([]byte(spec)) {
			return
		}
		object := `{"apiVersion":"v1","kind":"Thing","metadata":{"name":"x","managedFields":` + entries + `},"spec":` + spec + `}`
		for _, args := range [][]string{
			{"blame", "-f", "-"}, {"blame", "-f", "-", "-o", "json"}, {"blame", "-f", "-", "-o", "yaml"}, {"blame", "-f", "-", "--manager", "a"},
			{"managers", "-f", "-"}, {"managers", "-f", "-", "--pairs"}, {"diff-owners", "-f", "-"},
			{"conflicts", "--offline", "-f", "testdata/manifests/thing.yaml", "--live", "-", "--force-conflicts"},
		} {
			r := run(t, object+"\n---\n"+object, args...)
			if r.code != 0 && r.err == "" {
				t.Errorf("%v: exit code %d without a word", args, r.code)
			}
			if args[len(args)-1] != "yaml" { // which keeps what a terminal gets escaped
				harmless(t, r.out)
			}
			harmless(t, r.err)
		}
	})
}
