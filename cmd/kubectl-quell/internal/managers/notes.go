package managers

import (
	"fmt"
	"strings"

	"github.com/hduolab/quell/cmd/kubectl-quell/internal/cluster"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/show"
	"github.com/hduolab/quell/controller/fieldowners"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Reasons of notes.
const (
	lost           = "ManagedFieldsLost"
	leftOut        = "ManagedFieldsLeftOut"
	unreadable     = "Unreadable"
	unserved       = "VersionNotServed"
	otherVersion   = "OtherVersion"
	staleClient    = "StaleClientSideApply"
	updateAndApply = "UpdateBesideApply"
	beforeFirst    = "BeforeFirstApply"
	ancient        = "AncientChanges"
	large          = "Large"
)

const (
	clientSide = "kubectl-client-side-apply"
	serverSide = "kubectl"
	// largeEntry and manyEntries are where managedFields begin to weigh on every read and cache: an object may have
	// 1.5 MiB in all, and the API server merges entries of updates beyond ten but never those of applies.
	largeEntry  = 32 << 10
	manyEntries = 50
)

// Note is something about an entry, or the object's entries together, that is not as it should be.
type Note struct {
	Reason string `json:"reason"`
	// Manager whose entry it is about; empty when it is about all of them.
	Manager string `json:"manager,omitempty"`
	Message string `json:"message"`
	// Fix is the command that mends it, where one does.
	Fix string `json:"fix,omitempty"`
}

// judge finds the notes of one object.
type judge struct {
	object  cluster.Object
	entries []fieldowners.Entry
	// sizes are the bytes of each entry's field set.
	sizes []int
	// isServed tells whether the API server still serves the object's kind in a version.
	isServed func(cluster.Object, string) bool
}

func (j judge) notes() []Note {
	if len(j.entries) == 0 && !j.object.IsLive() {
		return []Note{{Reason: leftOut, Message: "no managedFields in the file: kubectl get -o yaml writes them with --show-managed-fields only"}}
	}
	if len(j.entries) == 0 {
		return []Note{{Reason: lost, Message: "no managedFields: they were cleared, or lost in a failed conversion; the next apply makes everything belong to before-first-apply"}}
	}
	var notes []Note
	for i, e := range j.entries {
		for _, check := range []func(fieldowners.Entry, int) (Note, bool){j.unreadable, j.version, j.name, j.twice, j.size} {
			if note, found := check(e, j.sizes[i]); found {
				note.Manager = e.Manager
				notes = append(notes, note)
			}
		}
	}
	if len(j.entries) > manyEntries {
		notes = append(notes, Note{Reason: large, Message: fmt.Sprintf("%d entries: let each tool apply under one constant field manager, not one for each Pod or run", len(j.entries))})
	}
	return notes
}

func (j judge) unreadable(e fieldowners.Entry, _ int) (Note, bool) {
	if e.Unknown == nil {
		return Note{}, false
	}
	return Note{Reason: unreadable, Message: fmt.Sprintf("the entry of %s cannot be read: %v", e, e.Unknown)}, true
}

func (j judge) version(e fieldowners.Entry, _ int) (Note, bool) {
	switch {
	case e.APIVersion == j.object.GetAPIVersion() || e.APIVersion == "":
		return Note{}, false
	case !j.object.IsLive() || j.isServed(j.object, e.APIVersion):
		return Note{Reason: otherVersion, Message: fmt.Sprintf("the entry of %s is in %s", e, e.APIVersion)}, true
	}
	return Note{
		Reason:  unserved,
		Message: fmt.Sprintf("the entry of %s is in %s, which is not served any more: every apply to this object fails", e, e.APIVersion),
		Fix:     j.command("release", "--manager", show.ListItem(e.Manager), "--api-version", e.APIVersion),
	}, true
}

func (j judge) name(e fieldowners.Entry, _ int) (Note, bool) {
	switch {
	case e.Manager == "before-first-apply":
		return Note{
			Reason:  beforeFirst,
			Message: "before-first-apply holds what was there when managedFields were empty: an applier that leaves such a field out does not remove it",
			Fix:     j.command("release", "--manager", e.Manager),
		}, true
	case e.Manager == "ancient-changes":
		return Note{Reason: ancient, Message: "ancient-changes holds what the API server merged of more than ten updating managers"}, true
	case e.Manager == clientSide && e.Operation == metav1.ManagedFieldsOperationUpdate && j.applies(serverSide, e.Subresource):
		return Note{
			Reason:  staleClient,
			Message: "client-side kubectl apply owns fields beside server-side kubectl apply, so fields that a manifest leaves out stay" + j.lastApplied(),
			Fix:     j.command("transfer", "--from", clientSide, "--to", serverSide),
		}, true
	}
	return Note{}, false
}

func (j judge) lastApplied() string {
	if _, found := j.object.GetAnnotations()[corev1.LastAppliedConfigAnnotation]; found {
		return "; the annotation " + corev1.LastAppliedConfigAnnotation + " is there still"
	}
	return ""
}

// twice finds managers that update and apply: what they own by update they never remove by leaving it out of an apply.
func (j judge) twice(e fieldowners.Entry, _ int) (Note, bool) {
	if e.Operation != metav1.ManagedFieldsOperationUpdate || !j.applies(e.Manager, e.Subresource) {
		return Note{}, false
	}
	args := []string{"transfer", "--from", show.ListItem(e.Manager), "--operation", "Update", "--to", e.Manager}
	if e.Subresource != "" {
		args = append(args, "--subresource", e.Subresource)
	}
	return Note{
		Reason:  updateAndApply,
		Message: fmt.Sprintf("%q owns fields by updates and by applies: those of the updates are never removed by an apply that leaves them out", e.Manager),
		Fix:     j.command(args...),
	}, true
}

func (j judge) size(e fieldowners.Entry, size int) (Note, bool) {
	if size < largeEntry {
		return Note{}, false
	}
	return Note{Reason: large, Message: fmt.Sprintf("the entry of %s takes %d KiB of the object", e, size>>10)}, true
}

func (j judge) applies(manager, subresource string) bool {
	_, found := fieldowners.Find(j.entries, fieldowners.Owner{
		Manager: manager, Subresource: subresource, Operation: metav1.ManagedFieldsOperationApply,
	})
	return found
}

// command is a command line of kubectl quell for the object, to be copied into a shell.
func (j judge) command(args ...string) string {
	words := []string{"kubectl", "quell", args[0], j.object.Info.ObjectName()}
	if !j.object.IsLive() {
		words[3] = show.RefOf(j.object.Unstructured).TypeName()
	}
	if ns := j.object.GetNamespace(); ns != "" {
		words = append(words, "-n", ns)
	}
	words = append(words, args[1:]...)
	for i := range words {
		words[i] = show.ShellWord(words[i])
	}
	return strings.Join(words, " ")
}
