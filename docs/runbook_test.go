package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// Each alert has a section under its own name, to which runbook_url leads, and no section is about an alert that there is not.
func TestRunbookAlerts(t *testing.T) {
	doc := read(t, "runbook.md")
	expectSections(t, sections(doc, "Alerts"), alerts(t))
	for _, name := range alerts(t) {
		if table, _, _ := strings.Cut(doc, "\n## Alerts"); !strings.Contains(table, "`"+name+"`") {
			t.Errorf("the table at the head does not name %s", name)
		}
	}
}

// Each verdict has a paragraph with a cure, but those that are no storm.
func TestRunbookVerdicts(t *testing.T) {
	found := sections(read(t, "runbook.md"), "Verdicts")
	expectSections(t, found, verdicts(t))
	for name, text := range found {
		if !strings.Contains(text, "\nCure: ") && !strings.HasPrefix(text, "No storm: ") && name != "TooLittleEvidence" {
			t.Errorf("%s: no line begins with Cure", name)
		}
	}
}

func expectSections(t *testing.T, found map[string]string, want []string) {
	t.Helper()
	for _, name := range want {
		if len(strings.TrimSpace(found[name])) == 0 {
			t.Errorf("runbook.md has no section on %s", name)
		}
	}
	for name := range found {
		if !slices.Contains(want, name) {
			t.Errorf("runbook.md has a section on %s, which there is not", name)
		}
	}
}

// sections are the texts of the sections of a chapter by their headings.
func sections(doc, chapter string) map[string]string {
	_, rest, _ := strings.Cut(doc, "\n## "+chapter+"\n")
	rest, _, _ = strings.Cut(rest, "\n## ")
	found := map[string]string{}
	for _, section := range strings.Split(rest, "\n### ")[1:] {
		heading, text, _ := strings.Cut(section, "\n")
		found[heading] = strings.TrimLeft(text, "\n")
	}
	return found
}

// alerts are the names of those in config/prometheus.
func alerts(t *testing.T) []string {
	t.Helper()
	var rules struct {
		Spec struct {
			Groups []struct{ Rules []struct{ Alert string } }
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, "../config/prometheus/rules.yaml")), &rules); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, group := range rules.Spec.Groups {
		for _, rule := range group.Rules {
			if rule.Alert != "" {
				names = append(names, rule.Alert)
			}
		}
	}
	if len(names) == 0 {
		t.Fatal("there is no alert")
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// verdicts are the values of the constants of type Verdict in controller/storm.
func verdicts(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../controller/storm/*.go")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, isSpec := n.(*ast.ValueSpec)
			if !isSpec || len(spec.Values) != 1 {
				return true
			}
			if typ, isName := spec.Type.(*ast.Ident); isName && typ.Name == "Verdict" {
				names = append(names, text(spec.Values[0])...)
			}
			return true
		})
	}
	if len(names) == 0 {
		t.Fatal("there is no verdict")
	}
	return names
}
