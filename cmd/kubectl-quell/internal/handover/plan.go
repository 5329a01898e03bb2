package handover

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/hduolab/quell/cmd/kubectl-quell/internal/cluster"
	"github.com/hduolab/quell/controller/fieldowners"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// attempts is how often a change is made anew on an object that changed in between.
const attempts = 4

// rule makes managedFields out of those of an object.
type rule func(*unstructured.Unstructured) ([]metav1.ManagedFieldsEntry, error)

// change is what is to be done to one object.
type change struct {
	object        cluster.Object
	before, after []metav1.ManagedFieldsEntry
	rule          rule
}

func newChange(o cluster.Object, r rule) (*change, error) {
	after, err := r(o.Unstructured)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cluster.Ref(o.Unstructured), err)
	}
	return &change{object: o, before: o.GetManagedFields(), after: after, rule: r}, nil
}

const nobody = "nobody"

// row is one field in the difference that a change makes.
type row struct{ path, from, to string }

func (c *change) rows() []row {
	before, after := fieldowners.Parse(c.before), fieldowners.Parse(c.after)
	var rows []row
	for _, m := range fieldowners.Diff(before, after) {
		from, to := m.Lost, m.Gained
		switch {
		case len(from) == 0: // all of both, or the old owners would seem to have lost it
			from, to = fieldowners.OwnersOf(before, m.Path), fieldowners.OwnersOf(after, m.Path)
		case len(to) == 0:
			to = fieldowners.OwnersOf(after, m.Path)
		}
		rows = append(rows, row{fieldowners.FormatPath(m.Path), names(from), names(to)})
	}
	for _, e := range before {
		_, stays := fieldowners.Find(after, e.Owner)
		if e.Unknown != nil && !stays {
			rows = append(rows, row{"(fields that cannot be read)", e.String(), nobody})
		}
	}
	return rows
}

func names(owners []fieldowners.Owner) string {
	if len(owners) == 0 {
		return nobody
	}
	return fieldowners.Join(owners)
}

// run patches the object. When it changed since it was read, it is read anew, and patched only if the difference would
// be the same that was shown.
func (c *change) run(dryRun bool) error {
	var refusal error
	for range attempts {
		patch, err := c.patch()
		if err != nil {
			return err
		}
		var result *unstructured.Unstructured
		result, refusal = cluster.JSONPatch(c.object.Info, patch, dryRun)
		if refusal == nil {
			return c.check(result)
		}
		if !apierrors.IsConflict(refusal) && !apierrors.IsInvalid(refusal) { // invalid is what a failed test of the uid is, too
			return refusal
		}
		version := c.object.GetResourceVersion()
		if err := c.renew(); err != nil {
			return err
		}
		if c.object.GetResourceVersion() == version { // it is the patch itself that is refused
			return refusal
		}
	}
	return fmt.Errorf("patch managedFields, %d times: %w", attempts, refusal)
}

// check compares what the API server made of the patch with what was meant. It drops entries in versions that it does not
// serve, and admission may write on the way.
func (c *change) check(result *unstructured.Unstructured) error {
	moves := fieldowners.Diff(fieldowners.Parse(c.after), fieldowners.Parse(result.GetManagedFields()))
	if len(moves) == 0 {
		return nil
	}
	return fmt.Errorf("the API server made other owners of it than was meant, of %s for one: see 'kubectl quell managers'", fieldowners.FormatPath(moves[0].Path))
}

func (c *change) renew() error {
	fresh, err := cluster.Get(c.object.Info, "")
	if err != nil {
		return fmt.Errorf("read it anew after a conflict: %w", err)
	}
	if fresh.GetUID() != c.object.GetUID() {
		return errors.New("it was deleted and created anew in between: nothing was changed")
	}
	renewed, err := newChange(cluster.Object{Unstructured: fresh, Info: c.object.Info}, c.rule)
	if err != nil {
		return err
	}
	if !slices.Equal(renewed.rows(), c.rows()) {
		return errors.New("its owners changed in between: nothing was changed; run the command again to see the new difference")
	}
	*c = *renewed
	return nil
}

// patch replaces managedFields. A uid that differs fails the test; a resourceVersion that differs, which a replaced one
// unlike a tested one makes a conflict, has the change tried again.
func (c *change) patch() ([]byte, error) {
	after := c.after
	if len(after) == 0 {
		after = []metav1.ManagedFieldsEntry{{}} // the API server takes [] for "as before" and [{}] for "none"
	}
	raw, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": c.object.GetUID()},
		{"op": "replace", "path": "/metadata/managedFields", "value": after},
		{"op": "replace", "path": "/metadata/resourceVersion", "value": c.object.GetResourceVersion()},
	})
	if err != nil {
		return nil, fmt.Errorf("encode the patch: %w", err)
	}
	return raw, nil
}
