package fieldowners_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/hduolab/quell/controller/fieldowners"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

func ExampleFormatPath() {
	labels := fieldpath.MakePathOrDie("metadata", "labels", "app.kubernetes.io/name")
	port := fieldpath.MakePathOrDie("spec", "ports", fieldpath.KeyByFields("port", 80, "protocol", "TCP"), "targetPort")
	fmt.Println(fieldowners.FormatPath(labels))
	fmt.Println(fieldowners.FormatPath(port))
	// Output:
	// .metadata.labels["app.kubernetes.io/name"]
	// .spec.ports[port=80,protocol="TCP"].targetPort
}

func ExampleParsePath() {
	path, err := fieldowners.ParsePath(`.spec.template.spec.containers[name="web"].image`)
	fmt.Println(path, len(path), err)
	_, err = fieldowners.ParsePath(`.spec.containers[web]`)
	fmt.Println(err)
	// Output:
	// .spec.template.spec.containers[name="web"].image 6 <nil>
	// path ".spec.containers[web]": at byte 20: "web" is no index; write [name=value], [=value] or ["field name"]
}

func TestPathsReadBack(t *testing.T) {
	set := func(v any) fieldpath.PathElement { return fieldpath.ValueElement(value.NewValueInterface(v)) }
	for want, path := range map[string]fieldpath.Path{
		".":                                 {},
		".spec.replicas":                    fieldpath.MakePathOrDie("spec", "replicas"),
		`.metadata.labels["a.b/c"]`:         fieldpath.MakePathOrDie("metadata", "labels", "a.b/c"),
		`.metadata.labels.a/b`:              fieldpath.MakePathOrDie("metadata", "labels", "a/b"),
		`.data["a\"]b"]`:                    fieldpath.MakePathOrDie("data", `a"]b`),
		`.data["\x1b[31m\u202e"]`:           fieldpath.MakePathOrDie("data", "\x1b[31m\u202e"),
		`.data["\xff"]`:                     fieldpath.MakePathOrDie("data", "\xff"),
		`.data[""]`:                         fieldpath.MakePathOrDie("data", ""),
		`.finalizers[="x/y"]`:               fieldpath.MakePathOrDie("finalizers", set("x/y")),
		`.a[=1][=true][=null][=1.5]`:        {fieldpath.FieldNameElement("a"), set(1), set(true), set(nil), set(1.5)},
		`.a[={"x\u0000":[1]}]`:              {fieldpath.FieldNameElement("a"), set(map[string]any{"x\x00": []any{1}})},
		`.args[3][-1]`:                      fieldpath.MakePathOrDie("args", 3, -1),
		`.p[port=80,protocol="TCP"].x`:      fieldpath.MakePathOrDie("p", fieldpath.KeyByFields("port", 80, "protocol", "TCP"), "x"),
		`.p["a.b"="x, [y]=z"]`:              fieldpath.MakePathOrDie("p", fieldpath.KeyByFields("a.b", "x, [y]=z")),
		`.p["5"=5]`:                         fieldpath.MakePathOrDie("p", fieldpath.KeyByFields("5", 5)),
		`.p[name="new\nline"]`:              fieldpath.MakePathOrDie("p", fieldpath.KeyByFields("name", "new\nline")),
		`.p[]`:                              {fieldpath.FieldNameElement("p"), fieldpath.KeyElement()},
		`["with space"].x`:                  fieldpath.MakePathOrDie("with space", "x"),
		`.p[a=null,b=false,c="",d=12345.5]`: fieldpath.MakePathOrDie("p", fieldpath.KeyByFields("a", nil, "b", false, "c", "", "d", 12345.5)),
	} {
		if got := fieldowners.FormatPath(path); got != want {
			t.Errorf("%v is written %s, want %s", path, got, want)
		}
		got, err := fieldowners.ParsePath(want)
		if err != nil || !got.Equals(path) {
			t.Errorf("%s is read as %v (%v), want %v", want, got, err, path)
		}
	}
}

func TestPathsThatPeopleWrite(t *testing.T) {
	for text, want := range map[string]string{
		"spec.replicas":                    ".spec.replicas",
		`.p[protocol="TCP",port=80]`:       `.p[port=80,protocol="TCP"]`,
		`.p[ port = 80]`:                   "",
		`.metadata["labels"]["app"]`:       ".metadata.labels.app",
		`.p[=1e0]`:                         ".p[=1]",
		"":                                 "",
		"..":                               "",
		".spec.":                           "",
		".spec[":                           "",
		".spec[]x":                         "",
		`.spec["x`:                         "",
		`.spec["x"`:                        "",
		`.spec["x"=`:                       "",
		".spec[=]":                         "",
		".spec[web]":                       "",
		".spec[a=1,]":                      "",
		".spec[a=1,b]":                     "",
		".spec[1.5]":                       "",
		".spec[99999999999999999999]":      "",
		".has space":                       "",
		".spec]":                           "",
		`.metadata.labels."a.b/c"`:         "",
		".metadata.finalizers[=foo]":       "",
		".spec.containers[name=web].image": "",
	} {
		path, err := fieldowners.ParsePath(text)
		if want == "" && err == nil {
			t.Errorf("%q is read as %v", text, path)
		}
		if want != "" && (err != nil || fieldowners.FormatPath(path) != want) {
			t.Errorf("%q is read as %v (%v), want %s", text, path, err, want)
		}
	}
}

func isSafe(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}

// Every path of any field set reads back as itself, and only itself is written so.
func FuzzPathsReadBack(f *testing.F) {
	for _, seed := range []string{
		`{"f:metadata":{"f:labels":{"f:a.b/c":{},"f:\u001b[1m":{},"f:":{},"f:0":{}}}}`,
		`{"f:p":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{}},"k:{}":{},"k:{\"a.b\":[1,{\"x\":null}]}":{}}}`,
		`{"v:\"\\u202e\"":{},"v:1e30":{},"v:null":{},"v:{\"b\":1,\"a\":2}":{},"i:7":{},"i:-7":{}}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		if !utf8.ValidString(raw) {
			return
		}
		fields := &metav1.FieldsV1{}
		fields.SetRawString(raw)
		written := map[string]fieldpath.Path{}
		fieldowners.Parse([]metav1.ManagedFieldsEntry{{FieldsV1: fields}})[0].Fields.Iterate(func(p fieldpath.Path) {
			text := fieldowners.FormatPath(p)
			read, err := fieldowners.ParsePath(text)
			if err != nil || !read.Equals(p) || !isSafe(text) {
				t.Errorf("%#v is written %s and read as %#v (%v)", p, text, read, err)
			}
			if twin, twice := written[text]; twice {
				t.Errorf("%v and %v are both written %s", p, twin, text)
			}
			written[text] = p.Copy()
		})
	})
}
