package handover

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/hduolab/quell/cmd/kubectl-quell/internal/show"
	"github.com/hduolab/quell/controller/fieldowners"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const backupKind = "OwnershipBackup"

// Backup is a file from which restore puts managedFields back.
type Backup struct {
	APIVersion string       `json:"apiVersion"`
	Kind       string       `json:"kind"`
	Items      []BackupItem `json:"items"`
}

// BackupItem is one object, as it was and as it was made.
type BackupItem struct {
	Object show.ObjectRef              `json:"object"`
	Before []metav1.ManagedFieldsEntry `json:"before"`
	After  []metav1.ManagedFieldsEntry `json:"after"`
}

// writeBackup writes a new file; it never replaces one.
func writeBackup(path string, changes []*change) error {
	backup := Backup{APIVersion: show.APIVersion, Kind: backupKind}
	for _, c := range changes {
		backup.Items = append(backup.Items, BackupItem{show.RefOf(c.object.Unstructured), c.before, c.after})
	}
	raw, err := yaml.Marshal(backup)
	if err != nil {
		return fmt.Errorf("encode the backup: %w", err)
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists, and a backup never replaces a file: name another with --backup, or move it away; nothing was changed", path)
	} else if err != nil {
		return fmt.Errorf("write the backup: %w; nothing was changed", err)
	}
	_, err = file.Write(raw)
	if err = errors.Join(err, file.Close()); err != nil { // a part of a backup is none, and would be in the way of the next one
		return errors.Join(fmt.Errorf("write the backup: %w; nothing was changed", err), os.Remove(path))
	}
	return nil
}

// readBackup reads a file, or in as what is called the standard input.
func readBackup(in io.Reader, path string) (Backup, error) {
	var (
		backup Backup
		raw    []byte
		err    error
	)
	if path == stdin {
		path = "standard input"
		raw, err = io.ReadAll(in)
	} else {
		raw, err = os.ReadFile(path)
	}
	if err != nil {
		return backup, fmt.Errorf("read the backup: %w", err)
	}
	var kind metav1.TypeMeta // first, as another kind has other fields
	if err := yaml.Unmarshal(raw, &kind); err != nil {
		return backup, fmt.Errorf("read the backup %s: %w", path, err)
	}
	if kind.Kind != backupKind || kind.APIVersion != show.APIVersion {
		return backup, fmt.Errorf("%s is no %s of %s, but %q of %q", path, backupKind, show.APIVersion, kind.Kind, kind.APIVersion)
	}
	if err := yaml.UnmarshalStrict(raw, &backup); err != nil {
		return backup, fmt.Errorf("read the backup %s: %w", path, err)
	}
	if len(backup.Items) == 0 {
		return backup, fmt.Errorf("the backup %s has no items, so there is nothing to put back", path)
	}
	return backup, nil
}

// object is a manifest by which the object can be found.
func (i BackupItem) object() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(i.Object.APIVersion)
	u.SetKind(i.Object.Kind)
	u.SetNamespace(i.Object.Namespace)
	u.SetName(i.Object.Name)
	return u
}

var (
	errReplaced = errors.New("it was deleted and created anew since the backup")
	errMoved    = errors.New("what was handed over has moved on since the backup, so it cannot be put back")
	errAsBefore = errors.New("it is as it was before the backup")
)

// restored is the rule that puts back what was changed. Entries of others stay as they are now; one that was changed must be as
// it was left. It is errAsBefore when nothing is left to do, because the change or a restore before this one failed half-way.
func (i BackupItem) restored(live *unstructured.Unstructured) ([]metav1.ManagedFieldsEntry, error) {
	if string(live.GetUID()) != i.Object.UID {
		return nil, errReplaced
	}
	current := live.GetManagedFields()
	changed := i.changed()
	moved := func(to []metav1.ManagedFieldsEntry) int {
		return slices.IndexFunc(changed, func(e metav1.ManagedFieldsEntry) bool { return !isSame(find(current, e), find(to, e)) })
	}
	if moved(i.Before) < 0 {
		return nil, errAsBefore
	}
	if at := moved(i.After); at >= 0 {
		return nil, fmt.Errorf("%s: %w", fieldowners.OwnerOf(&changed[at]), errMoved)
	}
	entries := []metav1.ManagedFieldsEntry{}
	for _, e := range current {
		if find(changed, e) == nil {
			entries = append(entries, e)
		} else if before := find(i.Before, e); before != nil {
			entries = append(entries, *before)
		}
	}
	for _, b := range i.Before {
		if find(changed, b) != nil && find(current, b) == nil {
			entries = append(entries, b)
		}
	}
	return entries, nil
}

// changed are the entries of those whose fields the backup's command changed, before it or else after it.
func (i BackupItem) changed() []metav1.ManagedFieldsEntry {
	return slices.DeleteFunc(slices.Concat(i.Before, i.After), func(e metav1.ManagedFieldsEntry) bool {
		return isSame(find(i.Before, e), find(i.After, e))
	})
}

func find(entries []metav1.ManagedFieldsEntry, like metav1.ManagedFieldsEntry) *metav1.ManagedFieldsEntry {
	for i := range entries {
		if fieldowners.OwnerOf(&entries[i]) == fieldowners.OwnerOf(&like) {
			return &entries[i]
		}
	}
	return nil
}

// isSame reports whether two entries of one owner have the same fields, or neither exists.
func isSame(a, b *metav1.ManagedFieldsEntry) bool {
	if a == nil || b == nil {
		return a == b
	}
	one, two := fieldowners.Parse([]metav1.ManagedFieldsEntry{*a})[0], fieldowners.Parse([]metav1.ManagedFieldsEntry{*b})[0]
	return (one.Unknown == nil) == (two.Unknown == nil) && one.Fields.Equals(two.Fields)
}
