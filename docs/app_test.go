// Package docs_test holds docs to the code.
package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// Each field of App's own types has a row in a table, under its path, and each field of spec is in an example.
func TestAppFields(t *testing.T) {
	doc := read(t, "app.md")
	shown := map[string]bool{}
	for _, example := range examples(doc) {
		eachKey("", example, func(path string) { shown[path] = true })
	}
	for _, path := range fields(reflect.TypeFor[quellv1alpha1.AppSpec](), "") {
		if strings.HasPrefix(path, "initContainers[].") {
			continue // as those of a sidecar, which have their rows
		}
		if !strings.Contains(doc, "| `"+path+"` |") {
			t.Errorf("app.md has no row for `%s`", path)
		}
		if !shown[path] {
			t.Errorf("no example in app.md sets %s", path)
		}
	}
	for _, path := range fields(reflect.TypeFor[quellv1alpha1.AppStatus](), "status.") {
		if !strings.Contains(doc, "| `"+path+"` |") {
			t.Errorf("app.md has no row for `%s`", path)
		}
	}
}

// Each row of a field is about one that exists.
func TestAppRows(t *testing.T) {
	known := slices.Concat(fields(reflect.TypeFor[quellv1alpha1.AppSpec](), ""), fields(reflect.TypeFor[quellv1alpha1.AppStatus](), "status."))
	_, rest, _ := strings.Cut(read(t, "app.md"), "\n## Spec")
	for line := range strings.Lines(rest) {
		if strings.HasPrefix(line, "### Phases") {
			break
		}
		if path, isRow := strings.CutPrefix(line, "| `"); isRow {
			path, _, _ = strings.Cut(path, "`")
			if !slices.Contains(known, path) {
				t.Errorf("app.md has a row for %s, which App has not", path)
			}
		}
	}
}

// Each row of spec says what the API server goes by: the default, whether the field is required, and the values of an enumeration.
func TestAppSchema(t *testing.T) {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal([]byte(read(t, "../config/crd/quell.dev_apps.yaml")), &crd); err != nil {
		t.Fatal(err)
	}
	rows := map[string][]string{}
	for line := range strings.Lines(read(t, "app.md")) {
		if cells := strings.Split(line, " | "); len(cells) == 3 && strings.HasPrefix(line, "| `") {
			rows[strings.Trim(cells[0], "| `")] = cells[1:]
		}
	}
	n := 0
	eachField(crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"], "", func(path string, field apiextensionsv1.JSONSchemaProps, isRequired bool) {
		row, found := rows[path]
		if !found {
			return // a type of Kubernetes, or a field of a row that stands for several
		}
		n++
		if isRequired != (row[0] == "required") {
			t.Errorf("app.md: whether %s is required: %t", path, isRequired)
		}
		if value := word(field.Default); value != "" && strings.Trim(row[0], "`") != value {
			t.Errorf("app.md: the default of %s is %s", path, value)
		}
		for i := range field.Enum {
			if value := "`" + word(&field.Enum[i]) + "`"; !strings.Contains(row[0]+row[1], value) {
				t.Errorf("app.md: %s can also be %s", path, value)
			}
		}
	})
	if n < 100 {
		t.Errorf("compared %d fields only", n)
	}
}

// eachField tells every field of a schema, under its path as the rows have it.
func eachField(of apiextensionsv1.JSONSchemaProps, prefix string, tell func(path string, field apiextensionsv1.JSONSchemaProps, isRequired bool)) {
	for name, field := range of.Properties {
		tell(prefix+name, field, slices.Contains(of.Required, name))
		if field.Items != nil && field.Items.Schema != nil {
			eachField(*field.Items.Schema, prefix+name+"[].", tell)
		}
		eachField(field, prefix+name+".", tell)
	}
}

// word is a JSON value as rows have it, "" for none and for objects.
func word(value *apiextensionsv1.JSON) string {
	if value == nil || strings.HasPrefix(string(value.Raw), "{") {
		return ""
	}
	return strings.Trim(string(value.Raw), `"`)
}

// Each word that the controller gives as a reason has a row, and each row is about one that the controller gives.
func TestAppReasons(t *testing.T) {
	_, rest, _ := strings.Cut(read(t, "app.md"), "\n### Reasons")
	section, _, _ := strings.Cut(rest, "\n## ")
	var rows []string
	for line := range strings.Lines(section) {
		if name, isRow := strings.CutPrefix(line, "| `"); isRow {
			name, _, _ = strings.Cut(name, "`")
			rows = append(rows, name)
		}
	}
	given, words := reasons(t, "../controller/app")
	for _, r := range given {
		if !slices.Contains(rows, r) {
			t.Errorf("app.md does not explain reason %s", r)
		}
	}
	for _, r := range rows {
		if !slices.Contains(words, r) {
			t.Errorf("app.md explains reason %s, which the controller does not give", r)
		}
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// fields are the paths of a type's fields, and of those within it, as far as the types are App's own.
func fields(typ reflect.Type, prefix string) []string {
	var paths []string
	for f := range typ.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		path, inner := prefix+name, f.Type
		if inner.Kind() == reflect.Slice {
			path, inner = path+"[]", inner.Elem()
		}
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct && inner.PkgPath() == typ.PkgPath() {
			paths = append(paths, strings.TrimSuffix(path, "[]"))
			paths = append(paths, fields(inner, path+".")...)
			continue
		}
		paths = append(paths, strings.TrimSuffix(path, "[]"))
	}
	return paths
}

// examples are the specs in the YAML blocks of a document.
func examples(doc string) []map[string]any {
	var specs []map[string]any
	for _, block := range strings.Split(doc, "```yaml\n")[1:] {
		text, _, _ := strings.Cut(block, "```")
		content := map[string]any{}
		if yaml.Unmarshal([]byte(text), &content) != nil {
			continue // the API server refuses it in test/integration/app
		}
		if spec, whole := content["spec"].(map[string]any); whole {
			content = spec
		}
		specs = append(specs, content)
	}
	return specs
}

// eachKey tells the path of every field in some content.
func eachKey(prefix string, content map[string]any, tell func(path string)) {
	for key, value := range content {
		tell(prefix + key)
		switch v := value.(type) {
		case map[string]any:
			eachKey(prefix+key+".", v, tell)
		case []any:
			for _, item := range v {
				if m, isMap := item.(map[string]any); isMap {
					eachKey(prefix+key+"[].", m, tell)
				}
			}
		}
	}
}

// reasons are the values of the constants of a package whose names begin with reason, and the first words of its findings; words
// are all its string literals.
func reasons(t *testing.T, dir string) (given, words []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			given = append(given, reasonsIn(n)...)
			words = append(words, text(n)...)
			return true
		})
	}
	if len(given) == 0 {
		t.Fatalf("%s gives no reason", dir)
	}
	slices.Sort(given)
	return slices.Compact(given), words
}

func reasonsIn(n ast.Node) []string {
	switch n := n.(type) {
	case *ast.ValueSpec:
		if len(n.Values) == len(n.Names) && strings.HasPrefix(n.Names[0].Name, "reason") {
			return text(n.Values[0])
		}
	case *ast.CompositeLit:
		if name, isName := n.Type.(*ast.Ident); isName && name.Name == "finding" && len(n.Elts) > 0 {
			return text(n.Elts[0])
		}
	}
	return nil
}

// text is the value of a string literal, none for anything else.
func text(n ast.Node) []string {
	literal, isLiteral := n.(*ast.BasicLit)
	if !isLiteral || literal.Kind != token.STRING {
		return nil
	}
	value, err := strconv.Unquote(literal.Value)
	if err != nil {
		return nil
	}
	return []string{value}
}
