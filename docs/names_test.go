package docs_test

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// inRepository finds what looks like a path of this repository.
var inRepository = regexp.MustCompile(`(?:^|[\s=('"])(?:\./|github\.com/hduolab/quell/)?((?:api|applyconfig|cmd|config|controller|docs|test)/[\w./*-]+)`)

// Paths that pages name exist.
func TestPaths(t *testing.T) {
	n := 0
	for _, p := range pages(t) {
		for _, line := range p.commands() {
			for _, m := range inRepository.FindAllStringSubmatch(line, -1) {
				n++
				if !pathExists(m[1]) {
					t.Errorf("%s: there is no %s, in %q", p.name, m[1], line)
				}
			}
		}
	}
	if n == 0 {
		t.Error("no page names a path")
	}
}

var ofPackage = regexp.MustCompile(`\.[A-Z]\w*$`)

// pathExists also takes globs, ./folder/... and the names in a package.
func pathExists(path string) bool {
	path = strings.TrimRight(path, "./")
	for _, candidate := range []string{path, ofPackage.ReplaceAllString(path, "")} {
		if found, err := filepath.Glob(filepath.Join(root, candidate)); err == nil && len(found) > 0 {
			return true
		}
	}
	return false
}

var (
	makeCall   = regexp.MustCompile(`(?:^|&& |; |\()make ((?:[A-Z_]+=\S+ )*)([a-z][a-z0-9-]*)`)
	makeTarget = regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):`)
)

// Targets that pages have make build exist, with a word on what they do.
func TestMakeTargets(t *testing.T) {
	makefile := read(t, "../Makefile")
	var targets []string
	for _, m := range makeTarget.FindAllStringSubmatch(makefile, -1) {
		targets = append(targets, m[1])
	}
	n := 0
	for _, p := range pages(t) {
		for _, line := range p.commands() {
			for _, m := range makeCall.FindAllStringSubmatch(line, -1) {
				n++
				if !slices.Contains(targets, m[2]) {
					t.Errorf("%s: the Makefile has no target %s, in %q", p.name, m[2], line)
				}
			}
		}
	}
	if n == 0 {
		t.Error("no page names a target")
	}
}

var goRun = regexp.MustCompile(`\bgo run (?:-C (\S+) )?(\./[\w./-]*)`)

// What pages have go run is a program.
func TestGoRun(t *testing.T) {
	n := 0
	for _, p := range pages(t) {
		for _, line := range p.commands() {
			for _, m := range goRun.FindAllStringSubmatch(line, -1) {
				n++
				// What pages say of benchmarks is said in their module.
				if !isProgram(filepath.Join(root, m[1], m[2])) && !isProgram(filepath.Join(root, "test/bench", m[2])) {
					t.Errorf("%s: %s is no program, in %q", p.name, m[2], line)
				}
			}
		}
	}
	if n == 0 {
		t.Error("no page has go run anything")
	}
}

func isProgram(dir string) bool {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return false
	}
	return slices.ContainsFunc(files, func(file string) bool {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.PackageClauseOnly)
		return err == nil && parsed.Name.Name == "main"
	})
}

var (
	plugin     = regexp.MustCompile(`\bkubectl quell ([a-z][a-z-]*)([^|;&]*)`)
	longFlag   = regexp.MustCompile(`--[a-z][a-z-]+`)
	pluginFlag = regexp.MustCompile("(?m)^\\| `(?:-\\w, )?(--[a-z-]+)` ")
)

// Commands of the plugin and their flags are in kubectl-quell.md, which is made from the commands.
func TestPluginCommands(t *testing.T) {
	flags, n := pluginFlags(t), 0
	for _, p := range pages(t) {
		for _, line := range p.commands() {
			for _, m := range plugin.FindAllStringSubmatch(line, -1) {
				n++
				if _, known := flags[m[1]]; !known {
					t.Errorf("%s: there is no kubectl quell %s", p.name, m[1])
				}
				for _, flag := range longFlag.FindAllString(m[2], -1) {
					if known := slices.Concat(flags[m[1]], flags["Flags of all commands"]); !slices.Contains(known, flag) {
						t.Errorf("%s: kubectl quell %s has no %s", p.name, m[1], flag)
					}
				}
			}
		}
	}
	if n == 0 {
		t.Error("no page names a command")
	}
}

// pluginFlags are the flags of each command.
func pluginFlags(t *testing.T) map[string][]string {
	t.Helper()
	flags := map[string][]string{}
	for _, section := range strings.Split(read(t, "kubectl-quell.md"), "\n## ")[1:] {
		command, text, _ := strings.Cut(section, "\n")
		flags[command] = []string{"--help"}
		for _, m := range pluginFlag.FindAllStringSubmatch(text, -1) {
			flags[command] = append(flags[command], m[1])
		}
	}
	return flags
}

// fragments are the pages whose Go is no part of a program: mistakes of operators, and what belongs into somebody's suite.
var fragments = []string{"docs/runbook.md", "docs/testing-your-operator.md"}

// Go in pages is code that compiles: what stands between "// begin PAGE" and "// end" in a test file of test/integration/library, which runs it.
func TestGoBlocks(t *testing.T) {
	shown := regions(t)
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			i := slices.IndexFunc(shown, func(r region) bool { return slices.Contains(r.pages, p.name) && r.code == b.code })
			switch {
			case i >= 0:
				shown[i].pages = slices.DeleteFunc(slices.Clone(shown[i].pages), func(name string) bool { return name == p.name })
			case b.language == "go" && !slices.Contains(fragments, p.name):
				t.Errorf("%s: no example has this block:\n%s", p.name, b.code)
			}
		}
	}
	for _, r := range shown {
		for _, name := range r.pages {
			t.Errorf("%s does not show this part of %s as it is:\n%s", name, r.file, r.code)
		}
	}
}

// region is a part of an example that pages show.
type region struct {
	pages      []string
	file, code string
}

func regions(t *testing.T) []region {
	t.Helper()
	files, err := filepath.Glob("../test/integration/library/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var found []region
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range strings.Split(string(raw), "// begin ")[1:] {
			names, rest, _ := strings.Cut(part, "\n")
			code, _, closed := strings.Cut(rest, "// end\n")
			if !closed {
				t.Fatalf("%s: no end of what is shown in %s", file, names)
			}
			found = append(found, region{pages: strings.Fields(names), file: file, code: unindented(code)})
		}
	}
	if len(found) == 0 {
		t.Fatal("there is no example")
	}
	return found
}

// unindented takes the first line's tabs off all lines.
func unindented(code string) string {
	code = strings.TrimRight(code, "\t\n") + "\n"
	indent := code[:len(code)-len(strings.TrimLeft(code, "\t"))]
	return strings.TrimPrefix(strings.ReplaceAll("\n"+code, "\n"+indent, "\n"), "\n")
}
