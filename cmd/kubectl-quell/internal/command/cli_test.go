package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/hduolab/quell/cmd/kubectl-quell/internal/frame"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/show"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/transitions"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

const (
	hpa   = "testdata/objects/deployment-under-hpa-and-edit.yaml"
	three = "testdata/objects/deployment-three-appliers.yaml"
)

func TestUsageErrors(t *testing.T) {
	for _, line := range []string{
		"nonsense", "blame", "blame --nonsense", "blame -f x y", "blame -f x -A", "blame -f x --time never", "blame -f x -o nonsense",
		"blame -f x --color blue", "managers", "managers x --time none", "managers x -o wide", "conflicts", "conflicts -f x -k y",
		"conflicts x --offline", "conflicts -f x --schema y", "conflicts -f x --live y", "conflicts -f x --field-manager=", "conflicts -f x --time never", "noop",
		"noop -f x -o wide", "transfer x", "transfer x --from a", "transfer --from a --to b", "transfer x --from a --to b --operation X",
		"transfer x --from a --to b --path [", "transfer x --from a --to b --dry-run=client", "release x", "release x --manager a --path ..",
		"restore", "restore a b", "blame pods/a/b", "managers pods -l a=b=c", "release pods --manager a --field-selector x", "managers pods/a/b/c", "blame pods a/b", "noop pods/a pods", "restore a -f b", "restore -f a -f b", "restore -", "restore -f -", "restore a --dry-run=x", "diff-owners", "diff-owners x", "diff-owners -f x --watch", "diff-owners x --watch",
		"version x", "version -o wide", "diff-owners -f x -o wide", "managers x --fix --pairs", "managers x --fix -o json", "managers -f x --fix", "managers x --dry-run=x",
		"transfer x --from a --to \x01", "noop -f x --field-manager \x01",
		"storm x --all", "storm x/y", "storm --all --custom", "storm --for=-1s", "storm --rate 0", "storm -o x", "audit", "audit x --rate 0",
		"audit x ./x", "help nonsense", "completion nonsense", "blame -", "blame -f x -o json --template y", "managers x --yes", "managers x --dry-run=server",
		"managers x --backup y", "conflicts -f - --offline --live -", "conflicts -f x --offline --live y --subresource scale",
	} {
		t.Run(line, func(t *testing.T) {
			r := run(t, "", strings.Fields(line)...)
			if r.code != frame.Usage || r.out != "" {
				t.Errorf("exit code %d, %q", r.code, r.out)
			}
			if !strings.HasPrefix(r.err, "error: ") || !strings.Contains(r.err, " --help'") {
				t.Errorf("says %q", r.err)
			}
		})
	}
}

func TestFailuresOfInput(t *testing.T) {
	broken, empty := filepath.Join(t.TempDir(), "broken.yaml"), filepath.Join(t.TempDir(), "empty.yaml")
	if err := errors.Join(os.WriteFile(broken, []byte("a: [\n"), 0o600), os.WriteFile(empty, []byte("---\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"blame -f no-such-file", "blame -f " + broken, "managers -f " + broken, "restore no-such-file", "restore " + hpa, "diff-owners -f " + broken,
		"conflicts -f " + hpa + " --offline --live no-such-file", "conflicts -f " + empty + " --offline --live " + hpa,
		"conflicts -f " + hpa + " --offline --live " + empty, "blame deployment/web", "noop -f " + hpa,
		"storm --for 1s", "storm pods --for 1s --report no-such-folder/x.html", "audit no-such-file",
		"conflicts -f " + hpa + " --offline --live " + hpa, "diff-owners -f testdata/objects/pods.yaml",
	} {
		t.Run(line, func(t *testing.T) {
			if r := run(t, "", strings.Fields(line)...); r.code != frame.Failure || !strings.HasPrefix(r.err, "error: ") {
				t.Errorf("exit code %d, %q", r.code, r.err)
			}
		})
	}
}

func TestHelpIsFine(t *testing.T) {
	for _, line := range []string{"", "--help", "blame --help", "help", "help conflicts", "version", "completion", "completion bash"} {
		if r := run(t, "", strings.Fields(line)...); r.code != 0 || r.out == "" || r.err != "" {
			t.Errorf("%q: exit code %d, %q", line, r.code, r.err)
		}
	}
}

func TestEveryCommandHasExamplesAndNoStub(t *testing.T) {
	root := New(frame.New(genericiooptions.NewTestIOStreamsDiscard(), ""))
	for _, cmd := range root.Commands() {
		if cmd.Name() == "help" || cmd.Name() == "completion" {
			continue
		}
		if !strings.Contains(cmd.Example, "kubectl quell "+cmd.Name()) || cmd.Short == "" {
			t.Errorf("%s lacks help", cmd.Name())
		}
	}
}

func TestTheCompletersName(t *testing.T) {
	got := Arguments([]string{"/x/" + Completer, "bl"})
	if !slices.Equal(got, []string{cobra.ShellCompRequestCmd, "bl"}) {
		t.Errorf("asks for %q", got)
	}
	if got := Arguments([]string{"/x/kubectl-quell", "blame", "x"}); !slices.Equal(got, []string{"blame", "x"}) {
		t.Errorf("runs %q", got)
	}
	if r := run(t, "", got...); !strings.Contains(r.out, "blame\t") {
		t.Errorf("completes to %q", r.out)
	}
}

func TestFilters(t *testing.T) {
	for line, wants := range map[string][2]string{
		"--manager kubectl-edit":         {"image: nginx:1.28", "replicas: 3"},
		"--subresource scale":            {"replicas: 3", "nginx"},
		"--subresource status":           {"readyReplicas: 3", "nginx"},
		"--manager nobody-at-all":        {"note: no field is what the flags ask for; the owners are ", "nginx"},
		"--subresource none -o yaml":     {"- no field is what the flags ask for; the owners are ", "nginx"},
		"--manager kubectl-edit -o json": {`"path": ".spec.template.spec.containers[name=\"hpa\"].image"`, ".spec.replicas"},
	} {
		r := run(t, "", append([]string{"blame", "-f", hpa}, strings.Fields(line)...)...)
		if r.code != 0 || !strings.Contains(r.out, wants[0]) || strings.Contains(r.out, wants[1]) {
			t.Errorf("%s: exit code %d\n%s", line, r.code, r.out)
		}
	}
	r := run(t, "", "blame", "-f", three, "--only-shared", "--time", "none")
	if !strings.Contains(r.out, "image: nginx:1.27") || strings.Contains(r.out, "envoy") {
		t.Errorf("only shared fields:\n%s", r.out)
	}
}

func TestColour(t *testing.T) {
	const escape = "\x1b["
	if r := run(t, "", "blame", "-f", hpa); strings.Contains(r.out, escape) {
		t.Error("colours what is no terminal")
	}
	always := run(t, "", "blame", "-f", hpa, "--color", "always")
	if !strings.Contains(always.out, escape) || run(t, "", "blame", "-f", hpa, "--color", "always").out != always.out {
		t.Error("--color always has no stable colours")
	}
	t.Setenv("NO_COLOR", "1")
	if r := run(t, "", "blame", "-f", hpa, "--color", "always"); !strings.Contains(r.out, escape) {
		t.Error("NO_COLOR overrules the flag")
	}
}

func TestOutputFormats(t *testing.T) {
	for format, want := range map[string]string{
		"json": `"kind": "BlameReport"`, "yaml": "kind: BlameReport\n", "wide": "apps/v1",
		`jsonpath={.items[0].fields[?(@.path==".spec.replicas")].owners[*].manager}`: "kube-controller-manager",
		`go-template={{.apiVersion}}`: "cli.quell.dev/v1alpha1",
	} {
		if r := run(t, "", "blame", "-f", hpa, "-o", format); r.code != 0 || !strings.Contains(r.out, want) {
			t.Errorf("%s: exit code %d, %s\n%s", format, r.code, r.err, r.out)
		}
	}
	odd := "testdata/objects/custom-odd-text.json"
	for _, format := range []string{"json", "yaml"} {
		r := run(t, "", "blame", "-f", odd, "-o", format)
		if r.code != 0 || strings.ContainsAny(r.out, "\x1b\u009b") {
			t.Errorf("%s: exit code %d, %s\n%q", format, r.code, r.err, r.out)
		}
	}
	var report struct {
		Items []struct{ Fields []map[string]any }
	}
	if err := json.Unmarshal([]byte(run(t, "", "blame", "-f", odd, "-o", "json").out), &report); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(report.Items[0].Fields, func(f map[string]any) bool {
		return f["path"] == ".spec.text" && f["value"] == "bell\a esc\x1b[31m red\u202e rtl\u0085 nel \u009b31m csi"
	}) {
		t.Error("a report changes odd text")
	}
}

func TestSecretsAreMasked(t *testing.T) {
	const secret = "testdata/objects/secret.yaml"
	for _, args := range [][]string{
		{"blame", "-f", secret}, {"blame", "-f", secret, "-o", "json"}, {"managers", "-f", secret, "-o", "yaml"},
		{"conflicts", "--offline", "-f", "testdata/manifests/secret.yaml", "--live", secret}, {"diff-owners", "-f", "testdata/manifests/secrets.yaml"},
	} {
		r := run(t, "", args...)
		for _, word := range []string{"hunter2", "aHVudGVyMg==", "c2VjcmV0", "bmV3"} {
			if r.code > 1 || r.out == "" || strings.Contains(r.out+r.err, word) {
				t.Errorf("%v: exit code %d tells %q: %s%s", args, r.code, word, r.out, r.err)
			}
		}
	}
	if r := run(t, "", "blame", "-f", secret, "--show-secrets"); !strings.Contains(r.out, "aHVudGVyMg==") {
		t.Errorf("--show-secrets does not: %s", r.out)
	}
}

func TestStandardInputIsReadWhenAsked(t *testing.T) {
	raw, err := os.ReadFile(hpa)
	if err != nil {
		t.Fatal(err)
	}
	r := run(t, string(raw)+"---\n"+string(raw), "blame", "-f", "-", "--time", "none")
	once := run(t, "", "blame", "-f", hpa, "--time", "none")
	if r.code != 0 || r.out != once.out+"---\n"+once.out {
		t.Errorf("exit code %d: %s\n%s", r.code, r.err, r.out)
	}
}

func TestInputWithoutObjects(t *testing.T) {
	if r := run(t, "", "blame", "-f", "-"); r.code != 0 || r.out != "" || r.err != "no objects found\n" {
		t.Errorf("exit code %d: %s%s", r.code, r.out, r.err)
	}
}

func TestOfflineConflictsWithoutManagedFields(t *testing.T) {
	document := `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a.b": "%s"}}`
	live := filepath.Join(t.TempDir(), "live.json")
	if err := os.WriteFile(live, fmt.Appendf(nil, document, "theirs"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := run(t, fmt.Sprintf(document, "mine"), "conflicts", "-f", "-", "--offline", "--live", live)
	if r.code != frame.Findings || !strings.Contains(r.out, `.data["a.b"]   "mine"   "theirs"   before-first-apply (Update)`) {
		t.Errorf("exit code %d: %s%s", r.code, r.out, r.err)
	}
}

func TestOfflineConflicts(t *testing.T) {
	args := []string{"conflicts", "--offline", "-f", "testdata/manifests/web.yaml", "--live", three, "--field-manager", "ci", "--time", "none"}
	r := run(t, "", args...)
	if r.code != frame.Findings {
		t.Errorf("exit code %d: %s", r.code, r.err)
	}
	golden(t, "testdata/golden/conflicts-offline.txt", r.out)
	forced := run(t, "", append(slices.Clone(args), "--force-conflicts")...)
	golden(t, "testdata/golden/conflicts-offline-forced.txt", forced.out)
	dir := t.TempDir()
	manifest, err := os.ReadFile("testdata/manifests/web.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"web.yaml": manifest, "kustomization.yaml": []byte("resources: [web.yaml]\n")} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args[2], args[3] = "-k", dir
	if kustomized := run(t, "", args...); kustomized.code != frame.Findings || kustomized.out != r.out {
		t.Errorf("from a kustomization: exit code %d, %s\n%s", kustomized.code, kustomized.err, kustomized.out)
	}
	same := run(t, "", "conflicts", "--offline", "-f", "testdata/manifests/web.yaml", "--live", hpa)
	if same.code != 0 || !strings.Contains(same.out, "no conflicts in 1 object") {
		t.Errorf("an object that is not there yet: exit code %d, %s%s", same.code, same.out, same.err)
	}
}

func TestDiffOwnersOfARecord(t *testing.T) {
	r := run(t, "", "diff-owners", "-f", "testdata/manifests/record.yaml")
	if r.code != 0 {
		t.Errorf("exit code %d: %s", r.code, r.err)
	}
	golden(t, "testdata/golden/diff-owners.txt", r.out)
}

const record = "testdata/manifests/record.yaml"

func TestDiffOwnersReport(t *testing.T) {
	r := run(t, "", "diff-owners", "-f", record, "-o", "json")
	var report transitions.Report
	if err := json.Unmarshal([]byte(r.out), &report); err != nil || r.code != 0 {
		t.Fatalf("exit code %d, %v: %s%s", r.code, err, r.out, r.err)
	}
	if report.APIVersion != show.APIVersion || report.Kind != "OwnerDiffReport" || report.Object.Name != "rec" || len(report.Items) != 5 {
		t.Errorf("reports %s", r.out)
	}
	first, last := report.Items[0], report.Items[4]
	if first.Path != ".data.a" || first.Gained[0].Manager != "two" || first.Lost[0].Operation != "Apply" || first.Before != "1" || first.After != "2" {
		t.Errorf("the first is %+v", first)
	}
	if last.Gained != nil || last.After != nil || last.Before != "1" || last.Time.IsZero() || last.ResourceVersion != report.Object.ResourceVersion {
		t.Errorf("the last is %+v", last)
	}
	names := run(t, "", "diff-owners", "-f", record, "-o", "jsonpath={.items[*].gained[*].manager}")
	if names.code != 0 || names.out != "two two two" {
		t.Errorf("exit code %d: %s%s", names.code, names.out, names.err)
	}
}

func TestDiffOwnersReportsWhatItReadBeforeAFailure(t *testing.T) {
	raw, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	r := run(t, string(raw)+"\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: other}}", "diff-owners", "-f", "-", "-o", "yaml")
	if r.code != frame.Failure || strings.Count(r.out, "\n  path: ") != 5 || !strings.Contains(r.err, "are two objects") {
		t.Errorf("exit code %d, %s: %s", r.code, r.err, r.out)
	}
}

func TestVersionReport(t *testing.T) {
	r := run(t, "", "version", "-o", "yaml")
	want := "apiVersion: cli.quell.dev/v1alpha1\ngoVersion: " + runtime.Version() + "\nkind: Version\nplatform: " + runtime.GOOS + "/" + runtime.GOARCH + "\nversion: test\n"
	if r.code != 0 || r.out != want {
		t.Errorf("exit code %d: %s%s", r.code, r.out, r.err)
	}
}

// A megabyte is what an object may have at most.
func TestHugeObject(t *testing.T) {
	const keys = 20_000
	data, fields := make(map[string]any, keys), make(map[string]any, keys)
	for i := range keys {
		key := fmt.Sprintf("key-%05d", i)
		data[key] = strings.Repeat("x", 24)
		fields["f:"+key] = map[string]any{}
	}
	raw, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": data,
		"metadata": map[string]any{"name": "huge", "managedFields": []any{map[string]any{
			"manager": "m", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:data": fields},
		}}},
	})
	if err != nil || len(raw) < 1<<20 {
		t.Fatalf("%d bytes, %v", len(raw), err)
	}
	r := run(t, string(raw), "blame", "-f", "-", "--time", "none")
	if got := strings.Count(r.out, "m Apply  | "); r.code != 0 || got != keys {
		t.Errorf("exit code %d, %d lines with an owner: %s", r.code, got, r.err)
	}
}
