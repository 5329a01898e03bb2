package command

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hduolab/quell/cmd/kubectl-quell/internal/frame"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// file writes a file of its own for a test.
func file(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestErrorsSayWhatToDo(t *testing.T) {
	const backup = "apiVersion: cli.quell.dev/v1alpha1\nkind: OwnershipBackup\n"
	empty, hollow := file(t, ""), file(t, backup)
	full := file(t, backup+"items: [{object: {apiVersion: v1, kind: ConfigMap, name: x}}]\n")
	const web, noServer = "testdata/manifests/web.yaml", " --server http://127.0.0.1:1"
	for line, want := range map[string]string{
		"blame":                             "or -f FILE\n",
		"transfer --from a --to b":          "error: name the objects: TYPE/NAME, TYPE NAME or TYPE, see 'kubectl api-resources'\n",
		"blame -":                           "the standard input is -f -",
		"managers -f x -o name":             "error: -o must be one of json, yaml, ",
		"blame -f x -o jsonpath={.x":        "error: -o jsonpath={.x: error parsing jsonpath",
		"blame -f x -o json --template":     "flag needs an argument",
		"audit no-such-file":                "error: open the audit log: open no-such-file: no such file or directory\n",
		"audit x ./x":                       "./x is named twice",
		"restore " + hpa:                    hpa + " is no OwnershipBackup of cli.quell.dev/v1alpha1, but \"Deployment\" of \"apps/v1\"",
		"restore " + hollow:                 "has no items",
		"restore -f " + hollow:              "has no items",
		"restore - --yes":                   "error: standard input is no OwnershipBackup",
		"blame widgets.example.com/shop/a":  "error: widgets.example.com/shop/a has more than one /: name it by widgets.example.com/a -n shop\n",
		"managers pods/a/b/c":               "name the object by TYPE/NAME\n",
		"transfer pods a/b --from a --to b": "either by TYPE/NAME, each of them, or by TYPE NAME\n",
		"restore -f -":                      "say --yes, or --dry-run=server",
		"conflicts -f " + hpa + " --offline --live " + hpa:                                                                         "give the manifest without them",
		"conflicts -f " + hpa + " --offline --live " + empty:                                                                       "error: read --live ",
		"conflicts -f " + web + " --offline --live " + three + " --schema testdata/objects/custom-odd-text.json":                   "kubectl get --raw /openapi/v3/",
		"storm --for 1s --report no-such-folder/x.html":                                                                            "the report cannot be written: no-such-folder/x.html: no such file",
		"noop -f " + web + noServer:                                                                                                "is the cluster running",
		"conflicts -f " + file(t, "{apiVersion: v1, kind: ConfigMap, metadata: {generateName: x}}") + " --offline --live " + three: "a ConfigMap in the input has no name",
		"restore " + full + noServer:                                                                                               "is the cluster running",
	} {
		if r := run(t, "", strings.Fields(line)...); r.code < frame.Usage || !strings.Contains(r.err, want) {
			t.Errorf("%s: exit code %d, %q lacks %q", line, r.code, r.err, want)
		}
	}
}

func TestTemplateAloneIsAGoTemplate(t *testing.T) {
	if r := run(t, "", "managers", "-f", hpa, "--template", "{{.kind}}"); r.code != 0 || r.out != "ManagerReport" {
		t.Errorf("exit code %d: %q %s", r.code, r.out, r.err)
	}
}

// A filter leaves out names.
func TestFilteredObjectsAreToldApart(t *testing.T) {
	all := live(t, "one", "two")
	r := run(t, "", "blame", "-f", all, "--manager", "one", "--time", "none")
	const owned = "          | data:\none Apply |   a: \"1\"\n"
	for _, want := range []string{"# configmap/one/x\n" + owned + "---\n# widget.example.com/one/x\n" + owned + "---\n# configmap/two/x\nnote: no field", "---\n# widget.example.com/two/x\n"} {
		if r.code != 0 || !strings.Contains(r.out, want) {
			t.Errorf("exit code %d, %q lacks %q: %s", r.code, r.out, want, r.err)
		}
	}
	if alone := run(t, "", "blame", "-f", hpa, "--manager", "kubectl-edit"); alone.code != 0 || strings.Contains(alone.out, "#") || alone.out == "" {
		t.Errorf("exit code %d, %q: %s", alone.code, alone.out, alone.err)
	}
	if whole := run(t, "", "blame", "-f", all, "--time", "none"); strings.Count(whole.out, "---\n") != 3 || strings.Contains(whole.out, "# ") {
		t.Errorf("exit code %d, %q: %s", whole.code, whole.out, whole.err)
	}
}

func TestErrorsHaveALineEach(t *testing.T) {
	const annotated = `{apiVersion: v1, kind: ConfigMap, metadata: {name: %, managedFields: [{manager: m}]}}` + "\n---\n"
	r := run(t, strings.ReplaceAll(annotated, "%", "a")+strings.ReplaceAll(annotated, "%", "b"), "conflicts", "-f", "-", "--offline", "--live", three)
	if r.code != frame.Failure || !strings.HasPrefix(r.err, "error: configmap/a has ") || !strings.Contains(r.err, "\nerror: configmap/b has ") || strings.Contains(r.err, "[") {
		t.Errorf("exit code %d, %q", r.code, r.err)
	}
}

func TestLiveFilesWithoutManagedFieldsAreNoted(t *testing.T) {
	untracked := file(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {a: "1"}}`)
	r := run(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {a: "2"}}`, "conflicts", "-f", "-", "--offline", "--live", untracked, "-o", "json")
	if r.code != frame.Findings || !strings.HasPrefix(r.err, "note: nothing in --live has managedFields: ") {
		t.Errorf("exit code %d, %q", r.code, r.err)
	}
}

// The manager's name is anybody's choice, and the command is to be copied into a shell.
func TestFixesAreSafeInAShell(t *testing.T) {
	const entry = `{manager: "$(x) it's, \"y\"", apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {"f:data": {}}, operation: `
	object := "{apiVersion: v1, kind: ConfigMap, metadata: {name: x, managedFields: [" + entry + "Apply}, " + entry + "Update}]}}"
	r := run(t, object, "managers", "-f", "-")
	want := `mend it with: kubectl quell transfer configmap/x --from '"$(x) it'\''s, ""y"""' ` +
		`--operation Update --to '$(x) it'\''s, "y"'` + "\n"
	if r.code != 0 || !strings.Contains(r.out, want) {
		t.Errorf("exit code %d, %q lacks %q", r.code, r.out, want)
	}
}

func TestAFileWithoutManagedFieldsLostNone(t *testing.T) {
	r := run(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}", "managers", "-f", "-", "-o", "jsonpath={.items[0].notes[*].reason}")
	if r.code != 0 || r.out != "ManagedFieldsLeftOut" {
		t.Errorf("exit code %d: %q %s", r.code, r.out, r.err)
	}
}

// live is a list of objects of one name, each with one owner, named as its namespace.
func live(t *testing.T, namespaces ...string) string {
	t.Helper()
	var b strings.Builder
	for _, ns := range namespaces {
		for _, kind := range []string{"{apiVersion: v1, kind: ConfigMap", "{apiVersion: example.com/v1, kind: Widget"} {
			b.WriteString("---\n" + kind + ", data: {a: \"1\"}, metadata: {name: x, namespace: " + ns + ", managedFields: [{manager: " + ns +
				", operation: Apply, apiVersion: " + strings.Fields(kind)[1] + ` fieldsType: FieldsV1, fieldsV1: {"f:data": {"f:a": {}}}}]}}` + "\n")
		}
	}
	return file(t, b.String())
}

func TestOfflineConflictsInNamespaces(t *testing.T) {
	const document = `{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {a: "2"}}`
	const owners = "-o=jsonpath={.items[*].conflicts[*].owner.manager}"
	both, one := live(t, "one", "two"), live(t, "two")
	for _, c := range []struct {
		live, namespace string
		code            int
		out             string
	}{
		{one, "", frame.Findings, "two"}, {both, "-n=one", frame.Findings, "one"}, {both, "-n=two", frame.Findings, "two"},
		{both, "-n=three", frame.Fine, ""}, {both, "--color=never", frame.Failure, ""},
	} {
		args := slices.DeleteFunc([]string{"conflicts", "-f", "-", "--offline", "--live", c.live, owners, c.namespace}, func(a string) bool { return a == "" })
		if r := run(t, document, args...); r.code != c.code || r.out != c.out {
			t.Errorf("%q: exit code %d, %q: %s", c.namespace, r.code, r.out, r.err)
		}
	}
	if r := run(t, document, "conflicts", "-f", "-", "--offline", "--live", both); !strings.Contains(r.err, "in the namespaces one, two of the live file: choose one with -n") {
		t.Errorf("says %q", r.err)
	}
}

// A schema is that of one group; Kubernetes' own kinds stand beside its own in a manifest.
func TestOfflineConflictsWithASchemaForSome(t *testing.T) {
	const metadata = `, metadata: {name: x}, data: {a: "2"}}` + "\n---\n"
	schema := file(t, `{"components": {"schemas": {"widget": {"type": "object", "properties": {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"},
		"data": {"type": "object", "properties": {"a": {"type": "string"}}}},
		"x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Widget"}]}}}}`)
	documents := "{apiVersion: v1, kind: ConfigMap" + metadata + "{apiVersion: example.com/v1, kind: Widget" + metadata
	r := run(t, documents, "conflicts", "-f", "-", "--offline", "--live", live(t, "one"), "--schema", schema, "-o=jsonpath={.items[*].conflicts[*].path}")
	if r.code != frame.Findings || r.out != ".data.a .data.a" {
		t.Errorf("exit code %d, %q: %s", r.code, r.out, r.err)
	}
}

func TestOfflineConflictsOfTheStatus(t *testing.T) {
	document := file(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: ssa}, spec: {replicas: 9}, status: {replicas: 9}}`)
	r := run(t, "", "conflicts", "-f", document, "--offline", "--live", three, "--subresource", "status", "-o=jsonpath={.items[*].conflicts[*].path}")
	if r.code != frame.Findings || r.out != ".status.replicas" {
		t.Errorf("exit code %d, %q: %s", r.code, r.out, r.err)
	}
}

func TestConflictsTellOfObjectsToCome(t *testing.T) {
	const document = "{apiVersion: v1, kind: ConfigMap, metadata: {name: other, namespace: one}}\n---\n"
	for input, want := range map[string]string{
		document:            "no conflicts in 1 object, which does not exist yet\n",
		document + document: "no conflicts in 2 objects, of which 2 do not exist yet\n",
		document + strings.Replace(document, "other,", "x,", 1): "no conflicts in 2 objects, of which 1 does not exist yet\n",
	} {
		if r := run(t, input, "conflicts", "-f", "-", "--offline", "--live", live(t, "one")); r.code != 0 || r.out != want {
			t.Errorf("exit code %d, %q: %s", r.code, r.out, r.err)
		}
	}
}

func TestDiffOwnersOfWhatIsNoRecord(t *testing.T) {
	const version = "{apiVersion: v1, kind: ConfigMap, metadata: {name: x"
	const tracked = version + `, managedFields: [{manager: m, operation: Apply, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {}}]}}`
	for input, want := range map[string]string{
		version + "}}\n---\n" + version + "}}": "note: no version has managedFields: ",
		tracked:                                "note: there is one version only",
		tracked + "\n---\n" + version + ", namespace: ns}}":             "error: configmap/x and configmap/ns/x are two objects",
		tracked + "\n---\n" + strings.Replace(tracked, "x", "other", 1): "error: configmap/x and configmap/other are two objects",
	} {
		r := run(t, input, "diff-owners", "-f", "-")
		if isError := strings.HasPrefix(want, "error"); r.out != "" || (r.code == 0) == isError || !strings.HasPrefix(r.err, want) {
			t.Errorf("exit code %d, %q lacks %q: %s", r.code, r.err, want, r.out)
		}
	}
}

// full is a disk without room.
type full struct{}

var errFull = errors.New("no space left")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestOutputThatIsNotWrittenIsAFailure(t *testing.T) {
	for _, line := range []string{
		"blame -f " + hpa, "managers -f " + hpa, "managers --pairs -f " + hpa, "diff-owners -f testdata/manifests/record.yaml", "version",
		"conflicts -f testdata/manifests/web.yaml --offline --live " + three, "conflicts -f testdata/manifests/thing.yaml --offline --live " + three,
	} {
		var told strings.Builder
		code := Execute(t.Context(), genericiooptions.IOStreams{In: strings.NewReader(""), Out: full{}, ErrOut: &told}, "test", strings.Fields(line))
		if code != frame.Failure || !strings.Contains(told.String(), errFull.Error()) {
			t.Errorf("%s: exit code %d, %q", line, code, told.String())
		}
	}
}

func TestFlagsAreCompleted(t *testing.T) {
	config := file(t, `{apiVersion: v1, kind: Config, contexts: [{name: one, context: {}}, {name: two, context: {}}]}`)
	for line, want := range map[string]string{
		"blame --time": "relative\nabsolute\nnone\n", "managers --time": "relative\nabsolute\n", "conflicts --time": "relative\nabsolute\nnone\n",
		"release --dry-run": "none\nserver\n", "transfer --operation": "Apply\nUpdate\n", "blame --color": "auto\nalways\nnever\n",
		"audit -o": "wide\njson\nyaml\n", "noop -o": "json\nyaml\n", "--kubeconfig " + config + " --context": "one\ntwo\n", "version": ":4\n",
	} {
		r := run(t, "", append(append([]string{"__complete"}, strings.Fields(line)...), "")...)
		if r.code != 0 || !strings.HasPrefix(r.out, want) {
			t.Errorf("%s completes to %q", line, r.out)
		}
	}
}

// As kubectl prints them; a blank would be taken for none.
func TestUnknownTimes(t *testing.T) {
	const scaled = "metadata: {name: x, managedFields: [{manager: m, operation: Update, subresource: scale, apiVersion: apps/v1, fieldsType: FieldsV1, fieldsV1: {}}]}"
	r := run(t, "{apiVersion: apps/v1, kind: Deployment, "+scaled+"}", "managers", "-f", "-")
	if r.code != 0 || !strings.HasSuffix(r.out, "   <unknown>\n") {
		t.Errorf("exit code %d: %s%s", r.code, r.out, r.err)
	}
	version := "{apiVersion: v1, kind: ConfigMap, metadata: {name: x, resourceVersion: "
	const owner = ", managedFields: [{manager: m, operation: Apply, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {f:data: {f:a: {}}}}]"
	r = run(t, version+"'1'}}\n---\n"+version+"'2'"+owner+"}}", "diff-owners", "-f", "-")
	if r.code != 0 || !strings.HasPrefix(r.out, "<unknown>  .data.a  ") {
		t.Errorf("exit code %d: %s%s", r.code, r.out, r.err)
	}
}

// Objects of one name in several namespaces have to be told apart, and elsewhere a name is what kubectl takes.
func TestObjectsAreNamedAsKubectlDoes(t *testing.T) {
	const document = `{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: %s}, data: {a: "2"}}` + "\n---\n"
	one, two := strings.Replace(document, "%s", "one", 1), strings.Replace(document, "%s", "two", 1)
	for input, want := range map[string][]string{one: {"configmap/x   .data.a"}, one + two: {"configmap/one/x   .data.a", "configmap/two/x   .data.a"}} {
		r := run(t, input, "conflicts", "-f", "-", "--offline", "--live", live(t, "one", "two"))
		for _, line := range want {
			if r.code != frame.Findings || !strings.Contains(r.out, "\n"+line) {
				t.Errorf("exit code %d, %q lacks %q: %s", r.code, r.out, line, r.err)
			}
		}
	}
	const role = "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: x}}\n---\n"
	r := run(t, role+one, "managers", "-f", "-")
	if !strings.HasPrefix(r.out, "clusterrole.rbac.authorization.k8s.io/x\n") || !strings.Contains(r.out, "\n\nconfigmap/x\n") {
		t.Errorf("exit code %d, %q: %s", r.code, r.out, r.err)
	}
	if r := run(t, role+one+two, "managers", "-f", "-"); !strings.HasPrefix(r.out, "clusterrole.rbac.authorization.k8s.io/x\n") || !strings.Contains(r.out, "\nconfigmap/two/x\n") {
		t.Errorf("exit code %d, %q: %s", r.code, r.out, r.err)
	}
}

func TestTheFieldManagerIsHintedAt(t *testing.T) {
	const assumed = "note: the field manager is \"kubectl\", as with kubectl apply --server-side; --field-manager names another\n"
	const mine = `{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {b: "2"}}`
	const two = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: ssa, namespace: default}}`
	byCI, byThree := []string{"--live", live(t, "flux-ci")}, []string{"--live", three}
	meant := func(typed, other string) string {
		return `note: "` + typed + `" owns nothing of configmap/x; unless it is a new manager, did you mean --field-manager ` + other + "?\n"
	}
	for _, c := range []struct {
		document string
		args     []string
		want     string
	}{
		{mine, byCI, meant("kubectl", "flux-ci") + assumed},
		{mine, append([]string{"--field-manager", "flux-ci"}, byCI...), ""},
		{mine, append([]string{"--field-manager", "fluxci"}, byCI...), meant("fluxci", "flux-ci")},
		{mine, append([]string{"--subresource", "status", "--field-manager", "fluxci"}, byCI...), ""},
		{strings.Replace(mine, "x", "other", 1), byCI, assumed},
		{two, append([]string{"--field-manager", "nobody"}, byThree...), ""},
		{two, append([]string{"--field-manager", "Argo-CD"}, byThree...),
			`note: "Argo-CD" owns nothing of deployment.apps/ssa; unless it is a new manager, did you mean --field-manager argocd?` + "\n"},
		{two, append([]string{"--field-manager", "kube-controller-manager"}, byThree...), ""},
		{mine, append([]string{"-o", "json"}, byCI...), ""},
	} {
		r := run(t, c.document, append([]string{"conflicts", "-f", "-", "--offline"}, c.args...)...)
		if r.code != 0 || r.err != c.want {
			t.Errorf("%q: exit code %d, says %q, want %q", c.args, r.code, r.err, c.want)
		}
	}
}

// A gate must not pass because of what it could not see.
func TestUnknownSchemasAreNoted(t *testing.T) {
	const document = "{apiVersion: example.com/v1, kind: Widget, metadata: {name: x}, data: {a: '1'}}\n---\n"
	const note = "note: the schema of Widget of example.com/v1 is not known, so its lists are taken for atomic, "
	r := run(t, document+document, "conflicts", "-f", "-", "--offline", "--live", live(t, "one"), "-o", "json")
	if r.code != 0 || !strings.HasPrefix(r.err, note) || strings.Count(r.err, "\n") != 1 {
		t.Errorf("exit code %d, %q", r.code, r.err)
	}
}
