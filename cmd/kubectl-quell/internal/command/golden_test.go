package command

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/hduolab/quell/cmd/kubectl-quell/internal/blame"
	"github.com/hduolab/quell/controller/fieldowners"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

var update = flag.Bool("update", false, "write the golden files anew")

// result of one run of the program.
type result struct {
	code     int
	out, err string
}

func run(t testing.TB, stdin string, args ...string) result {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none")) // nothing here may depend on a cluster
	var out, errOut bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(stdin), Out: &out, ErrOut: &errOut}
	code := Execute(t.Context(), streams, "test", args)
	return result{code, out.String(), errOut.String()}
}

func objects(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/objects/*")
	if err != nil || len(files) < 25 {
		t.Fatalf("%d objects (%v)", len(files), err)
	}
	return files
}

// The objects were made on a real API server, or by hand where it makes no such thing; what is shown of them was looked over.
func TestGolden(t *testing.T) {
	for _, file := range objects(t) {
		name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
		t.Run(name, func(t *testing.T) {
			var got strings.Builder
			for _, args := range [][]string{
				{"blame", "-f", file, "--time", "none"},
				{"managers", "-f", file, "--time", "absolute"},
			} {
				r := run(t, "", args...)
				if r.code != 0 || r.err != "" {
					t.Fatalf("%v: exit code %d: %s", args, r.code, r.err)
				}
				harmless(t, r.out)
				fmt.Fprintf(&got, "$ kubectl quell %s\n%s\n", strings.Join(args, " "), r.out)
			}
			golden(t, filepath.Join("testdata/golden", name+".txt"), got.String())
		})
	}
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("differs from %s (go test -update writes it):\n%s", path, got)
	}
}

// harmless checks that nothing printed can do more to a terminal than fill it.
func harmless(t *testing.T, text string) {
	t.Helper()
	for i, r := range text {
		if r != '\n' && !unicode.IsPrint(r) {
			t.Fatalf("%q is printed raw: %q", r, text[max(0, i-20):min(len(text), i+20)])
		}
	}
}

// The report agrees with the field sets, which are asked path by path, for every path that the schema knows.
func TestReportAgreesWithFieldSets(t *testing.T) {
	types := applyconfigurations.NewTypeConverter(scheme.Scheme)
	checked := 0
	for _, file := range objects(t) {
		u := load(t, file)
		if u.IsList() || !scheme.Scheme.Recognizes(u.GroupVersionKind()) {
			continue
		}
		paths, err := fieldowners.Structure(u, u.GroupVersionKind(), types)
		if err != nil {
			continue // made by hand
		}
		owners := reported(t, file)
		entries := fieldowners.Parse(u.GetManagedFields())
		paths.Leaves().Iterate(func(p fieldpath.Path) {
			path := fieldowners.FormatPath(p)
			if strings.HasPrefix(path, ".metadata.managedFields") {
				return
			}
			want := fieldowners.Join(fieldowners.OwnersOf(entries, p))
			if got, found := owners[path]; !found || got != want {
				t.Errorf("%s: %s belongs to %s, the report has %q", file, path, want, got)
			}
			checked++
		})
	}
	if checked < 500 {
		t.Errorf("only %d paths were checked", checked)
	}
}

func load(t testing.TB, file string) *unstructured.Unstructured {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(raw), 4096).Decode(&u); err != nil {
		t.Fatal(err)
	}
	return u
}

func reported(t *testing.T, file string) map[string]string {
	t.Helper()
	r := run(t, "", "blame", "-f", file, "-o", "json")
	var report blame.Report
	if err := json.Unmarshal([]byte(r.out), &report); err != nil || len(report.Items) != 1 {
		t.Fatalf("%s: %v: %s", file, err, r.err)
	}
	owners := map[string]string{}
	for _, f := range report.Items[0].Fields {
		var found []fieldowners.Owner
		for _, o := range f.Owners {
			found = append(found, fieldowners.Owner{Manager: o.Manager, Operation: metav1.ManagedFieldsOperationType(o.Operation), Subresource: o.Subresource})
		}
		owners[f.Path] = fieldowners.Join(found)
	}
	return owners
}

// Whatever is printed as a path is read back, and finds the value that is printed with it.
func TestReportedPathsReadBack(t *testing.T) {
	for _, file := range objects(t) {
		u := load(t, file)
		if u.IsList() {
			continue
		}
		var report blame.Report
		if err := json.Unmarshal([]byte(run(t, "", "blame", "-f", file, "-o", "json", "--show-secrets").out), &report); err != nil {
			t.Fatal(err)
		}
		for _, f := range report.Items[0].Fields {
			path, err := fieldowners.ParsePath(f.Path)
			if err != nil {
				t.Errorf("%s: %v", file, err)
				continue
			}
			got, found := fieldowners.Value(u.Object, path)
			want, _ := json.Marshal(f.Value)
			if raw, _ := json.Marshal(got); !found || f.Value != nil && string(raw) != string(want) {
				t.Errorf("%s: %s leads to %s, the report has %s", file, f.Path, raw, want)
			}
		}
	}
}
