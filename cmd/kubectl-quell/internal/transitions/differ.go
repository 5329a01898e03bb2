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

// differ finds the fields whose owners differ between one version and the next.
type differ struct {
	// tell takes them, after each version that is another one than before.
	tell func(*unstructured.Unstructured, []Item) error
	last *unstructured.Unstructured
	// isTracked is whether any version had managedFields.
	isTracked bool
}

// next takes the next version. The same one again says nothing; another object of the same name starts anew. The error tells
// of an object of another name, or is that of tell.
func (d *differ) next(u *unstructured.Unstructured, when time.Time) error {
	last := d.last
	if last != nil && cluster.Ref(last) != cluster.Ref(u) {
		return fmt.Errorf("%s and %s are two objects; give the versions of one", cluster.Ref(last), cluster.Ref(u))
	}
	d.last = u
	d.isTracked = d.isTracked || len(u.GetManagedFields()) > 0
	if last == nil {
		return d.tell(u, nil)
	}
	if last.GetResourceVersion() == u.GetResourceVersion() && u.GetResourceVersion() != "" {
		return nil
	}
	if last.GetUID() != u.GetUID() {
		anew := newItem(u, when)
		anew.Recreated = true
		return d.tell(u, []Item{anew})
	}
	return d.tell(u, compare(last, u, when))
}

func compare(last, u *unstructured.Unstructured, when time.Time) []Item {
	var items []Item
	before, after := show.MaskSecret(last).Object, show.MaskSecret(u).Object
	for _, m := range fieldowners.Diff(fieldowners.Parse(last.GetManagedFields()), fieldowners.Parse(u.GetManagedFields())) {
		i := newItem(u, when)
		i.Path, i.Gained, i.Lost, i.move = fieldowners.FormatPath(m.Path), owners(m.Gained), owners(m.Lost), m
		i.Before, i.wasThere = fieldowners.Value(before, m.Path)
		i.After, i.isThere = fieldowners.Value(after, m.Path)
		items = append(items, i)
	}
	return items
}

// printer writes a line for each item.
type printer struct {
	out     io.Writer
	palette show.Palette
}

func (p printer) tell(_ *unstructured.Unstructured, items []Item) error {
	for _, i := range items {
		if _, err := fmt.Fprintln(p.out, i.when()+"  "+p.line(i)); err != nil {
			return err
		}
	}
	return nil
}

func (i Item) when() string {
	if i.Time == nil {
		return show.UnknownTime
	}
	return i.Time.UTC().Format(time.RFC3339)
}

func (p printer) line(i Item) string {
	if i.Recreated {
		return p.palette.Warn("the object was deleted and created anew")
	}
	line := p.palette.Of(names(i.move), i.Path) + "  " + show.Escape(inWords(i.move))
	values := show.Values(show.Compared{Value: i.Before, Found: i.wasThere}, show.Compared{Value: i.After, Found: i.isThere})
	if values[0] != values[1] {
		line += "  " + values[0] + " -> " + values[1]
	}
	return line
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
