package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"
	"github.com/spf13/pflag"
	ctrl "sigs.k8s.io/controller-runtime"
)

const (
	// asCommand makes this test binary the command.
	asCommand = "QUELL_TEST_DEMO"
	limit     = 5 * time.Minute // against hanging, not a measure
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	if os.Getenv(asCommand) != "" {
		os.Exit(command(os.Args[1:]))
	}
	os.Exit(m.Run())
}

func TestParseRefuses(t *testing.T) {
	tests := map[string]struct{ arg, want string }{
		"no objects":       {"--objects=0", "must be at least 1"},
		"no workers":       {"--workers=-1", "must be at least 1"},
		"no time":          {"--held=0s", "must be at least 1s"},
		"no page":          {"--page=", "--page must name a file"},
		"a stray argument": {"widgets", "unexpected argument"},
		"an unknown flag":  {"--nope", "unknown flag"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := parse([]string{test.arg})
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(test.want)))
		})
	}
	_, err := parse([]string{"--help"})
	NewWithT(t).Expect(errors.Is(err, pflag.ErrHelp)).To(BeTrue())
}

func TestAPageThatCannotBeWrittenIsToldBeforeAllWork(t *testing.T) {
	g := NewWithT(t)
	file := filepath.Join(t.TempDir(), "file")
	g.Expect(os.WriteFile(file, nil, 0o600)).To(Succeed())
	for _, path := range []string{t.TempDir(), filepath.Join(file, "demo.html")} {
		g.Expect(run(t.Context(), options{page: path}, io.Discard)).To(MatchError(ContainSubstring("the page cannot be written")))
	}
}

func TestSeries(t *testing.T) {
	g := NewWithT(t)
	start := time.Now()
	at := func(from, to float64, writes int) sample {
		moment := func(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }
		return sample{from: moment(from), to: moment(to), writes: writes}
	}
	s := samples{at(0, 1, 4), at(1, 1.5, 3), at(1.5, 3.5, 8), at(3.5, 3.9, 1)}
	g.Expect(s.series(writesOf)).To(Equal([]float64{4, 5, 4}), "the last step is incomplete")
	g.Expect(s.between(s[1].from, s[2].to).writes()).To(Equal(11))
	g.Expect(s.rate()).To(BeNumerically("~", 16/3.9, 0.001))
	g.Expect(samples(nil).series(writesOf)).To(BeEmpty())
	g.Expect(samples(nil).rate()).To(BeZero())
}

func TestSparkline(t *testing.T) {
	g := NewWithT(t)
	g.Expect(sparkline([]float64{0, 1, 50, 100}, 80)).To(Equal("▁▂▅█"))
	g.Expect(sparkline([]float64{100, 0, 50}, 2)).To(Equal("▁▅"), "the scale is of all")
	g.Expect(sparkline([]float64{0}, 80)).To(Equal("▁"))
	g.Expect(sparkline([]float64{1}, -5)).To(BeEmpty())
}

// TestTheStory is of the real thing, with short acts. That something storms, and how fast, depends on the machine; what the acts 3 to
// 5 write does not.
func TestTheStory(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	t.Parallel()
	g := NewWithT(t)
	file := filepath.Join(t.TempDir(), "new", "demo.html")
	session := start(t, t.Output(), "--objects=3", "--workers=3", "--naive=2s", "--named=10s", "--held=3s", "--mended=2s", "--changed=2s", "--page="+file)
	g.Eventually(session, limit).Should(gexec.Exit(0))
	out := string(session.Out.Contents())
	g.Expect(out).To(And(
		MatchRegexp(`named: widgets\.example\.com/default/widget-\d`),
		ContainSubstring(`.status.lastUpdateTime, written by widget-operator (Update/status): TimestampChurn`),
		ContainSubstring("remedy: renew a time only when what it dates has changed"), // of the plugin itself
		MatchRegexp(`(?m)^ +4 +\d+ +0 +0 +0 .* mended$`),
		MatchRegexp(`(?m)^ +5 +\d+ +1 +.* changed$`),
		ContainSubstring("3 reconciles found nothing to write"),
		ContainSubstring("a change of one spec cost 1 write\n"),
		Not(ContainSubstring("\x1b")), // there is no terminal
	))
	g.Expect(out).NotTo(MatchRegexp(`(?m)^ +1 +\d+ +0 +0 `), "the storm was none")

	page := wholePage(g, file)
	g.Expect(page).To(And(
		ContainSubstring("widgets.example.com/default/widget-"), ContainSubstring("<code>.status.lastUpdateTime</code>"),
		ContainSubstring("widget-operator (Update/status)"), ContainSubstring(`<span class="verdict">TimestampChurn</span>`),
		ContainSubstring(">5 changed<"), ContainSubstring("<polyline"),
	))
}

func TestInterruptedOnATerminal(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	t.Parallel()
	g := NewWithT(t)
	file := filepath.Join(t.TempDir(), "demo.html")
	terminal, process, err := pty.Open()
	g.Expect(err).NotTo(HaveOccurred())
	defer terminal.Close()
	g.Expect(pty.Setsize(process, &pty.Winsize{Rows: 24, Cols: 60})).To(Succeed())
	cmd := childCommand("--objects=2", "--naive=10m", "--page="+file)
	cmd.Stdout = process
	cmd.Stderr = process
	g.Expect(cmd.Start()).To(Succeed())
	g.Expect(process.Close()).To(Succeed())
	out := gbytes.BufferReader(terminal)
	g.Eventually(out, limit).Should(gbytes.Say(`act 1: (.|\n)*writes/s  .*█`))
	g.Expect(cmd.Process.Signal(syscall.SIGINT)).To(Succeed())
	g.Expect(cmd.Wait()).To(MatchError("exit status 1"))
	g.Eventually(out, limit).Should(gbytes.Say(`error: interrupted`))
	text := string(out.Contents())
	for line := range strings.Lines(text[strings.Index(text, "act 1"):strings.Index(text, "ACT")]) {
		if strings.Contains(line, "█") {
			g.Expect(len([]rune(regexp.MustCompile(`\x1b\[\d*[A-Z]|\r|\n`).ReplaceAllString(line, "")))).To(BeNumerically("<", 60), line)
		}
	}
	g.Expect(wholePage(g, file)).To(And(ContainSubstring("It was interrupted here."), ContainSubstring("No storm was named."), ContainSubstring("<polyline")))
}

// wholePage is a page that a browser shows without asking for anything else.
func wholePage(g *WithT, file string) string {
	content, err := os.ReadFile(file)
	g.Expect(err).NotTo(HaveOccurred())
	text := string(content)
	d := xml.NewDecoder(bytes.NewReader(regexp.MustCompile(`(?s)<style>.*?</style>`).ReplaceAll(content, nil)))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	depth := 0
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		g.Expect(err).NotTo(HaveOccurred())
		switch token.(type) {
		case xml.StartElement:
			depth++
		case xml.EndElement:
			depth--
		}
	}
	g.Expect(depth).To(BeZero(), "each element is closed")
	for _, bad := range []string{"<script", "<link", "<img", "src=", "href=", "url(", "@import", "http:", "https:"} {
		g.Expect(text).NotTo(ContainSubstring(bad))
	}
	g.Expect(text).To(HaveSuffix("</html>\n"))
	return text
}

func childCommand(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), asCommand+"=1", "TERM=xterm")
	return cmd
}

// start runs the command as a process of its own.
func start(t *testing.T, out io.Writer, args ...string) *gexec.Session {
	session, err := gexec.Start(childCommand(args...), out, out)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { <-session.Terminate().Exited })
	return session
}
