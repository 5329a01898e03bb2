package ssa

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hduolab/quell/controller/fieldowners"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Outcome is what became of one call.
type Outcome string

// The outcomes. Result.Sent tells whether an apply was sent and accepted.
const (
	// Unchanged: the object is as desired, but for what StatusOptions call incidental; nothing was sent.
	Unchanged Outcome = "Unchanged"
	// Created: the object did not exist, as far as the caller knew, and was applied.
	Created Outcome = "Created"
	// Applied: the request was sent and the object has another version than the caller saw.
	Applied Outcome = "Applied"
	// NoOp: the request was sent and the API server found nothing to change.
	NoOp Outcome = "NoOp"
	// Gone: the object does not exist any more; nothing was written.
	Gone Outcome = "Gone"
	// Replaced: the object that was written is not the one that the caller saw, but a later one of the same name.
	Replaced Outcome = "Replaced"
	// DoesNotStick: the API server accepts the content and does not keep it, or keeps a list in another order; Reasons has the paths.
	DoesNotStick Outcome = "DoesNotStick"
	// Contended: other writers keep taking fields back; they are repaired once after each pause only, and the outcome stays
	// until they have left them alone for a while. Reasons are those of the fight.
	Contended Outcome = "Contended"
	// SelfChurn: the content changes although its inputs do not; nothing is sent until RetryAfter has passed.
	SelfChurn Outcome = "SelfChurn"
	// Throttled: the object is written more often than Options.Limit allows; nothing is sent until RetryAfter has passed.
	Throttled Outcome = "Throttled"
	// Settling: only details changed shortly after the last write; nothing is sent until RetryAfter has passed.
	Settling Outcome = "Settling"
	// Conflicted: other managers own fields with other values, for which Intent.Rules say Report; nothing was written.
	Conflicted Outcome = "Conflicted"
	// Stale: Intent.Live is not the object as it is now, although the call was to be exact, or the call was tentative; nothing was
	// written. Read anew what Desired was computed from, past the cache, and call again; when RetryAfter is set, not before it
	// has passed.
	Stale Outcome = "Stale"
)

// outcomeError counts calls that ended in an error.
const outcomeError Outcome = "Error"

// Change says why a path had to be written.
type Change string

// The kinds of change.
const (
	// Added: we did not own the path, and nobody else does.
	Added Change = "added"
	// Changed: we own the path with another value.
	Changed Change = "changed"
	// Removed: we own the path and do not want it any more.
	Removed Change = "removed"
	// Taken: others own the path with another value, and we do not.
	Taken Change = "taken"
	// Shared: others own the path with the value that we want, and we do not yet.
	Shared Change = "shared"
	// Moved: we own all items of the list, in another order. The path is that of the outermost such list.
	Moved Change = "in another order"
	// InTheWay: others own the path, which we do not want, and the API server refuses what we want beside it.
	InTheWay Change = "in the way, cleared"
	// Yielded: others own the path with another value, which stands.
	Yielded Change = "yielded"
	// Lost: the path was sent and is not in the API server's answer.
	Lost Change = "does not stick"
)

// Reason is one path that made a write necessary.
type Reason struct {
	Change Change
	// Path as fieldowners.FormatPath writes it, for example .status.conditions[type="Ready"].reason.
	Path string
	// Owners have the path instead of us; set for Taken, Shared, InTheWay and Yielded.
	Owners []fieldowners.Owner
}

// String gives the reason in words.
func (r Reason) String() string {
	if len(r.Owners) == 0 {
		return fmt.Sprintf("%s %s", r.Path, r.Change)
	}
	word := map[Change]string{Taken: "by", Shared: "with", Yielded: "to", InTheWay: "for"}[r.Change]
	return fmt.Sprintf("%s %s %s %s", r.Path, r.Change, word, fieldowners.Join(r.Owners))
}

// Result is what one call did and why.
type Result struct {
	Outcome Outcome
	// Reasons are the paths that made a write necessary, sorted; also when it was held back. Empty for Unchanged and
	// for Created.
	Reasons []Reason
	// Conflicts are the fields that others own; set for Conflicted.
	Conflicts []fieldowners.Conflict
	// Yielded are the fields that are left to others, sorted, whatever the outcome is and also beside an error; nothing of them
	// was applied. Where the call failed before it could tell, they are those of the call before.
	Yielded []Reason
	// RetryAfter is when to call again for what was held back; zero when nothing is. Beside an error it tells that nothing was sent: the
	// API server refused the same content before, and is asked again after this time.
	RetryAfter time.Duration
	// Object is the newest version known after the call: the API server's answer while the cache is behind it, else
	// Intent.Live. Nil when the object is gone. Not to be changed.
	Object client.Object
	// Sent tells that an apply request was sent and accepted.
	Sent bool
	// Began tells that the outcome is another than at the call before for the same object, or at the first call.
	Began bool
	// Remembered tells that the outcome, Unchanged, is known from the calls before: this very content was found in place at this very
	// version of Live, and nothing is left to look at. The same call has the same result for as long as that is so.
	Remembered bool
	// Migrated tells that fields owned under a former name, or by updates under our own, were taken over.
	Migrated bool
}

// Wrote reports whether the object in the API server has a new version because of this call.
func (r Result) Wrote() bool {
	return r.Migrated || r.Sent && r.Outcome != NoOp
}

// Held reports whether something is to be written later, in RetryAfter.
func (r Result) Held() bool { return r.RetryAfter > 0 }

// Taken are the reasons for which others have to give something up.
func (r Result) Taken() []Reason {
	var taken []Reason
	for _, reason := range r.Reasons {
		if reason.Change == Taken || reason.Change == InTheWay {
			taken = append(taken, reason)
		}
	}
	return taken
}

// Rivals are the owners that took paths or left something in the way, without repetitions, in the order of the reasons. Empty when the writer left no
// trace in managedFields, which is so for one that only removes fields.
func (r Result) Rivals() []fieldowners.Owner {
	var rivals []fieldowners.Owner
	for _, reason := range r.Taken() {
		for _, o := range reason.Owners {
			if !slices.Contains(rivals, o) {
				rivals = append(rivals, o)
			}
		}
	}
	return rivals
}

// Paths are the paths of the reasons.
func (r Result) Paths() []string {
	paths := make([]string, len(r.Reasons))
	for i, reason := range r.Reasons {
		paths[i] = reason.Path
	}
	return paths
}

// String gives the outcome, its reasons and conflicts in one line.
func (r Result) String() string {
	var words []string
	for _, reason := range r.Reasons {
		words = append(words, reason.String())
	}
	for _, conflict := range r.Conflicts {
		words = append(words, conflict.String())
	}
	if len(words) == 0 {
		return string(r.Outcome)
	}
	return fmt.Sprintf("%s: %s", r.Outcome, strings.Join(words, "; "))
}
