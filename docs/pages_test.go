package docs_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	gmtext "github.com/yuin/goldmark/text"
)

const root = ".."

// page is a Markdown file of the repository, taken apart.
type page struct {
	// name is its path from the root.
	name string
	// anchors are what links can lead to, links where its own lead.
	anchors, links []string
	// spans are its inline code.
	spans  []string
	blocks []block
}

type block struct{ language, code string }

// pages are all Markdown files of the repository, but those that builds and tests leave behind.
func pages(t *testing.T) []page {
	t.Helper()
	var found []page
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && file != root && (strings.HasPrefix(entry.Name(), ".") || slices.Contains([]string{"bin", "dist", "testdata"}, entry.Name())) {
			return filepath.SkipDir
		}
		if filepath.Ext(file) != ".md" {
			return nil
		}
		p, err := parse(file)
		found = append(found, p)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 5 {
		t.Fatalf("found %d pages only", len(found))
	}
	return found
}

func parse(file string) (page, error) {
	source, err := os.ReadFile(file)
	if err != nil {
		return page{}, err
	}
	name, err := filepath.Rel(root, file)
	if err != nil {
		return page{}, err
	}
	p := page{name: filepath.ToSlash(name)}
	tree := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(gmtext.NewReader(source))
	return p, ast.Walk(tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			p.add(n, source)
		}
		return ast.WalkContinue, nil
	})
}

func (p *page) add(n ast.Node, source []byte) {
	switch n := n.(type) {
	case *ast.Heading:
		p.anchors = append(p.anchors, p.anchor(words(n, source)))
	case *ast.Link:
		p.links = append(p.links, string(n.Destination))
	case *ast.Image:
		p.links = append(p.links, string(n.Destination))
	case *ast.CodeSpan:
		p.spans = append(p.spans, words(n, source))
	case *ast.FencedCodeBlock:
		var code bytes.Buffer
		for i := range n.Lines().Len() {
			line := n.Lines().At(i)
			code.Write(line.Value(source))
		}
		p.blocks = append(p.blocks, block{language: string(n.Language(source)), code: code.String()})
	}
}

var notInAnchors = regexp.MustCompile(`[^\p{L}\p{M}\p{N}\p{Pc}\- ]`)

// anchor is what GitHub makes of a heading, numbered where the page has it already.
func (p *page) anchor(heading string) string {
	base := strings.ReplaceAll(notInAnchors.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
	name := base
	for n := 1; slices.Contains(p.anchors, name); n++ {
		name = fmt.Sprintf("%s-%d", base, n)
	}
	return name
}

// words are the text of a node without its marks.
func words(n ast.Node, source []byte) string {
	var b strings.Builder
	for child := n.FirstChild(); child != nil; child = child.NextSibling() {
		switch child := child.(type) {
		case *ast.Text:
			b.Write(child.Value(source))
			if child.SoftLineBreak() {
				b.WriteByte(' ')
			}
		case *ast.String:
			b.Write(child.Value)
		default:
			b.WriteString(words(child, source))
		}
	}
	return b.String()
}

// commands are the lines of code that a page has its reader type: inline, and in blocks of a shell without their comments.
func (p page) commands() []string {
	lines := slices.Clone(p.spans)
	for _, b := range p.blocks {
		if b.language != "sh" && b.language != "console" {
			continue
		}
		for line := range strings.Lines(b.code) {
			line, _, _ = strings.Cut(line, " # ")
			if line = strings.TrimSpace(line); !strings.HasPrefix(line, "#") {
				lines = append(lines, strings.TrimPrefix(line, "$ "))
			}
		}
	}
	return lines
}

// Links lead to files that exist, and to headings that they have.
func TestLinks(t *testing.T) {
	all, n := pages(t), 0
	for _, p := range all {
		for _, link := range p.links {
			if strings.Contains(link, "://") || strings.HasPrefix(link, "mailto:") {
				continue // the network is not asked
			}
			n++
			if fault := follow(all, p, link); fault != "" {
				t.Errorf("%s: link to %s: %s", p.name, link, fault)
			}
		}
	}
	if n == 0 {
		t.Error("there is no link")
	}
}

func follow(all []page, from page, link string) (fault string) {
	target, section, hasSection := strings.Cut(link, "#")
	if target = path.Join(path.Dir(from.name), target); link[0] == '#' {
		target = from.name
	}
	if _, err := os.Stat(filepath.Join(root, target)); err != nil {
		return "there is no such file"
	}
	i := slices.IndexFunc(all, func(p page) bool { return p.name == target })
	if hasSection && (i < 0 || !slices.Contains(all[i].anchors, section)) {
		return "there is no such heading"
	}
	return ""
}
