package audit

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hduolab/quell/cmd/kubectl-quell/internal/show"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/storms"
	"github.com/hduolab/quell/controller/storm"
)

func (r Report) print(out io.Writer, palette show.Palette, isWide bool) error {
	fmt.Fprintln(out, r.heading())
	for _, part := range []func(io.Writer, show.Palette, bool) error{r.printStorms, r.printFindings, r.printCounts} {
		if err := part(out, palette, isWide); err != nil {
			return err
		}
	}
	if r.Levels["RequestResponse"] == 0 {
		fmt.Fprintln(out, "\nnote: no event has the level RequestResponse, so fields and writes without effect are not seen")
	}
	return nil
}

func (r Report) heading() string {
	return fmt.Sprintf("%s from %s to %s; %s", show.Count(int(r.Requests), "request"), r.From.UTC().Format(time.RFC3339),
		r.To.UTC().Format(time.RFC3339), r.levels())
}

// levels are the numbers of requests by their audit levels.
func (r Report) levels() string {
	var levels []string
	for _, level := range slices.Sorted(maps.Keys(r.Levels)) {
		levels = append(levels, fmt.Sprintf("%d %s", r.Levels[level], show.Escape(level)))
	}
	return strings.Join(levels, ", ")
}

func (r Report) printStorms(out io.Writer, palette show.Palette, isWide bool) error {
	fmt.Fprintln(out)
	return storms.Print(out, palette, isWide, storms.Peak, r.Storms)
}

func (r Report) printFindings(out io.Writer, palette show.Palette, isWide bool) error {
	if len(r.Findings) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	rows, remedies := r.findingRows(isWide)
	if err := show.Table(out, []string{"PEAK/S", "VERB", "OBJECT", "USER", "USER AGENT", "EVIDENCE", "VERDICT"}, rows); err != nil {
		return err
	}
	for _, remedy := range remedies {
		fmt.Fprintf(out, "%s: remedy: %s\n", palette.Warn(string(remedy.verdict)), remedy.words)
	}
	return nil
}

// remedy is what to do about findings of a kind.
type remedy struct {
	verdict storm.Verdict
	words   string
}

// findingRows are the findings in a line each, and the remedies in the order of their verdicts.
func (r Report) findingRows(isWide bool) (rows [][]string, remedies []remedy) {
	for _, f := range r.Findings {
		object := f.Object.Words()
		if f.Subresource != "" {
			object += " (" + f.Subresource + ")"
		}
		rows = append(rows, []string{storms.Number(f.Peak), f.Verb, object, f.User, cut(f.Agent, isWide), f.Evidence, string(f.Verdict)})
		remedies = append(remedies, remedy{f.Verdict, f.Remedy})
	}
	slices.SortFunc(remedies, func(a, b remedy) int { return cmp.Compare(a.verdict, b.verdict) })
	return rows, slices.Compact(remedies)
}

// countPart are the most frequent of a kind.
type countPart struct {
	one, title string
	counts     []Count
}

// countParts are those that have any.
func (r Report) countParts() []countPart {
	parts := []countPart{
		{"user", "Users", r.Users}, {"user agent", "User agents", r.Agents}, {"verb", "Verbs", r.Verbs}, {"object", "Objects", r.Objects},
	}
	return slices.DeleteFunc(parts, func(p countPart) bool { return len(p.counts) == 0 })
}

func (r Report) printCounts(out io.Writer, _ show.Palette, isWide bool) error {
	for _, part := range r.countParts() {
		var rows [][]string
		for _, c := range part.counts {
			rows = append(rows, []string{c.words(), storms.Number(c.PerSecond), storms.Number(c.Peak), cut(c.Name, isWide)})
		}
		fmt.Fprintln(out)
		if err := show.Table(out, []string{"REQUESTS", "MEAN/S", "PEAK/S", strings.ToUpper(part.one)}, rows); err != nil {
			return err
		}
	}
	return nil
}

// cut shortens a long name to what a table has room for.
func cut(name string, isWide bool) string {
	const room = 60
	if isWide || utf8.RuneCountInString(name) <= room {
		return name
	}
	return string([]rune(name)[:room]) + "..."
}
