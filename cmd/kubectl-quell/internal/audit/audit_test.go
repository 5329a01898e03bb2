package audit

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hduolab/quell/cmd/kubectl-quell/internal/frame"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/storms"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// result is what a run of the command printed and returned.
type result struct {
	out, errOut string
	err         error
}

func run(t *testing.T, input string, args ...string) result {
	t.Helper()
	streams, in, out, errOut := genericiooptions.NewTestIOStreams()
	in.WriteString(input)
	f := frame.New(streams, "test")
	cmd := New(f)
	f.AddFlags(cmd.PersistentFlags())
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(t.Context())
	return result{out.String(), errOut.String(), err}
}

// storming is a log of an operator that stamps the time and retries a conflict without a pause.
func storming(n int, from time.Time) string {
	var b strings.Builder
	for i := range n {
		when := from.Add(time.Duration(i) * 50 * time.Millisecond).Format(time.RFC3339Nano)
		const event = `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"RequestResponse","stage":"ResponseComplete","verb":"update",` +
			`"user":{"username":"op"},"userAgent":"widget-operator/v1","stageTimestamp":%q,"responseStatus":{"code":%d},` +
			`"objectRef":{"apiGroup":"example.com","apiVersion":"v1","resource":"widgets","namespace":"n","name":"w","subresource":"status"}`
		fmt.Fprintf(&b, event, when, 200)
		fmt.Fprintf(&b, `,"responseObject":{"metadata":{"name":"w","resourceVersion":"%d"},"status":{"at":%q}}}`+"\n", i, when)
		fmt.Fprintf(&b, event+"}\n", when, 409)
	}
	return b.String()
}

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAuditTellsWhatStorms(t *testing.T) {
	r := run(t, "", write(t, "audit.log", storming(200, start)))
	if r.err != nil {
		t.Fatal(r.err)
	}
	for _, want := range []string{
		"400 requests from 2026-01-01T00:00:00Z to 2026-01-01T00:00:09Z; 400 RequestResponse",
		"20       widgets.example.com/n/w   widget-operator (Update/status)   .status.at   TimestampChurn",
		"100 % of the writes change only .status.at", "remedy: renew a time only when", "RejectedRetries", "200 times rejected with 409",
		"USER AGENT", "widget-operator/v1",
	} {
		if !strings.Contains(r.out, want) {
			t.Errorf("%q is missing in\n%s", want, r.out)
		}
	}
}

func TestAuditReport(t *testing.T) {
	r := run(t, storming(200, start), "-", "-o", "json", "--exit-code")
	if !errors.Is(r.err, frame.ErrFindings) {
		t.Errorf("returns %v", r.err)
	}
	var report Report
	if err := json.Unmarshal([]byte(r.out), &report); err != nil {
		t.Fatal(err)
	}
	if report.APIVersion != "cli.quell.dev/v1alpha1" || report.Kind != "AuditReport" || report.Requests != 400 || len(report.Storms) != 1 || len(report.Findings) != 1 {
		t.Fatalf("%+v", report)
	}
	s := report.Storms[0]
	if s.Object != (storms.Object{Group: "example.com", Resource: "widgets", Namespace: "n", Name: "w"}) || s.Writers[0].Manager != "widget-operator" || s.Fields[0].Path != ".status.at" ||
		s.Samples != 64 || s.Confidence < 0.9 || s.Peak != 20 {
		t.Errorf("%+v", s)
	}
	if f := report.Findings[0]; f.Code != 409 || f.Requests != 200 || f.Subresource != "status" || f.Remedy == "" {
		t.Errorf("%+v", f)
	}
}

func TestAuditForms(t *testing.T) {
	log := write(t, "audit.log", storming(100, start))
	for form, want := range map[string]string{
		"wide": "CONFIDENCE", "yaml": "kind: AuditReport", "jsonpath={.storms[0].verdict}": "TimestampChurn",
	} {
		if r := run(t, "", log, "-o", form); r.err != nil || !strings.Contains(r.out, want) {
			t.Errorf("-o %s: %v, %s", form, r.err, r.out)
		}
	}
}

// Rotation gives files whose names do not sort by time, and older ones are compressed.
func TestAuditReadsRotatedFiles(t *testing.T) {
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	if _, err := z.Write([]byte(storming(100, start))); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	older := write(t, "z.gz", zipped.String())
	newer := write(t, "audit.log", storming(100, start.Add(5*time.Second)))
	r := run(t, "", newer, older, "-o", "jsonpath={.storms[0].peak} {.requests}")
	if r.err != nil || r.out != "20 400" {
		t.Errorf("%v, %q", r.err, r.out)
	}
}

func TestAuditThresholds(t *testing.T) {
	log := write(t, "audit.log", storming(100, start))
	r := run(t, "", log, "--rate", "30/s", "--exit-code", "--top", "0")
	if r.err != nil || !strings.Contains(r.out, "no write storm found") || strings.Contains(r.out, "RejectedRetries") || strings.Contains(r.out, "MEAN/S") {
		t.Errorf("%v, %s", r.err, r.out)
	}
	if r := run(t, "", log, "--rate", "600/m", "--exit-code"); !errors.Is(r.err, frame.ErrFindings) {
		t.Errorf("600/m is 10/s: %v", r.err)
	}
}

func TestAuditTellsBrokenLines(t *testing.T) {
	r := run(t, "nonsense\n"+storming(20, start)+"{\x1b[2J\n", "-")
	if r.err != nil || !strings.Contains(r.errOut, "warning: 2 lines could not be read") || !strings.Contains(r.errOut, "standard input:1: ") {
		t.Errorf("%v, %s", r.err, r.errOut)
	}
	if strings.Contains(r.out+r.errOut, "\x1b") {
		t.Error("an escape sequence of the log reaches the terminal")
	}
}

func TestAuditPage(t *testing.T) {
	dir := t.TempDir()
	page := filepath.Join(dir, "audit.html")
	log := strings.ReplaceAll(storming(200, start), "widget-operator", "<script>") + "broken <b>line\n"
	if r := run(t, log, "-", "--report", page); r.err != nil || !strings.Contains(r.errOut, "the report is in ") {
		t.Fatalf("%v, %s", r.err, r.errOut)
	}
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"1 write storm and 1 storm of other requests found in 400 requests", "By field manager", "By object", "&lt;script&gt; (Update/status)", "mean 20.1, peak 21.1",
		"TimestampChurn", "RejectedRetries", "200 times rejected with 409", "1 line could not be read", "standard input:401", "kubectl quell test",
	} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("%q is missing", want)
		}
	}
	if strings.Contains(string(raw), "<script") {
		t.Error("what the log says is not escaped")
	}
	if r := run(t, log, "-", "--report", dir); r.err == nil || r.out != "" || !strings.Contains(r.err.Error(), "the report cannot be written") {
		t.Errorf("into a folder: %v, %s", r.err, r.out)
	}
}

func TestAuditSaysWhatALevelDoesNotShow(t *testing.T) {
	log := strings.ReplaceAll(storming(20, start), "RequestResponse", "Metadata")
	if r := run(t, log, "-"); !strings.Contains(r.out, "no event has the level RequestResponse") {
		t.Errorf("%s", r.out)
	}
}

func TestAuditFailures(t *testing.T) {
	log := write(t, "audit.log", storming(1, start))
	for _, args := range [][]string{
		{}, {log, log}, {log, "--rate", "0"}, {log, "--rate", "x"}, {log, "--rate", "1/y"}, {log, "--rate", "NaN"}, {log, "-o", "none"}, {log, "--top", "99"},
	} {
		if r := run(t, "", args...); r.err == nil || r.out != "" {
			t.Errorf("%q: %v, %q", args, r.err, r.out)
		}
	}
	for _, args := range [][]string{{filepath.Join(t.TempDir(), "none")}, {write(t, "empty", "")}, {write(t, "broken", "x\n")}} {
		r := run(t, "", args...)
		if r.err == nil || frame.Code(r.err) != frame.Failure {
			t.Errorf("%q: %v", args, r.err)
		}
	}
}

func TestProgressInWords(t *testing.T) {
	const mebi = 1 << 20
	for want, p := range map[string]progress{
		"5 of 20 MiB read, 25 %": {read: 5 * mebi, total: 20 * mebi},
		"5 MiB read":             {read: 5 * mebi},
		"25 MiB read":            {read: 25 * mebi, total: 20 * mebi}, // with the standard input besides
	} {
		if got := p.words(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
