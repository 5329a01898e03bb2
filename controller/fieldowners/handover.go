package fieldowners

import (
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Below returns the members of a set that are one of these paths or lie below one. Without paths that is the whole set.
func Below(set *fieldpath.Set, paths []fieldpath.Path) *fieldpath.Set {
	if len(paths) == 0 {
		return set
	}
	found := fieldpath.NewSet()
	set.Iterate(func(p fieldpath.Path) {
		if slices.ContainsFunc(paths, func(top fieldpath.Path) bool { return len(p) >= len(top) && p[:len(top)].Equals(top) }) {
			found.Insert(p)
		}
	})
	return found
}

// Handover says what to take from whom, and to whom to give it.
type Handover struct {
	// From chooses the entries to take from.
	From func(Owner) bool
	// Paths limit what is taken to these paths and what lies below; none means everything.
	Paths []fieldpath.Path
	// To is the manager that gets it, as an applier through the same subresource; "" gives it to nobody.
	To string
}

// ErrNothing is returned when no chosen entry owns any of the fields.
var ErrNothing = errors.New("no chosen manager owns any of these fields")

// Apply returns managedFields after the handover; the given ones are not changed. Entries that lose all fields disappear,
// and the time of an entry that gains some is that of the latest one involved. No value of the object is concerned.
//
// The error is ErrNothing, or tells of an entry that cannot be read, or of two entries in different API versions whose
// field sets cannot be united.
func (h Handover) Apply(managed []metav1.ManagedFieldsEntry) ([]metav1.ManagedFieldsEntry, error) {
	m := mover{Handover: h, gains: map[string]*gain{}}
	for i := range managed {
		if err := m.take(&managed[i]); err != nil {
			return nil, err
		}
	}
	if len(m.gains) == 0 {
		return nil, ErrNothing
	}
	if h.To == "" {
		return m.kept, nil
	}
	return m.give()
}

// gain is what one applier is to get; there is one for each subresource, since an entry has but one.
type gain struct {
	Entry
	from Owner
}

type mover struct {
	Handover
	kept  []metav1.ManagedFieldsEntry
	gains map[string]*gain
}

func (m *mover) isTarget(o Owner) bool {
	return o.Manager == m.To && o.Operation == metav1.ManagedFieldsOperationApply
}

// take keeps an entry without the fields that are handed over.
func (m *mover) take(e *metav1.ManagedFieldsEntry) error {
	owner := OwnerOf(e)
	if !m.From(owner) || m.To != "" && m.isTarget(owner) {
		m.kept = append(m.kept, *e)
		return nil
	}
	decoded := parseEntry(e)
	if decoded.Unknown != nil {
		if m.To == "" && len(m.Paths) == 0 { // an entry that goes as a whole need not be understood
			m.gains[owner.Subresource] = &gain{Entry: decoded, from: owner}
			return nil
		}
		return fmt.Errorf("entry of %s: %w", owner, decoded.Unknown)
	}
	taken := Below(decoded.Fields, m.Paths)
	if taken.Empty() {
		m.kept = append(m.kept, *e)
		return nil
	}
	if rest := decoded.Fields.Difference(taken); !rest.Empty() {
		kept, err := encode(*e, rest)
		if err != nil {
			return err
		}
		m.kept = append(m.kept, kept)
	}
	decoded.Fields = taken
	return m.gain(decoded)
}

func (m *mover) gain(e Entry) error {
	g := m.gains[e.Subresource]
	if g == nil {
		m.gains[e.Subresource] = &gain{Entry: e, from: e.Owner}
		return nil
	}
	return g.unite(e)
}

func (g *gain) unite(e Entry) error {
	if g.APIVersion != e.APIVersion {
		return fmt.Errorf("the entries of %s in %s and %s in %s cannot be united: hand over one at a time, the old one after its manager wrote in the new version", g.from, g.APIVersion, e.Owner, e.APIVersion)
	}
	g.Fields = g.Fields.Union(e.Fields)
	if g.Time == nil || e.Time != nil && g.Time.Before(e.Time) {
		g.Time = e.Time
	}
	return nil
}

// give unites what was taken with the entries of the target, or adds new ones at the end.
func (m *mover) give() ([]metav1.ManagedFieldsEntry, error) {
	for i := range m.kept {
		g := m.gains[m.kept[i].Subresource]
		if g == nil || !m.isTarget(OwnerOf(&m.kept[i])) {
			continue
		}
		own := parseEntry(&m.kept[i])
		if own.Unknown != nil {
			return nil, fmt.Errorf("entry of %s: %w", own.Owner, own.Unknown)
		}
		if err := g.unite(own); err != nil {
			return nil, err
		}
		m.kept[i].Time = g.Time
		united, err := encode(m.kept[i], g.Fields)
		if err != nil {
			return nil, err
		}
		m.kept[i] = united
		delete(m.gains, own.Subresource)
	}
	return m.add()
}

func (m *mover) add() ([]metav1.ManagedFieldsEntry, error) {
	subresources := make([]string, 0, len(m.gains))
	for s := range m.gains {
		subresources = append(subresources, s)
	}
	slices.Sort(subresources)
	for _, s := range subresources {
		g := m.gains[s]
		added, err := encode(metav1.ManagedFieldsEntry{
			Manager: m.To, Operation: metav1.ManagedFieldsOperationApply, Subresource: s,
			APIVersion: g.APIVersion, Time: g.Time, FieldsType: "FieldsV1",
		}, g.Fields)
		if err != nil {
			return nil, err
		}
		m.kept = append(m.kept, added)
	}
	return m.kept, nil
}

func encode(e metav1.ManagedFieldsEntry, fields *fieldpath.Set) (metav1.ManagedFieldsEntry, error) {
	raw, err := fields.ToJSON()
	if err != nil {
		return e, fmt.Errorf("encode the fields of %s: %w", OwnerOf(&e), err)
	}
	e.FieldsV1 = metav1.NewFieldsV1(string(raw))
	return e, nil
}
