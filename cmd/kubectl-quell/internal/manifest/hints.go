package manifest

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/hduolab/quell/cmd/kubectl-quell/internal/cluster"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/show"
	"github.com/hduolab/quell/controller/fieldowners"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// hints are about the field manager, on whose name everything depends: a name that nobody applied under yet has no field of its own.
type hints struct {
	apply cluster.Apply
	// isAssumed is whether the command line has no field manager.
	isAssumed bool
	// meant are the objects, by the manager who is more likely meant.
	meant map[string][]show.ObjectRef
}

// look takes in an object that exists.
func (h *hints) look(live *unstructured.Unstructured, entries []fieldowners.Entry) {
	if slices.ContainsFunc(entries, h.isKnown) {
		return
	}
	if other := h.likely(entries); other != "" {
		h.meant[other] = append(h.meant[other], show.RefOf(live))
	}
}

// isKnown reports whether an entry shows that the manager is one of the object's. A name that was typed may be that of an updater.
func (h *hints) isKnown(e fieldowners.Entry) bool {
	return managedBy(e.Owner, h.apply) || !h.isAssumed && e.Manager == h.apply.Manager
}

// likely is the applier of a similar name, else the only one, else none.
func (h *hints) likely(entries []fieldowners.Entry) string {
	var appliers []string
	for _, e := range entries {
		if e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == h.apply.Subresource && !slices.Contains(appliers, e.Manager) {
			appliers = append(appliers, e.Manager)
		}
	}
	similar := slices.DeleteFunc(slices.Clone(appliers), func(name string) bool { return !isSimilar(name, h.apply.Manager) })
	if len(similar) == 0 {
		similar = appliers
	}
	if len(similar) != 1 {
		return ""
	}
	return similar[0]
}

func (h *hints) print(out io.Writer) {
	for _, other := range slices.Sorted(maps.Keys(h.meant)) {
		objects := h.meant[other]
		where := show.Names(objects, func(r show.ObjectRef) show.ObjectRef { return r })[0]
		if more := len(objects) - 1; more > 0 {
			where += fmt.Sprintf(" and %d more", more)
		}
		fmt.Fprintf(out, "note: %q owns nothing of %s; unless it is a new manager, did you mean --field-manager %s?\n",
			h.apply.Manager, where, show.Escape(show.ShellWord(other)))
	}
	if h.isAssumed {
		fmt.Fprintf(out, "note: the field manager is %q, as with kubectl apply --server-side; --field-manager names another\n", h.apply.Manager)
	}
}

// isSimilar reports whether one name is a slip of the pen of the other, or a part of it.
func isSimilar(a, b string) bool {
	const slips, shortest = 2, 3
	a, b = strings.ToLower(a), strings.ToLower(b)
	if min(len(a), len(b)) < shortest {
		return a == b
	}
	return strings.Contains(a, b) || strings.Contains(b, a) || distance(a, b) <= min(slips, len(a)/shortest, len(b)/shortest)
}

// distance is Levenshtein's, in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0]++
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal, row[j+1] = row[j+1], min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
