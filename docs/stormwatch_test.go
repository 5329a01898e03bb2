package docs_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
)

// Each field of StormWatch has a row, each row is about a field, and each field of spec is in an example.
func TestStormWatchFields(t *testing.T) {
	doc := read(t, "stormwatch.md")
	shown := map[string]bool{}
	for _, example := range examples(doc) {
		eachKey("", example, func(path string) { shown[path] = true })
	}
	spec := fields(reflect.TypeFor[quellv1alpha1.StormWatchSpec](), "")
	for _, path := range spec {
		if !shown[path] {
			t.Errorf("no example in stormwatch.md sets %s", path)
		}
	}
	known := slices.Concat(spec, fields(reflect.TypeFor[quellv1alpha1.StormWatchStatus](), "status."))
	_, section, _ := strings.Cut(doc, "\n## Spec")
	section, _, _ = strings.Cut(section, "\n### Conditions")
	compareRows(t, "stormwatch.md", known, rowNames(section))
}

// Each reason that the controller gives has a row, each condition and metric too, and no row is about another.
func TestStormWatchWords(t *testing.T) {
	doc := read(t, "stormwatch.md")
	part := func(title string) string {
		_, section, found := strings.Cut(doc, title+"\n")
		if !found {
			t.Fatalf("stormwatch.md has lost %s", title)
		}
		section, _, _ = strings.Cut(section, "\n#")
		return section
	}
	given, words := reasons(t, "../controller/stormwatch")
	compareRows(t, "stormwatch.md", given, rowNames(part("### Reasons")))
	compareRows(t, "stormwatch.md", []string{"Ready", "Reconciling", "Stalled", quellv1alpha1.ConditionStormDetected}, rowNames(part("### Conditions")))
	var metrics, rows []string
	for _, word := range words {
		if strings.HasPrefix(word, "quell_storm_") {
			metrics = append(metrics, word)
		}
	}
	for _, row := range rowNames(part("## Metrics")) {
		name, _, _ := strings.Cut(row, "{")
		rows = append(rows, name)
	}
	compareRows(t, "stormwatch.md", metrics, rows)
	for _, reason := range []string{"StormDetected", "StormEnded"} {
		if !slices.Contains(words, reason) || !strings.Contains(part("## Events"), "`"+reason+"`") {
			t.Errorf("stormwatch.md and the controller disagree on the event %s", reason)
		}
	}
}

// rowNames are what the rows of tables are about.
func rowNames(section string) []string {
	var rows []string
	for line := range strings.Lines(section) {
		if name, isRow := strings.CutPrefix(line, "| `"); isRow {
			name, _, _ = strings.Cut(name, "`")
			rows = append(rows, name)
		}
	}
	return rows
}

func compareRows(t *testing.T, doc string, known, rows []string) {
	t.Helper()
	if len(known) == 0 {
		t.Fatal("nothing is known")
	}
	for _, name := range known {
		if !slices.Contains(rows, name) {
			t.Errorf("%s has no row for %s", doc, name)
		}
	}
	for _, name := range rows {
		if !slices.Contains(known, name) {
			t.Errorf("%s has a row for %s, which there is not", doc, name)
		}
	}
}
