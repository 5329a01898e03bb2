package lookout

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hduolab/quell/cmd/kubectl-quell/internal/frame"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/show"
	"github.com/hduolab/quell/controller/fieldowners"
	"github.com/hduolab/quell/controller/storm"
	"github.com/hduolab/quell/controller/storm/live"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

var update = flag.Bool("update", false, "write the golden files anew")

var start = time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }

func finding(name string, verdict storm.Verdict, rate float64, isStorm bool) storm.Finding {
	owner := fieldowners.Owner{Manager: "widget-operator", Operation: "Update", Subresource: "status", APIVersion: "example.com/v1"}
	return storm.Finding{
		Object:  storm.Key{GroupResource: schema.GroupResource{Group: "example.com", Resource: "widgets"}, Namespace: "team-a", Name: name},
		Verdict: verdict, IsStorm: isStorm, Rate: rate, Peak: rate + 1, Writes: int64(rate * 10), First: start, Last: at(10), Samples: 64, Confidence: 0.94,
		Writers: []storm.Writer{{Owner: owner, Writes: 64}}, Fields: []storm.Field{{Path: ".status.at", Changes: 64, Values: []string{`"a"`, `"b"`}}},
		Evidence: []string{"100 % of the writes change only .status.at"}, Remedy: verdict.Remedy(),
	}
}

func watch(resource string, state live.State, gaps int) live.Watch {
	w := live.Watch{Resource: live.Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: resource}, Kind: "X"}, State: state, Gaps: gaps}
	if state != live.Watching && state != live.Starting {
		w.Err = errors.New(resource + " may not be watched")
	}
	return w
}

// fixed is a source that tells the same whenever it is asked.
type fixed struct {
	report  storm.Report
	watches []live.Watch
}

func (f fixed) Report() storm.Report  { return f.report }
func (f fixed) Watches() []live.Watch { return f.watches }

func many() fixed {
	hostile := finding("w\x1b[2J<script>", storm.VolatileText, 3, true)
	hostile.Writers[0].Manager = "evil\r\n\u202e<b>"
	return fixed{
		report: storm.Report{From: start, To: at(10), Writes: 400, Rate: 41.234, Findings: []storm.Finding{
			finding("w1", storm.TimestampChurn, 20.04, true), finding("a-widget-with-a-name-that-is-longer-than-any-column-of-a-table", storm.Fight, 7, true), hostile,
			finding("busy", storm.RealChanges, 0.9, false),
		}, Managers: []storm.Rate[fieldowners.Owner]{{Key: fieldowners.Owner{Manager: "widget-operator", Operation: "Update"}, PerSecond: 40, Writes: 400}}},
		watches: []live.Watch{
			watch("pods", live.Watching, 1), watch("nodes", live.Watching, 0), watch("secrets", live.Forbidden, 0), watch("roles", live.Forbidden, 0),
			watch("rolebindings", live.Forbidden, 0), watch("things", live.Failing, 0),
		},
	}
}

type nobody struct{}

func (nobody) tell(*session, []happening) {}
func (nobody) tick(*session)              {}
func (nobody) done()                      {}

func sessionOf(s source) *session {
	return &session{source: s, scope: &scope{words: "6 resources"}, from: start, to: start, record: newRecord(start), teller: nobody{}}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := errors.Join(os.MkdirAll("testdata", 0o755), os.WriteFile(path, []byte(got), 0o644)); err != nil {
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

// The live table at several sizes; one storm is over, and its line is dimmed as is that of what is no storm.
func TestLiveTable(t *testing.T) {
	source := many()
	s := sessionOf(source)
	s.step(at(0))
	source.report.Findings = slices.Delete(slices.Clone(source.report.Findings), 1, 2)
	s.source = source
	s.step(at(10))
	var all strings.Builder
	for _, size := range []size{{200, 24}, {120, 24}, {80, 6}, {40, 24}, {10, 3}, {3, 2}, {1, 1}} {
		for _, isWide := range []bool{false, true} {
			lines := s.view(isWide).render(size, false)
			fmt.Fprintf(&all, "%d x %d, wide: %v\n%s\n\n", size.width, size.height, isWide, strings.Join(lines, "\n"))
			if len(lines) > max(1, size.height-1) {
				t.Errorf("%v: %d lines", size, len(lines))
			}
			for _, line := range lines {
				if n := len([]rune(line)); n > size.width {
					t.Errorf("%v: a line of %d characters: %s", size, n, line)
				}
			}
		}
	}
	golden(t, "live.txt", all.String())
}

func TestColoursOfTheLiveTable(t *testing.T) {
	s := sessionOf(many())
	s.step(at(5))
	lines := s.view(false).render(size{120, 24}, true)
	if !strings.HasSuffix(lines[2], "\x1b[31mTimestampChurn\x1b[0m") || !strings.HasPrefix(lines[5], "\x1b[2m0.9/s") || strings.Contains(lines[0]+lines[1], "\x1b") {
		t.Errorf("%q", lines)
	}
	for _, line := range lines { // nothing of the cluster's own, beside the colours
		for _, colour := range []string{"\x1b[31m", "\x1b[2m", "\x1b[0m"} {
			line = strings.ReplaceAll(line, colour, "")
		}
		if strings.ContainsAny(line, "\x1b\r\n\u202e") {
			t.Errorf("%q", line)
		}
	}
}

func TestFinalTable(t *testing.T) {
	s := sessionOf(many())
	s.step(at(10))
	s.source = fixed{watches: many().watches}
	s.step(at(20))
	s.source = many()
	s.step(at(30))
	var out bytes.Buffer
	if err := s.report().print(&out, show.Palette(false), true); err != nil {
		t.Fatal(err)
	}
	golden(t, "final.txt", out.String())
	out.Reset()
	if err := sessionOf(fixed{}).report().print(&out, show.Palette(false), false); err != nil || !strings.Contains(out.String(), "no write storm found") {
		t.Errorf("%v: %s", err, out.String())
	}
}

// That nothing was found says little when little was looked at.
func TestReservations(t *testing.T) {
	r := Report{From: metav1.NewTime(at(0)), To: metav1.NewTime(at(4)), Writes: 80, Namespaces: []string{"default"}, CustomResourcesOnly: true, Resources: []Resource{
		{Resource: "widgets", State: live.Watching}, {Resource: "gadgets", State: live.Forbidden}, {Resource: "parts", State: live.Forbidden},
	}}
	for i := range 9 {
		r.Unseen = append(r.Unseen, fmt.Sprint("resource ", i))
	}
	var out bytes.Buffer
	if err := r.print(&out, show.Palette(false), false); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"no write storm found\n  80 writes were seen, too short a time for a verdict: watch for 10s or longer\n  in the namespace default; -A looks in all\n" +
			"  in custom resources alone; name a TYPE, or --all, to look in Kubernetes' own\n  in the 1 of 3 resources that could be watched\n",
		"  resource 4\n  and 4 more, see -o wide\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
	out.Reset()
	r = Report{From: metav1.NewTime(at(0)), To: metav1.NewTime(at(30)), Writes: 80, Resources: r.Resources[:1]}
	if err := r.print(&out, show.Palette(false), false); err != nil || !strings.HasSuffix(out.String(), "no write storm found\n") {
		t.Errorf("%v: %s", err, out.String())
	}
}

func TestReportOfASession(t *testing.T) {
	s := sessionOf(many())
	s.step(at(10))
	raw, err := json.MarshalIndent(s.report(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "report.json", string(raw)+"\n")
}

func TestHistory(t *testing.T) {
	var h history
	var told []string
	for i, findings := range [][]storm.Finding{
		{finding("a", storm.ValuesNotSeen, 9, true), finding("b", storm.RealChanges, 5, false)},
		{finding("a", storm.TimestampChurn, 9, true)},
		{finding("a", storm.TimestampChurn, 0.79, false), finding("b", storm.Fight, 4, true)}, // for a moment
		{finding("a", storm.TimestampChurn, 8, true), finding("b", storm.Fight, 4, true)},
		{finding("a", storm.TimestampChurn, 0.5, false)}, {finding("b", storm.Fight, 4, true)}, {finding("a", storm.Flapping, 3, true)},
	} {
		for _, n := range h.observe(findings, at(5*i)) {
			told = append(told, fmt.Sprintf("%d %s", 5*i, n.line()))
		}
	}
	for _, n := range h.observe(nil, at(35)) {
		told = append(told, fmt.Sprintf("%d %s", 35, n.line()))
	}
	const doing = " writes/s by widget-operator (Update/status) to .status.at"
	want := []string{
		"0 storm: widgets.example.com/team-a/a: ValuesNotSeen; 9" + doing,
		"5 the storm of widgets.example.com/team-a/a has another verdict: TimestampChurn, was ValuesNotSeen; 9" + doing,
		"10 storm: widgets.example.com/team-a/b: Fight; 4" + doing,
		"25 the storm of widgets.example.com/team-a/a has ended after 15s: TimestampChurn",
		"30 storm: widgets.example.com/team-a/a: Flapping; 3" + doing,
		"35 the storm of widgets.example.com/team-a/b has ended after 15s: Fight",
	}
	if !slices.Equal(told, want) {
		t.Errorf("%s", strings.Join(told, "\n"))
	}
	if ranked := h.ranked(); len(ranked) != 2 || ranked[0].finding.Object.Name != "a" || ranked[0].isOver() || !ranked[1].isOver() {
		t.Errorf("%+v", ranked)
	}
}

func TestHistoryIsBounded(t *testing.T) {
	var h history
	for i := range 3 * maxStorms {
		h.observe([]storm.Finding{finding(fmt.Sprint(i), storm.Fight, float64(i), true)}, at(i))
	}
	if len(h.storms) != maxStorms {
		t.Errorf("%d storms", len(h.storms))
	}
	if name := h.ranked()[0].finding.Object.Name; name != fmt.Sprint(3*maxStorms-1) {
		t.Errorf("%s is the first", name)
	}
}

// What the plots add up to is what was written, whenever an object became known.
func TestRecord(t *testing.T) {
	r := newRecord(start)
	for i := 1; i <= 20; i++ {
		report := storm.Report{Writes: int64(10 * i), Managers: []storm.Rate[fieldowners.Owner]{{Key: fieldowners.Owner{Manager: "m"}, Writes: int64(10 * i)}}}
		if i >= 5 {
			f := finding("w", storm.Fight, 6, true)
			f.First, f.Writes = at(2), int64(6*(i-2))
			report.Findings = append(report.Findings, f)
		}
		r.add(report, at(i))
	}
	objects, managers := r.objects.Rates(8), r.managers.Rates(8)
	if got := fmt.Sprint(objects.Lines[0].PerSecond); got != "[0 0 6 6 6 6 6 6 6 6 6 6 6 6 6 6 6 6 6 6]" {
		t.Errorf("objects: %s", got)
	}
	if got := fmt.Sprint(objects.Rest); got != "[10 10 4 4 4 4 4 4 4 4 4 4 4 4 4 4 4 4 4 4]" {
		t.Errorf("the rest: %s", got)
	}
	if managers.Others || managers.Lines[0].PerSecond[19] != 10 {
		t.Errorf("managers: %+v", managers)
	}
}

// A counter that has passed to another object in between starts anew.
func TestRecordOfCountersThatStartAnew(t *testing.T) {
	r := newRecord(start)
	for i, count := range []int64{5, 9, 2} {
		f := finding("w", storm.Fight, 6, true)
		f.Writes = count
		r.add(storm.Report{Writes: int64(20 * (i + 1)), Findings: []storm.Finding{f}}, at(i+1))
	}
	if got := fmt.Sprint(r.objects.Rates(8).Lines[0].PerSecond); got != "[5 4 2]" {
		t.Errorf("%s", got)
	}
}

func TestBlindness(t *testing.T) {
	for want, watches := range map[string][]live.Watch{
		"it takes the rights to list and watch pods, nodes in the namespace shop: pods may not be watched": {
			watch("pods", live.Forbidden, 0), watch("nodes", live.Forbidden, 0)},
		"nothing can be watched: pods: pods may not be watched": {watch("pods", live.NotFound, 0)},
	} {
		c := cover(watches)
		if !c.isBlind() || !strings.Contains(c.blindness([]string{"shop"}).Error(), want) {
			t.Errorf("%v", c.blindness([]string{"shop"}))
		}
	}
	if cover(many().watches).isBlind() || cover([]live.Watch{watch("pods", live.Starting, 0)}).isBlind() {
		t.Error("sees nothing")
	}
}

// The screen is painted in its place, wiped when the terminal has another size, and leaves nothing in the end.
func TestScreen(t *testing.T) {
	var out bytes.Buffer
	current := size{100, 24}
	s := sessionOf(many())
	screen := &screen{out: &out, size: func() size { return current }}
	s.teller = screen
	painted := func(do func()) string {
		out.Reset()
		do()
		return out.String()
	}
	if got := painted(func() { s.step(at(1)) }); strings.Contains(got, "A\x1b") || strings.Count(got, "\n") != 6 {
		t.Errorf("at first %q", got)
	}
	if got := painted(func() { s.step(at(2)) }); !strings.HasPrefix(got, "\r\x1b[6A") || strings.Contains(got, "\x1b[2J") {
		t.Errorf("in place %q", got)
	}
	if got := painted(func() { screen.tick(s) }); got != "" {
		t.Errorf("between steps %q", got)
	}
	current = size{50, 5}
	if got := painted(func() { screen.tick(s) }); !strings.HasPrefix(got, "\x1b[H\x1b[2J") || strings.Count(got, "\n") != 4 {
		t.Errorf("at another size %q", got)
	}
	if got := painted(screen.done); got != "\r\x1b[4A\x1b[J" {
		t.Errorf("in the end %q", got)
	}
}

func TestPageOfASession(t *testing.T) {
	s := sessionOf(many())
	s.step(at(5))
	s.step(at(10))
	raw, err := s.page(s.report(), "kubectl quell test").HTML()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"3 storms found: 400 writes", "By field manager", "widgets.example.com/team-a/w1", "<polyline", "secrets: forbidden, secrets may not be watched",
		"RealChanges", "audit log", "kubectl quell test",
	} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("%q is missing", want)
		}
	}
	if strings.Contains(string(raw), "<script") || strings.Contains(string(raw), "\x1b") {
		t.Error("what comes from the cluster is not escaped")
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{
		{"pods", "--all"}, {"--all", "--custom"}, {"--for", "-1s"}, {"--rate", "0"}, {"pods/x"}, {"-o", "none"}, {"--for", "x"},
	} {
		streams, _, out, _ := genericiooptions.NewTestIOStreams()
		f := frame.New(streams, "test")
		cmd := New(f)
		f.AddFlags(cmd.PersistentFlags())
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs(args)
		if err := cmd.ExecuteContext(t.Context()); err == nil || out.String() != "" || f.Started() && frame.Code(err) != frame.Usage {
			t.Errorf("%q: %v, %s", args, err, out.String())
		}
	}
}
