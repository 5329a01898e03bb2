package transitions

import (
	"fmt"
	"io"
	"time"

	"github.com/hduolab/quell/cmd/kubectl-quell/internal/cluster"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/show"
	"github.com/hduolab/quell/controller/fieldowners"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// differ writes a line for each field whose owners differ between one version and the next.
type differ struct {
	out     io.Writer
	palette show.Palette
	last    *unstructured.Unstructured
	// isTracked is whether any version had managedFields.
	isTracked bool
}

// next takes the next version. The same one again says nothing; another object of the same name starts anew. The error tells
// of an object of another name, or of a line that could not be written.
func (d *differ) next(u *unstructured.Unstructured, when time.Time) error {
	last := d.last
	if last != nil && cluster.Ref(last) != cluster.Ref(u) {
		return fmt.Errorf("%s and %s are two objects; give the versions of one", cluster.Ref(last), cluster.Ref(u))
	}
	d.last = u
	d.isTracked = d.isTracked || len(u.GetManagedFields()) > 0
	if last == nil || last.GetResourceVersion() == u.GetResourceVersion() && u.GetResourceVersion() != "" {
		return nil
	}
	if last.GetUID() != u.GetUID() {
		return d.say(when, d.palette.Warn("the object was deleted and created anew"))
	}
	return d.compare(last, u, when)
}

func (d *differ) compare(last, u *unstructured.Unstructured, when time.Time) error {
	moves := fieldowners.Diff(fieldowners.Parse(last.GetManagedFields()), fieldowners.Parse(u.GetManagedFields()))
	for _, m := range moves {
		before, wasThere := fieldowners.Value(show.MaskSecret(last).Object, m.Path)
		after, isThere := fieldowners.Value(show.MaskSecret(u).Object, m.Path)
		line := d.palette.Of(names(m), fieldowners.FormatPath(m.Path)) + "  " + show.Escape(inWords(m))
		if was, is := show.Value(before, wasThere), show.Value(after, isThere); was != is {
			line += "  " + was + " -> " + is
		}
		if err := d.say(when, line); err != nil {
			return err
		}
	}
	return nil
}

func (d *differ) say(when time.Time, line string) error {
	_, err := fmt.Fprintln(d.out, when.UTC().Format(time.RFC3339)+"  "+line)
	return err
}

func names(m fieldowners.Move) string {
	if len(m.Gained) > 0 {
		return m.Gained[0].Manager
	}
	return m.Lost[0].Manager
}

func inWords(m fieldowners.Move) string {
	takes, loses := " takes it", " loses it"
	if len(m.Gained) > 1 {
		takes = " take it"
	}
	if len(m.Lost) > 1 {
		loses = " lose it"
	}
	switch {
	case len(m.Lost) == 0:
		return fieldowners.Join(m.Gained) + takes
	case len(m.Gained) == 0:
		return fieldowners.Join(m.Lost) + loses
	}
	return fieldowners.Join(m.Gained) + takes + " from " + fieldowners.Join(m.Lost)
}

// latest is when a version in a file was written, as far as its managedFields tell.
func latest(u *unstructured.Unstructured) time.Time {
	var latest time.Time
	for _, e := range u.GetManagedFields() {
		if e.Time != nil && latest.Before(e.Time.Time) {
			latest = e.Time.Time
		}
	}
	return latest
}
