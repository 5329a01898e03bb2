package auditlog_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hduolab/quell/controller/storm"
	"github.com/hduolab/quell/controller/storm/auditlog"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// request is an event of an audit log, made by hand.
type request struct {
	level, verb, agent, user, query, name, subresource, resource string
	code                                                         int
	body                                                         map[string]any
}

func (r request) line(when time.Time) string {
	stamp := when.Format("2006-01-02T15:04:05.000000Z")
	e := map[string]any{
		"kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": or(r.level, "Metadata"), "auditID": "x", "stage": "ResponseComplete",
		"requestURI": "/apis/example.com/v1/namespaces/n/widgets/w?" + r.query, "verb": r.verb, "userAgent": or(r.agent, "op/v1 (linux/amd64)"),
		"user":                     map[string]any{"username": or(r.user, "system:serviceaccount:n:op")},
		"objectRef":                map[string]any{"resource": or(r.resource, "widgets"), "namespace": "n", "name": r.name, "apiGroup": "example.com", "apiVersion": "v1", "subresource": r.subresource},
		"responseStatus":           map[string]any{"metadata": map[string]any{}, "code": r.code},
		"requestReceivedTimestamp": stamp, "stageTimestamp": stamp,
	}
	if r.body != nil {
		e["responseObject"] = r.body
	}
	raw, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	return string(raw) + "\n"
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// repeat is a log of n requests, a pause apart.
func repeat(n int, pause time.Duration, each func(i int, now time.Time) request) string {
	var b strings.Builder
	for i := range n {
		now := start.Add(time.Duration(i) * pause)
		b.WriteString(each(i, now).line(now))
	}
	return b.String()
}

func widget(version int, status map[string]any) map[string]any {
	return map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget", "status": status,
		"metadata": map[string]any{"name": "w", "namespace": "n", "uid": "1", "resourceVersion": fmt.Sprint(version), "generation": 1},
	}
}

func analyse(t *testing.T, o auditlog.Options, logs ...string) auditlog.Report {
	t.Helper()
	a := auditlog.New(o)
	for i, log := range logs {
		if err := a.Read(t.Context(), fmt.Sprint("log", i), strings.NewReader(log)); err != nil {
			t.Fatal(err)
		}
	}
	return a.Report()
}

func TestWritesAtEachLevel(t *testing.T) {
	for level, want := range map[string]storm.Verdict{
		"Metadata": storm.ValuesNotSeen, "Request": storm.ValuesNotSeen, "RequestResponse": storm.TimestampChurn,
	} {
		r := analyse(t, auditlog.Options{}, repeat(300, 50*time.Millisecond, func(i int, now time.Time) request {
			q := request{level: level, verb: "patch", name: "w", subresource: "status", code: 200, query: "fieldManager=widgets&force=true"}
			if level == "RequestResponse" {
				q.body = widget(i, map[string]any{"at": now.Format(time.RFC3339Nano), "replicas": 3})
			}
			return q
		}))
		f := r.Writes.Findings[0]
		writer := f.Writers[0]
		if f.Verdict != want || !f.IsStorm || writer.Manager != "widgets" || writer.Operation != "Apply" || writer.Subresource != "status" {
			t.Errorf("%s: %s by %s, storm: %v", level, f.Verdict, writer.Owner, f.IsStorm)
		}
		if f.Peak < 18 || f.Peak > 22 || f.Writes != 300 || r.Requests != 300 || r.Levels[level] != 300 {
			t.Errorf("%s: peak %.1f/s, %d writes of %d requests, levels %v", level, f.Peak, f.Writes, r.Requests, r.Levels)
		}
		if level == "RequestResponse" && f.Fields[0].Path != ".status.at" {
			t.Errorf("fields %+v", f.Fields)
		}
	}
}

func TestManagerWithoutFieldManagerIsTheUserAgent(t *testing.T) {
	r := analyse(t, auditlog.Options{}, repeat(200, 50*time.Millisecond, func(int, time.Time) request {
		return request{verb: "update", name: "w", code: 200, agent: "widget-operator/v2 (linux)"}
	}))
	if w := r.Writes.Findings[0].Writers[0]; w.Manager != "widget-operator" || w.Operation != "Update" || w.APIVersion != "example.com/v1" {
		t.Errorf("%+v", w)
	}
}

func TestRequestsThatAWatchCannotSee(t *testing.T) {
	for name, c := range map[string]struct {
		each    func(i int, now time.Time) request
		verdict storm.Verdict
		code    int
	}{
		"no-op": {func(int, time.Time) request {
			return request{level: "RequestResponse", verb: "update", name: "w", code: 200, body: widget(7, nil)}
		}, storm.NoOpWrites, 0},
		"conflict": {func(int, time.Time) request { return request{verb: "update", name: "w", code: 409} }, storm.RejectedRetries, 409},
		"invalid":  {func(int, time.Time) request { return request{verb: "create", code: 422} }, storm.RejectedRetries, 422},
		"too many": {func(int, time.Time) request { return request{verb: "patch", name: "w", code: 429} }, storm.RejectedRetries, 429},
		"lists":    {func(int, time.Time) request { return request{verb: "list", code: 200} }, storm.ReadFlood, 0},
		"gets":     {func(int, time.Time) request { return request{verb: "get", name: "w", code: 200} }, storm.ReadFlood, 0},
	} {
		r := analyse(t, auditlog.Options{}, repeat(200, 50*time.Millisecond, c.each))
		if len(r.Findings) != 1 || !r.IsStorm() {
			t.Fatalf("%s: %+v", name, r.Findings)
		}
		f := r.Findings[0]
		if f.Verdict != c.verdict || f.Key.Code != c.code || f.Key.Agent != "op/v1 (linux/amd64)" || f.Remedy == "" || f.Peak < 18 {
			t.Errorf("%s: %+v", name, f)
		}
		if c.verdict != storm.NoOpWrites && len(r.Writes.Findings) != 0 {
			t.Errorf("%s made versions: %+v", name, r.Writes.Findings)
		}
	}
}

func TestSlowTrafficIsNoStorm(t *testing.T) {
	verbs := []string{"get", "list", "update", "patch"}
	r := analyse(t, auditlog.Options{}, repeat(400, 2*time.Second, func(i int, now time.Time) request {
		q := request{level: "RequestResponse", verb: verbs[i%4], name: "w", code: 200}
		if i%4 >= 2 {
			q.body = widget(i, map[string]any{"at": now.Format(time.RFC3339)})
		}
		return q
	}))
	if r.IsStorm() {
		t.Errorf("%+v %+v", r.Findings, r.Writes.Findings)
	}
}

func TestDryRunsAndLaterStagesDoNotCount(t *testing.T) {
	log := repeat(100, 50*time.Millisecond, func(int, time.Time) request {
		return request{verb: "update", name: "w", code: 200, query: "dryRun=All"}
	})
	started := strings.ReplaceAll(log, "ResponseComplete", "RequestReceived")
	if r := analyse(t, auditlog.Options{}, log, started); r.Writes.Writes != 0 || r.Requests != 100 {
		t.Errorf("%d writes of %d requests", r.Writes.Writes, r.Requests)
	}
}

// The API server logs no later stage of a request whose user it could not authenticate.
func TestUnauthenticatedRequestsCount(t *testing.T) {
	log := repeat(100, 50*time.Millisecond, func(int, time.Time) request { return request{verb: "update", name: "w", code: 401} })
	started := strings.ReplaceAll(log, "ResponseComplete", "ResponseStarted")
	r := analyse(t, auditlog.Options{}, started)
	if r.Requests != 100 || len(r.Findings) != 1 || r.Findings[0].Verdict != storm.RejectedRetries || r.Findings[0].Key.Code != 401 {
		t.Errorf("%d requests, findings %+v", r.Requests, r.Findings)
	}
	if r := analyse(t, auditlog.Options{}, strings.ReplaceAll(started, "401", "200")); r.Requests != 0 {
		t.Errorf("%d requests of which the end is not known", r.Requests)
	}
}

func TestGeneratedNamesComeFromTheResponse(t *testing.T) {
	r := analyse(t, auditlog.Options{}, repeat(50, 50*time.Millisecond, func(i int, _ time.Time) request {
		return request{level: "RequestResponse", verb: "create", code: 201, body: widget(i, nil)}
	}))
	if got := r.Objects[0].Key.Name; got != "w" {
		t.Errorf("object %q", got)
	}
}

func TestDeleteAndCreate(t *testing.T) {
	r := analyse(t, auditlog.Options{}, repeat(60, 200*time.Millisecond, func(i int, _ time.Time) request {
		if i%2 == 1 {
			return request{level: "RequestResponse", verb: "delete", name: "w", code: 200, body: map[string]any{"kind": "Status", "apiVersion": "v1"}}
		}
		body := widget(i, nil)
		body["metadata"].(map[string]any)["uid"] = fmt.Sprint(i)
		return request{level: "RequestResponse", verb: "create", name: "w", code: 201, body: body}
	}))
	if f := r.Writes.Findings[0]; f.Verdict != storm.DeleteRecreate || !f.IsStorm {
		t.Errorf("%s, storm: %v, %q", f.Verdict, f.IsStorm, f.Evidence)
	}
}

func TestCountsAreExact(t *testing.T) {
	r := analyse(t, auditlog.Options{}, repeat(1000, time.Millisecond, func(i int, _ time.Time) request {
		return request{verb: []string{"get", "watch", "list", "get"}[i%4], agent: fmt.Sprint("agent", i%10), user: fmt.Sprint("user", i%2), name: "w"}
	}))
	verbs := map[string]int64{}
	for _, v := range r.Verbs {
		verbs[v.Key] = v.Requests
	}
	if verbs["get"] != 500 || verbs["watch"] != 250 || verbs["list"] != 250 {
		t.Errorf("verbs %v", verbs)
	}
	if len(r.Agents) != 10 || r.Agents[0].Requests != 100 || r.Agents[0].Error != 0 || len(r.Users) != 2 || r.Users[1].Requests != 500 {
		t.Errorf("agents %+v, users %+v", r.Agents, r.Users)
	}
}

func zipped(t *testing.T, parts ...string) string {
	t.Helper()
	var b bytes.Buffer
	for _, p := range parts {
		z := gzip.NewWriter(&b)
		if _, err := z.Write([]byte(p)); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

func TestGzipIsRecognised(t *testing.T) {
	log := repeat(10, time.Second, func(int, time.Time) request { return request{verb: "get"} })
	if r := analyse(t, auditlog.Options{}, zipped(t, log, log), log, ""); r.Requests != 30 || r.Broken != 0 {
		t.Errorf("%d requests, %d broken", r.Requests, r.Broken)
	}
}

// As Windows' editors and shells write them.
func TestByteOrderMarksAndCarriageReturns(t *testing.T) {
	const mark = "\ufeff"
	log := mark + strings.ReplaceAll(repeat(10, time.Second, func(int, time.Time) request { return request{verb: "get"} }), "\n", "\r\n")
	if r := analyse(t, auditlog.Options{}, log+mark+"\r\n"+log, zipped(t, log)); r.Requests != 30 || r.Broken != 0 {
		t.Errorf("%d requests, broken: %+v", r.Requests, r.Examples)
	}
	name := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(name, []byte(log), 0o600); err != nil {
		t.Fatal(err)
	}
	earlier := name + ".1"
	if err := os.WriteFile(earlier, []byte(request{verb: "get"}.line(start.Add(-time.Hour))), 0o600); err != nil {
		t.Fatal(err)
	}
	if sorted, err := auditlog.Sort(t.Context(), []string{name, earlier}); err != nil || sorted[0] != earlier {
		t.Errorf("%v, %v", sorted, err) // a log without a known beginning would come first
	}
}

func TestATruncatedArchiveIsAnErrorAfterWhatIsThere(t *testing.T) {
	log := repeat(5000, time.Second, func(i int, _ time.Time) request { return request{verb: "get", name: fmt.Sprint(i * i)} })
	archive := zipped(t, log)
	a := auditlog.New(auditlog.Options{})
	err := a.Read(t.Context(), "log.gz", strings.NewReader(archive[:len(archive)/2]))
	if err == nil || !strings.Contains(err.Error(), "log.gz") || a.Report().Requests < 100 {
		t.Errorf("%v, %d requests", err, a.Report().Requests)
	}
}

func TestBrokenLinesAreCountedWithTheirNumbers(t *testing.T) {
	good := request{verb: "get"}.line(start)
	log := good + "{\"kind\":\n" + "\n" + `{"kind": "Pod"}` + "\n" + good + `{"kind": "Event", "apiVersion": "audit.k8s.io/v1"}` + "\n" + strings.TrimSpace(good)
	r := analyse(t, auditlog.Options{}, log)
	var numbers []int
	for _, b := range r.Examples {
		numbers = append(numbers, b.Line)
	}
	if r.Requests != 3 || r.Broken != 3 || !slices.Equal(numbers, []int{2, 4, 6}) || r.Examples[0].File != "log0" {
		t.Errorf("%d requests, %d broken: %+v", r.Requests, r.Broken, r.Examples)
	}
}

func TestLongLines(t *testing.T) {
	long := func(size int) string {
		q := request{level: "RequestResponse", verb: "update", name: "w", code: 200, body: widget(1, map[string]any{"x": strings.Repeat("y", size)})}
		return q.line(start)
	}
	log := long(5<<20) + long(9<<20) + long(10)
	r := analyse(t, auditlog.Options{MaxLine: 6 << 20}, log)
	if r.Requests != 2 || r.Broken != 1 || r.Examples[0].Line != 2 {
		t.Errorf("%d requests, broken: %+v", r.Requests, r.Examples)
	}
}

// Lines beyond the limit are not kept, and distinct names do not add up.
func TestManyNamesAreBounded(t *testing.T) {
	r := analyse(t, auditlog.Options{Counters: 64, Storm: storm.Options{Counters: 64}}, repeat(20_000, time.Millisecond, func(i int, _ time.Time) request {
		name := fmt.Sprint("w", i)
		if i%10 == 0 {
			name = "hot"
		}
		return request{verb: "update", name: name, agent: strings.Repeat("a", 1000) + name, code: 409}
	}))
	if o := r.Objects[0]; o.Key.Name != "hot" || o.Requests-o.Error > 2000 || o.Requests < 2000 {
		t.Errorf("%+v", o)
	}
	if len(r.Agents[0].Key) > 300 {
		t.Errorf("a user agent of %d bytes", len(r.Agents[0].Key))
	}
}

func TestSortByTime(t *testing.T) {
	dir := t.TempDir()
	var files []string
	for i, hour := range []int{3, 1, 2} {
		log := "broken\n" + request{verb: "get"}.line(start.Add(time.Duration(hour)*time.Hour))
		if hour == 2 {
			log = zipped(t, log)
		}
		files = append(files, filepath.Join(dir, fmt.Sprint(i)))
		if err := os.WriteFile(files[i], []byte(log), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sorted, err := auditlog.Sort(t.Context(), files)
	if want := []string{files[1], files[2], files[0]}; err != nil || !slices.Equal(sorted, want) {
		t.Errorf("%v, %v", sorted, err)
	}
	if _, err := auditlog.Sort(t.Context(), []string{filepath.Join(dir, "none")}); err == nil {
		t.Error("a missing file is no error")
	}
}

func TestReadingEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	log := repeat(10, time.Second, func(int, time.Time) request { return request{verb: "get"} })
	if err := auditlog.New(auditlog.Options{}).Read(ctx, "log", strings.NewReader(log)); err == nil {
		t.Error("no error")
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(request{level: "RequestResponse", verb: "patch", name: "w", code: 200, body: widget(1, map[string]any{"a": []any{1, "b"}})}.line(start)))
	f.Add([]byte(`{"kind":"Event","apiVersion":"audit.k8s.io/v1","stage":"Panic","stageTimestamp":"2026-01-01T00:00:00Z","verb":"update","objectRef":{}}`))
	f.Add([]byte("\x1f\x8b\n{}\n\n"))
	f.Add([]byte(`{"kind":"Event","apiVersion":"audit.k8s.io/v1","stage":"ResponseComplete","stageTimestamp":"2026-01-01T00:00:00Z","verb":"update","objectRef":{"resource":"x","name":"y"},"responseStatus":{"code":200},"responseObject":{"metadata":{"managedFields":[{"fieldsV1":{"k:{":{}}}]},"a":[null]}}`))
	f.Fuzz(func(t *testing.T, log []byte) {
		a := auditlog.New(auditlog.Options{MaxLine: 1 << 16})
		for range 3 {
			_ = a.Read(t.Context(), "fuzz", bytes.NewReader(log)) // any error will do, but no panic
		}
		r := a.Report()
		if r.Requests+r.Broken > r.Lines {
			t.Errorf("%d requests and %d broken of %d lines", r.Requests, r.Broken, r.Lines)
		}
	})
}

func BenchmarkRead(b *testing.B) {
	log := repeat(5000, 10*time.Millisecond, func(i int, now time.Time) request {
		return request{level: "RequestResponse", verb: "update", name: fmt.Sprint("w", i%50), code: 200, body: widget(i, map[string]any{"at": now.Format(time.RFC3339Nano)})}
	})
	b.SetBytes(int64(len(log)))
	for b.Loop() {
		if err := auditlog.New(auditlog.Options{}).Read(b.Context(), "log", strings.NewReader(log)); err != nil {
			b.Fatal(err)
		}
	}
}
