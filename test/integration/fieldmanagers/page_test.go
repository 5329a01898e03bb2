package fieldmanagers_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
)

const docs = "../../../docs/field-managers.md"

// step is what the reader does next.
type step struct {
	// file is to be made, with this content; or else the command is to be typed.
	file, content string
	command       string
	// The lines of the page from this one to before that one are the command's output.
	from, to int
}

var (
	fileName = regexp.MustCompile(`^# ([\w-]+\.yaml)$`)
	// looking finds the commands that change nothing, whatever they are piped into; in the background they are none of these.
	looking = regexp.MustCompile(`^kubectl (get|describe|events|wait|quell (blame|managers|conflicts|noop|diff-owners)) `)
)

// read takes the page apart: its lines, what the reader does, and the blocks of yaml that are no files.
func read() (lines []string, steps []step, manifests []string) {
	GinkgoHelper()
	raw, err := os.ReadFile(docs)
	Expect(err).NotTo(HaveOccurred())
	lines = strings.SplitAfter(string(raw), "\n")
	for i := 0; i < len(lines); i++ {
		language, isFence := strings.CutPrefix(strings.TrimSuffix(lines[i], "\n"), "```")
		if !isFence {
			continue
		}
		end := i + 1 + slices.Index(lines[i+1:], "```\n")
		Expect(end).To(BeNumerically(">", i), "a block without an end: line %d", i+1)
		content := strings.Join(lines[i+1:end], "")
		switch name := fileName.FindStringSubmatch(strings.TrimSuffix(lines[i+1], "\n")); {
		case language == "console":
			steps = append(steps, dialogue(lines, i+1, end)...)
		case language == "yaml" && name != nil:
			steps = append(steps, step{file: name[1], content: content})
		case language == "yaml":
			manifests = append(manifests, content)
		default:
			Fail("a block of " + language + " is neither run nor decoded: " + content)
		}
		i = end
	}
	return lines, steps, manifests
}

// dialogue takes a block of console apart.
func dialogue(lines []string, from, to int) (steps []step) {
	GinkgoHelper()
	for i := from; i < to; {
		command, isCommand := strings.CutPrefix(lines[i], "$ ")
		Expect(isCommand).To(BeTrue(), "line %d: a block of console begins with a command", i+1)
		for i++; strings.HasSuffix(command, "\\\n"); i++ {
			command += lines[i]
		}
		s := step{command: strings.TrimSuffix(command, "\n"), from: i}
		for i < to && !strings.HasPrefix(lines[i], "$ ") {
			i++
		}
		s.to = i
		steps = append(steps, s)
	}
	return steps
}

var (
	clock   = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)
	age     = regexp.MustCompile(`\b(\d+[dhms])+\b`)
	spaces  = regexp.MustCompile(` +`)
	lineEnd = regexp.MustCompile(`(?m) $`)
)

// normal leaves of an output what is the same in each run. The package comment has the rules.
func normal(output string) string {
	output = clock.ReplaceAllString(output, "TIME")
	output = age.ReplaceAllString(output, "AGE")
	return lineEnd.ReplaceAllString(spaces.ReplaceAllString(output, " "), "")
}

var _ = Describe("docs/field-managers.md", func() {
	It("is what happens", func(ctx SpecContext) {
		lines, steps, _ := read()
		Expect(len(steps)).To(BeNumerically(">", 40))
		session, written := newShell(), 0
		var page strings.Builder
		for _, s := range steps {
			if s.file != "" {
				Expect(os.WriteFile(filepath.Join(session.dir, s.file), []byte(s.content), 0o600)).To(Succeed())
				continue
			}
			By(s.command)
			want := strings.Join(lines[s.from:s.to], "")
			page.WriteString(strings.Join(lines[written:s.from], ""))
			page.WriteString(session.check(ctx, s.command, want))
			written = s.to
		}
		page.WriteString(strings.Join(lines[written:], ""))
		if *update {
			Expect(os.WriteFile(docs, []byte(page.String()), 0o600)).To(Succeed())
		}
	}, NodeTimeout(10*time.Minute))

	It("shows manifests that can be decoded", func() {
		_, steps, manifests := read()
		for _, s := range steps {
			if s.file != "" {
				manifests = append(manifests, s.content)
			}
		}
		kinds := map[string]int{}
		for _, manifest := range manifests {
			kinds[decode(manifest)]++
		}
		Expect(kinds).To(And(HaveKey("App"), HaveKey("ConfigMap"), HaveKey("Application"), HaveKey("Kustomization")))
	})
})

// explain is what a failure says first.
const explain = "the page shows another output of: %s\nIf the new one is right, write it there with: go test ./test/integration/fieldmanagers -update"

// check types a command and wants the output that the page shows. What it returns belongs into the page.
func (s *shell) check(ctx SpecContext, command, want string) string {
	GinkgoHelper()
	looks := looking.MatchString(command) && !strings.HasSuffix(command, "&")
	switch {
	case *update && looks:
		return s.settled(ctx, command, want)
	case *update:
		return kept(s.run(command), want)
	case looks:
		Eventually(ctx, func(g Gomega) { g.Expect(normal(s.run(command))).To(Equal(normal(want)), explain, command) }).Should(Succeed())
	default:
		Expect(normal(s.run(command))).To(Equal(normal(want)), explain, command)
	}
	return want
}

// settled types a command that looks until it shows the same three times, a second apart.
func (s *shell) settled(ctx SpecContext, command, want string) string {
	GinkgoHelper()
	out, same := "", 0
	Eventually(ctx, func(g Gomega) {
		now := s.run(command)
		if same++; normal(now) != normal(out) {
			same = 1
		}
		out = now
		g.Expect(same).To(Equal(3), command)
	}).WithPolling(time.Second).Should(Succeed())
	return kept(out, want)
}

// kept is the page's own output if the new one is the same.
func kept(out, want string) string {
	if normal(out) == normal(want) {
		return want
	}
	return out
}

// decode wants a manifest without unknown or repeated keys, as far as its type is known here, and returns its kind.
func decode(manifest string) string {
	GinkgoHelper()
	var object struct{ Kind string }
	Expect(yaml.Unmarshal([]byte(manifest), &object)).To(Succeed(), manifest)
	into := map[string]any{}
	types := map[string]any{"App": &quellv1alpha1.App{}, "ConfigMap": &corev1.ConfigMap{}}
	if typed, isKnown := types[object.Kind]; isKnown {
		Expect(yaml.UnmarshalStrict([]byte(manifest), typed)).To(Succeed(), manifest)
	}
	Expect(yaml.UnmarshalStrict([]byte(manifest), &into)).To(Succeed(), manifest)
	return object.Kind
}
