package fieldowners

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Owner identifies one entry of metadata.managedFields.
type Owner struct {
	// Manager is the field manager's name.
	Manager string
	// Operation is Apply (server-side apply) or Update (every other write).
	Operation metav1.ManagedFieldsOperationType
	// Subresource is the subresource that was written through, "" for the object itself.
	Subresource string
	// APIVersion is the version in which the entry's field set is to be read.
	APIVersion string
}

// String gives the owner in words, for example `kubectl-edit (Update, status)`.
func (o Owner) String() string {
	switch {
	case o.Operation == "" && o.Subresource == "":
		return fmt.Sprintf("%q", o.Manager)
	case o.Subresource == "":
		return fmt.Sprintf("%q (%s)", o.Manager, o.Operation)
	case o.Operation == "":
		return fmt.Sprintf("%q (%s)", o.Manager, o.Subresource)
	}
	return fmt.Sprintf("%q (%s, %s)", o.Manager, o.Operation, o.Subresource)
}

// Same reports whether two owners are one writer to the API server, which lets an applier's entry change its API version.
func (o Owner) Same(other Owner) bool {
	if o.Operation == metav1.ManagedFieldsOperationApply {
		o.APIVersion, other.APIVersion = "", ""
	}
	return o == other
}

// Entry is one decoded entry of metadata.managedFields.
type Entry struct {
	Owner
	// Time of the owner's last change, nil where the server recorded none; its resolution is one second.
	Time *metav1.Time
	// Fields are the owned paths; empty, never nil, when Unknown is set.
	Fields *fieldpath.Set
	// Unknown tells why Fields could not be read: no fieldsV1, another fields type, or broken content. Nil otherwise.
	Unknown error
}

var errNoFields = errors.New("entry has no fieldsV1")

// Parse decodes managedFields in their order. It never fails as a whole: an entry that cannot be read comes back with
// Unknown set and no fields.
func Parse(managed []metav1.ManagedFieldsEntry) []Entry {
	entries := make([]Entry, 0, len(managed))
	for i := range managed {
		entries = append(entries, parseEntry(&managed[i]))
	}
	return entries
}

func parseEntry(m *metav1.ManagedFieldsEntry) Entry {
	e := Entry{Owner: OwnerOf(m), Time: m.Time}
	e.Fields, e.Unknown = decode(m)
	if e.Unknown != nil {
		e.Fields = fieldpath.NewSet()
	}
	return e
}

// OwnerOf gives the identity of an undecoded entry.
func OwnerOf(m *metav1.ManagedFieldsEntry) Owner {
	return Owner{Manager: m.Manager, Operation: m.Operation, Subresource: m.Subresource, APIVersion: m.APIVersion}
}

func decode(m *metav1.ManagedFieldsEntry) (fields *fieldpath.Set, err error) {
	if m.FieldsV1 == nil || len(m.FieldsV1.GetRawBytes()) == 0 {
		return nil, errNoFields
	}
	if m.FieldsType != "" && m.FieldsType != "FieldsV1" {
		return nil, fmt.Errorf("unknown fieldsType %q", m.FieldsType)
	}
	// The decoder of structured-merge-diff is not written for hostile input; an inspection tool reads whatever is there.
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("decode fieldsV1: %v", r)
		}
	}()
	fields = fieldpath.NewSet()
	if err := fields.FromJSON(m.FieldsV1.GetRawReader()); err != nil {
		return nil, fmt.Errorf("decode fieldsV1: %w", err)
	}
	return fields, nil
}

// Find returns the entry of an owner (see Owner.Same), or false. Set operation, subresource and manager; the API version
// counts for Update entries only.
func Find(entries []Entry, owner Owner) (Entry, bool) {
	for _, e := range entries {
		if e.Same(owner) {
			return e, true
		}
	}
	return Entry{}, false
}

// OwnersOf returns the owners of exactly this path, in the order of the entries; nil when nobody known owns it. An atomic
// list or map is owned as a whole, by its own path.
func OwnersOf(entries []Entry, path fieldpath.Path) []Owner {
	var owners []Owner
	for _, e := range entries {
		if e.Fields.Has(path) {
			owners = append(owners, e.Owner)
		}
	}
	return owners
}
