package storm

import (
	"bytes"

	"github.com/hduolab/quell/controller/fieldowners"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// unknown is the writer of a change that managedFields do not tell.
var unknown = fieldowners.Owner{}

// writerOf tells who made a version: the owner of the entry that is new, has gained fields or has got a newer time. Within
// one second a writer's entry may stay as it is; then it is the only owner of all that changed. isLikely marks what is inferred
// so. The last resort, where nothing but the owners is known, is the entry with the newest time.
func writerOf(older, newer []fieldowners.Entry, changed []fieldpath.Path, seesValues bool) (writer fieldowners.Owner, isLikely bool) {
	for _, e := range newer {
		before, found := fieldowners.Find(older, e.Owner)
		if !found || isNewer(e.Time, before.Time) || e.APIVersion != before.APIVersion || !e.Fields.Difference(before.Fields).Empty() {
			return e.Owner, false
		}
	}
	if owner, found := soleOwner(older, changed); found {
		shrunk, stays := fieldowners.Find(newer, owner)
		before, _ := fieldowners.Find(older, owner)
		if stays && before.Fields.Difference(shrunk.Fields).Empty() {
			return owner, true
		}
		return unknown, false // the field was taken away, which its owner and anybody else can do
	}
	if seesValues && len(changed) > 0 || shrank(older, newer) {
		return unknown, false
	}
	return newest(newer)
}

func isNewer(a, b *metav1.Time) bool { return a != nil && (b == nil || b.Before(a)) }

// soleOwner is the only one who owns all of the paths.
func soleOwner(entries []fieldowners.Entry, paths []fieldpath.Path) (owner fieldowners.Owner, found bool) {
	for i, p := range paths {
		owners := nearestOwners(entries, p)
		if len(owners) != 1 || i > 0 && owners[0] != owner {
			return unknown, false
		}
		owner, found = owners[0], true
	}
	return owner, found
}

// nearestOwners own a path, else parts of it, as of a list whose order changed, else the closest value around it, which then
// is atomic or newly filled.
func nearestOwners(entries []fieldowners.Entry, p fieldpath.Path) []fieldowners.Owner {
	owners := fieldowners.OwnersOf(entries, p)
	if len(owners) == 0 {
		owners = ownersBelow(entries, p)
	}
	for n := len(p) - 1; n > 0 && len(owners) == 0; n-- {
		owners = fieldowners.OwnersOf(entries, p[:n])
	}
	return owners
}

func ownersBelow(entries []fieldowners.Entry, p fieldpath.Path) []fieldowners.Owner {
	var owners []fieldowners.Owner
	for _, e := range entries {
		parts := e.Fields
		for _, element := range p {
			parts = parts.WithPrefix(element)
		}
		if !parts.Empty() {
			owners = append(owners, e.Owner)
		}
	}
	return owners
}

func shrank(older, newer []fieldowners.Entry) bool {
	for _, e := range older {
		after, _ := fieldowners.Find(newer, e.Owner)
		if after.Fields == nil || !e.Fields.Difference(after.Fields).Empty() {
			return true
		}
	}
	return false
}

// newest is the owner of the only entry with the latest time.
func newest(entries []fieldowners.Entry) (owner fieldowners.Owner, isLikely bool) {
	var latest *metav1.Time
	for _, e := range entries {
		switch {
		case e.Time == nil:
		case isNewer(e.Time, latest):
			latest, owner = e.Time, e.Owner
		case e.Time.Equal(latest):
			owner = unknown
		}
	}
	return owner, owner != unknown
}

// newestOf is newest for entries that are not decoded, which is enough for objects that are not hot.
func newestOf(managed []metav1.ManagedFieldsEntry) fieldowners.Owner {
	entries := make([]fieldowners.Entry, len(managed))
	for i := range managed {
		entries[i] = fieldowners.Entry{Owner: fieldowners.OwnerOf(&managed[i]), Time: managed[i].Time}
	}
	owner, _ := newest(entries)
	return owner
}

// parse decodes managedFields and takes over from the version before whatever did not change.
func parse(managed, before []metav1.ManagedFieldsEntry, entries []fieldowners.Entry) []fieldowners.Entry {
	parsed := make([]fieldowners.Entry, len(managed))
	for i := range managed {
		if i < len(before) && isSameFields(&managed[i], &before[i]) {
			parsed[i] = entries[i]
			parsed[i].Owner, parsed[i].Time = fieldowners.OwnerOf(&managed[i]), managed[i].Time
			continue
		}
		parsed[i] = fieldowners.Parse(managed[i : i+1])[0]
	}
	return parsed
}

func isSameFields(a, b *metav1.ManagedFieldsEntry) bool {
	if a.FieldsV1 == nil || b.FieldsV1 == nil || a.FieldsType != b.FieldsType {
		return false
	}
	return bytes.Equal(a.FieldsV1.GetRawBytes(), b.FieldsV1.GetRawBytes())
}
