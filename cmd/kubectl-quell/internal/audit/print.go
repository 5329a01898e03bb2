package audit

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hduolab/quell/cmd/kubectl-quell/internal/show"
	"github.com/hduolab/quell/controller/storm"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
	var levels []string
	for _, level := range slices.Sorted(maps.Keys(r.Levels)) {
		levels = append(levels, fmt.Sprintf("%d %s", r.Levels[level], show.Escape(level)))
	}
	return fmt.Sprintf("%s from %s to %s; %s", show.Count(int(r.Requests), "request"), r.From.UTC().Format(time.RFC3339),
		r.To.UTC().Format(time.RFC3339), strings.Join(levels, ", "))
}

func (r Report) printStorms(out io.Writer, palette show.Palette, isWide bool) error {
	if len(r.Storms) == 0 {
		_, err := fmt.Fprintln(out, "\nno write storm found")
		return err
	}
	fmt.Fprintln(out)
	heading := []string{"PEAK/S", "OBJECT", "MANAGER", "FIELDS", "VERDICT"}
	if isWide {
		heading = slices.Insert(heading, 4, "WRITES", "SAMPLES", "CONFIDENCE")
	}
	var rows [][]string
	for _, s := range r.Storms {
		row := []string{number(s.Peak), s.Object.words(), s.managers(), s.paths(), string(s.Verdict)}
		if isWide {
			row = slices.Insert(row, 4, strconv.FormatInt(s.Writes, 10), strconv.Itoa(s.Samples), number(s.Confidence))
		}
		rows = append(rows, row)
	}
	if err := show.Table(out, heading, rows); err != nil {
		return err
	}
	for _, s := range r.Storms {
		fmt.Fprintf(out, "\n%s: %s\n", show.Escape(s.Object.words()), palette.Warn(string(s.Verdict)))
		for _, line := range s.Evidence {
			fmt.Fprintln(out, "  "+show.Escape(line))
		}
		fmt.Fprintln(out, "  remedy: "+s.Remedy)
	}
	return nil
}

func (o Object) words() string {
	k := storm.Key{GroupResource: schema.GroupResource{Group: o.Group, Resource: o.Resource}, Namespace: o.Namespace, Name: o.Name}
	return k.String()
}

func (s Storm) managers() string {
	var names []string
	for _, w := range s.Writers {
		manager, how := w.Words()
		if manager == "" {
			manager = "<unknown>"
		}
		if how != "" {
			manager += " (" + how + ")"
		}
		if !slices.Contains(names, manager) {
			names = append(names, manager)
		}
	}
	return short(names)
}

func (s Storm) paths() string {
	var names []string
	for _, f := range s.Fields {
		names = append(names, f.Path)
	}
	return short(names)
}

// short is what a cell has room for; the report has all.
func short(names []string) string {
	const shown = 2
	if len(names) <= shown {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s, and %d more", strings.Join(names[:shown], ", "), len(names)-shown)
}

func (r Report) printFindings(out io.Writer, palette show.Palette, isWide bool) error {
	if len(r.Findings) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	var rows [][]string
	remedies := map[storm.Verdict]string{}
	for _, f := range r.Findings {
		object := f.Object.words()
		if f.Subresource != "" {
			object += " (" + f.Subresource + ")"
		}
		rows = append(rows, []string{number(f.Peak), f.Verb, object, f.User, cut(f.Agent, isWide), f.Evidence, string(f.Verdict)})
		remedies[f.Verdict] = f.Remedy
	}
	if err := show.Table(out, []string{"PEAK/S", "VERB", "OBJECT", "USER", "USER AGENT", "EVIDENCE", "VERDICT"}, rows); err != nil {
		return err
	}
	for _, v := range slices.Sorted(maps.Keys(remedies)) {
		fmt.Fprintf(out, "%s: remedy: %s\n", palette.Warn(string(v)), remedies[v])
	}
	return nil
}

func (r Report) printCounts(out io.Writer, _ show.Palette, isWide bool) error {
	for _, part := range []struct {
		name   string
		counts []Count
	}{{"USER", r.Users}, {"USER AGENT", r.Agents}, {"VERB", r.Verbs}, {"OBJECT", r.Objects}} {
		if len(part.counts) == 0 {
			continue
		}
		var rows [][]string
		for _, c := range part.counts {
			requests := strconv.FormatInt(c.Requests, 10)
			if c.Error > 0 {
				requests = fmt.Sprintf("%d..%d", c.Requests-c.Error, c.Requests)
			}
			rows = append(rows, []string{requests, number(c.PerSecond), number(c.Peak), cut(c.Name, isWide)})
		}
		fmt.Fprintln(out)
		if err := show.Table(out, []string{"REQUESTS", "MEAN/S", "PEAK/S", part.name}, rows); err != nil {
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

func number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
