package page

import (
	"encoding/xml"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/hduolab/quell/cmd/kubectl-quell/internal/show"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/storms"
	"github.com/hduolab/quell/controller/fieldowners"
	"github.com/hduolab/quell/controller/storm"
	"github.com/hduolab/quell/controller/storm/timeline"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var start = time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)

// hostile is what a stranger might give as a name or value.
const hostile = `</td></style><script>alert(1)</script><img src=x onerror=alert(2)>"'&` + "\u202e\x1b[2J"

func of(text string) Page {
	line := timeline.New[string](60, 10)
	for i := range 30 {
		from := start.Add(time.Duration(i) * time.Second)
		line.Add(text, from, from.Add(time.Second), float64(i%7))
		line.AddTotal(from, from.Add(time.Second), 9)
	}
	s := storms.Storm{
		Object: storms.Object{Group: "example.com", Resource: "widgets", Namespace: "n", Name: text}, Verdict: storm.TimestampChurn,
		Also: []storm.Verdict{storm.Flapping}, Rate: 20, Peak: 21.5, Writes: 600, First: metav1.NewTime(start), Last: metav1.NewTime(start.Add(30 * time.Second)),
		Writers:  []storms.Writer{{Owner: show.Owner{Manager: text, Operation: "Update", Subresource: "status", APIVersion: "example.com/v1"}, Writes: 64}},
		Fields:   []storms.Field{{Path: text, Changes: 64, Values: []string{text, `"b"`}}, {Path: ".status.x", Changes: 3}},
		Evidence: []string{text}, Remedy: "renew a time only when what it dates has changed", Samples: 64, Confidence: 0.94,
	}
	return Page{
		Title: text, From: start, To: start.Add(30 * time.Second), Lead: text, Facts: []string{text}, Storms: []storms.Storm{s}, None: text,
		Sections: []Section{{Title: text, Heading: []string{text}, Rows: [][]string{{text}}, Notes: []string{text}}}, Unseen: []string{text}, Program: text,
		Charts: nil,
	}.with(line)
}

func (p Page) with(line *timeline.Timeline[string]) Page {
	p.Charts = append(p.Charts, Chart("By object", line.Rates(8), func(s string) string { return s }))
	return p
}

func html(t *testing.T, p Page) string {
	t.Helper()
	raw, err := p.HTML()
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestPageTellsAll(t *testing.T) {
	got := html(t, of("w1"))
	for _, want := range []string{
		"<title>w1</title>", "2026-01-01 10:00:00 to 2026-01-01 10:00:30 UTC (30s)", "widgets.example.com/n/w1", `<span class="verdict">TimestampChurn`,
		"also Flapping", "Remedy:</b> renew a time", "<dd>21.5</dd>", "<dd>94 %</dd>", "w1 (Update/status)", "<polyline", "not seen", "What was not seen",
		"all others", "mean 2.83, peak 6",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	if got := html(t, Page{Title: "x", None: "No storm."}); !strings.Contains(got, "No storm.") || strings.Contains(got, "over time") || strings.Contains(got, "UTC") {
		t.Errorf("of nothing: %s", got)
	}
}

// Whatever names and values are, they stay text: the page has the same elements and attributes as one with plain words.
func TestHostileContentStaysText(t *testing.T) {
	got, plain := html(t, of(hostile)), html(t, of("w1"))
	if strings.Contains(got, "<script") || strings.Contains(got, "<img") || strings.ContainsAny(got, "\u202e\x1b") {
		t.Error("content of strangers is not escaped")
	}
	if a, b := elements(t, got), elements(t, plain); a != b {
		t.Errorf("other elements:\n%s\n%s", a, b)
	}
	if !strings.Contains(got, "&lt;script&gt;alert(1)&lt;/script&gt;") {
		t.Error("the text itself is gone")
	}
}

// elements are the names of all elements and attributes, in order.
func elements(t *testing.T, text string) string {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(regexp.MustCompile(`(?s)<style>.*?</style>`).ReplaceAllString(text, "")))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	var names []string
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return strings.Join(names, " ")
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, is := token.(xml.StartElement); is {
			names = append(names, e.Name.Local)
			for _, a := range e.Attr {
				names = append(names, "@"+a.Name.Local)
			}
		}
	}
}

// The page needs nothing from elsewhere.
func TestPageIsSelfContained(t *testing.T) {
	got := html(t, of("w1"))
	for _, bad := range []string{"<script", "<link", "src=", "href=", "url(", "@import", "http:", "https:"} {
		if strings.Contains(got, bad) {
			t.Errorf("the page has %q in it", bad)
		}
	}
}

func TestLongLinesAreDrawnWithFewerPoints(t *testing.T) {
	line := timeline.New[string](600, 10)
	for i := range 301 {
		from := start.Add(time.Duration(i) * time.Second)
		line.Add("a", from, from.Add(time.Second), float64(1+i%3))
	}
	c := Chart("x", line.Rates(8), strings.Clone)
	if got := c.Lines[0].Values; len(got) != 101 || got[0] != 2 || got[99] != 2 || got[100] != 1 || c.Step != 3*time.Second {
		t.Errorf("%d points each %s: %v", len(got), c.Step, got)
	}
}

func TestManagerName(t *testing.T) {
	for want, o := range map[string]fieldowners.Owner{
		"op (Apply/status)": {Manager: "op", Operation: "Apply", Subresource: "status"}, storms.Unknown: {},
	} {
		if got := ManagerName(o); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestFile(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "report.html")
	if err := os.Symlink("report.html", filepath.Join(dir, "link.html")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"report.html", "link.html"} {
		path := filepath.Join(dir, name)
		if err := errors.Join(Check(path), Page{Title: name}.Write(path)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(target); err != nil || !strings.Contains(string(got), "<title>"+name) || !strings.HasSuffix(string(got), "</html>\n") {
			t.Errorf("%s: %v: %s", name, err, got)
		}
	}
	if names := listed(t, dir); names != "link.html report.html" {
		t.Errorf("there are %s", names)
	}
	if info, err := os.Lstat(filepath.Join(dir, "link.html")); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link is none any more: %v", err)
	}
}

func TestFileThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	locked := filepath.Join(dir, "locked.html")
	if err := os.WriteFile(locked, []byte("old"), 0o400); err != nil {
		t.Fatal(err)
	}
	paths := []string{dir, filepath.Join(dir, "none", "report.html"), os.DevNull, filepath.Join(locked, "x")}
	if os.Geteuid() != 0 { // who may write anything
		paths = append(paths, locked)
	}
	for _, path := range paths {
		if err := Check(path); err == nil || !strings.HasPrefix(err.Error(), "the report cannot be written: ") {
			t.Errorf("%s: %v", path, err)
		}
		if err := (Page{}).Write(path); err == nil {
			t.Errorf("%s is written", path)
		}
	}
	if names := listed(t, dir); names != "locked.html" {
		t.Errorf("there are %s", names)
	}
}

func listed(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}
