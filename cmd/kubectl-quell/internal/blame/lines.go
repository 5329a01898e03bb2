package blame

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hduolab/quell/cmd/kubectl-quell/internal/show"
	"github.com/hduolab/quell/controller/fieldowners"
	"sigs.k8s.io/yaml"
)

// line is a line of the object's YAML, and the value that it shows.
type line struct {
	text string
	node *fieldowners.Node
}

// layout writes values as YAML in the style of kubectl get -o yaml: keys sorted, list items at the indent of their key.
type layout struct {
	subject *subject
	filter  filter
	lines   []line
	// dash is put in front of the next line, which is the first one of a list item.
	dash string
}

func (s *subject) lines(f filter) ([]line, error) {
	l := &layout{subject: s, filter: f}
	err := l.children(s.Root, "")
	return l.lines, err
}

func (l *layout) children(n *fieldowners.Node, indent string) error {
	_, isMap := n.Value.(map[string]any)
	for _, c := range n.Children {
		if !l.subject.keepsTree(c, l.filter) {
			continue
		}
		write := l.item
		if isMap {
			write = l.field
		}
		if err := write(c, indent); err != nil {
			return err
		}
	}
	return nil
}

func (l *layout) field(n *fieldowners.Node, indent string) error {
	if n.IsLeaf() {
		return l.scalar(n, indent, map[string]any{show.Escape(n.Key): printable(n.Value)})
	}
	key, err := yaml.Marshal(show.Escape(n.Key))
	if err != nil {
		return fmt.Errorf("write the key of %s: %w", fieldowners.FormatPath(n.Path), err)
	}
	_, isMap := n.Value.(map[string]any)
	text := indent + strings.TrimSuffix(string(key), "\n") + ":"
	switch {
	case !l.shows(n) && isMap:
		text += " {...}"
	case !l.shows(n):
		text += " [...]"
	case isMap:
		indent += "  "
	}
	l.add(n, text)
	return l.children(n, indent)
}

// shows reports whether any part of a value passes the filter.
func (l *layout) shows(n *fieldowners.Node) bool {
	return slices.ContainsFunc(n.Children, func(c *fieldowners.Node) bool { return l.subject.keepsTree(c, l.filter) })
}

func (l *layout) item(n *fieldowners.Node, indent string) error {
	if n.IsLeaf() {
		return l.scalar(n, indent, []any{printable(n.Value)})
	}
	if !l.shows(n) {
		return l.scalar(n, indent, []any{"..."})
	}
	l.dash += indent[len(l.dash):] + "- "
	return l.children(n, indent+"  ")
}

// scalar adds the lines of a key or dash with a value that has no parts.
func (l *layout) scalar(n *fieldowners.Node, indent string, document any) error {
	text, err := yaml.Marshal(document)
	if err != nil {
		return fmt.Errorf("write %s: %w", fieldowners.FormatPath(n.Path), err)
	}
	for t := range strings.SplitSeq(strings.TrimSuffix(string(text), "\n"), "\n") {
		if t != "" { // a blank line inside a block of text
			t = indent + t
		}
		l.add(n, t)
	}
	return nil
}

func (l *layout) add(n *fieldowners.Node, text string) {
	if l.dash != "" && text != "" {
		text = l.dash + text[len(l.dash):]
		l.dash = ""
	}
	l.lines = append(l.lines, line{text, n})
}

// printable is a leaf whose text cannot harm a terminal; line breaks make a block.
func printable(v any) any {
	if s, ok := v.(string); ok {
		return show.EscapeLines(s)
	}
	return v
}
