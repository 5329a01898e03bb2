package app

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/hduolab/quell/controller/fieldowners"
	"github.com/hduolab/quell/controller/ssa"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Reasons of the conditions Reconciling, Stalled and Progressing.
const (
	reasonCreating     = "Creating"
	reasonRollingOut   = "RollingOut"
	reasonRolledOut    = "RolledOut"
	reasonUnavailable  = "ReplicasUnavailable"
	reasonStuck        = "ProgressDeadlineExceeded"
	reasonRejected     = "Rejected"
	reasonForbidden    = "Forbidden"
	reasonApplyFailed  = "ApplyFailed"
	reasonNameTaken    = "NameTaken"
	reasonLeaving      = "WaitingForDeletion"
	reasonConflict     = "FieldConflict"
	reasonContended    = "FieldContended"
	reasonChurn        = "OperatorChurn"
	reasonDoesNotStick = "NotKept"
	reasonNoGatewayAPI = "GatewayAPIMissing"
	// Of configFiles with onChange Roll, and of spec.suspend.
	reasonConfigMissing  = "ConfigMissing"
	reasonConfigChanging = "ConfigChanging"
	reasonSuspended      = "Suspended"
)

// maxMessage bounds a condition's message and an event's note, in bytes; the API server refuses a longer note.
const maxMessage = 1024

// problem tells what keeps a child from its desired state: something that a person has to change, or something that goes on
// by itself. Messages hold nothing that changes by itself: no time, no generated name, no raw error of a lower layer.
func problem(c applied) (stalled, moving *finding) {
	object := fmt.Sprintf("%s %q", c.kind, c.name)
	switch {
	case c.pending:
		return nil, nil
	case c.leaving && c.live == nil:
		return nil, found(reasonLeaving, "%s cannot be made while its namespace is being deleted", object)
	case c.leaving:
		return nil, found(reasonLeaving, "%s is still being deleted%s", object, finalizers(c.live))
	case c.foreign != "":
		return found(reasonNameTaken, "%s exists already and is not this App's: %s; %s", object, c.foreign, c.adoption), nil
	case c.err != nil:
		return refusal(object, c)
	}
	switch c.Outcome {
	case ssa.Conflicted:
		if c.live == nil {
			return nil, found(reasonCreating, "%s is being created", object)
		}
		return found(reasonConflict, "%s is not applied, as conflictPolicy asks: %s", object, conflicts(c.Conflicts)), nil
	case ssa.DoesNotStick:
		return found(reasonDoesNotStick, "the cluster does not keep what was applied to %s: %s; an admission policy may change it", object, paths(c.Result)), nil
	case ssa.Contended:
		return nil, found(reasonContended, "%s of %s taken back again and again by %s; trying again more and more rarely", paths(c.Result), object, fieldowners.Join(c.Rivals()))
	case ssa.SelfChurn:
		if onlyConfig(c.Reasons) {
			return nil, found(reasonConfigChanging, "what spec.configFiles mount changes again and again, and replaces the Pods of %s each time; replaced more and more rarely", object)
		}
		return nil, found(reasonChurn, "%s of %s computed anew each time; written more and more rarely: a fault of the operator", paths(c.Result), object)
	case ssa.Gone, ssa.Replaced:
		if !c.wanted {
			return nil, nil
		}
		return nil, found(reasonCreating, "%s is being created", object)
	case ssa.Stale:
		return nil, found(reasonRollingOut, "%s changed while it was to be written; trying again", object)
	}
	return nil, nil
}

func found(reason, format string, args ...any) *finding {
	return &finding{reason, bounded(fmt.Sprintf(format, args...))}
}

func bounded(message string) string {
	if len(message) > maxMessage {
		return strings.ToValidUTF8(message[:maxMessage-3], "") + "..."
	}
	return message
}

// refusal words an error of an apply.
func refusal(object string, c applied) (stalled, moving *finding) {
	switch {
	case errors.Is(c.err, errGatewayMissing):
		return found(reasonNoGatewayAPI, "%s cannot be made: %s", object, innermost(c.err)), nil
	case ssa.IsTerminal(c.err):
		return found(reasonRejected, "%s was rejected: %s%s", object, cause(c.err), beside(c.live)), nil
	case apierrors.IsForbidden(c.err):
		return found(reasonForbidden, "%s was refused: %s", object, prohibition(c.err)), nil
	}
	return nil, found(reasonApplyFailed, "%s could not be applied; trying again", object)
}

// beside names who else wrote to a live object: what they left may be what ours does not fit with, such as another port of the
// same name.
func beside(live client.Object) string {
	if live == nil {
		return ""
	}
	var others []fieldowners.Owner
	for _, e := range live.GetManagedFields() {
		if e.Subresource == "" && e.Manager != ChildManager {
			others = append(others, fieldowners.OwnerOf(&e))
		}
	}
	if len(others) == 0 {
		return ""
	}
	return fmt.Sprintf("; it also has fields of %s: if they are in the way, remove them or delete the object, it is made anew", fieldowners.Join(others))
}

// quota and permission are refusals that the API server words in a fixed way up to what moves.
var (
	quota      = regexp.MustCompile(`exceeded quota: [^\s,]+`)
	permission = regexp.MustCompile(`cannot \w+ resource "[^"]+" in API group "[^"]*"`)
)

// prohibition words a 403 without what changes by itself, such as the use of a quota.
func prohibition(err error) string {
	if q := quota.FindString(err.Error()); q != "" {
		return q
	}
	if p := permission.FindString(err.Error()); p != "" {
		return "the operator " + p
	}
	return "forbidden by an admission policy or by missing permission of the operator; its log has the API server's words"
}

// cause is the API server's word on invalid content, field by field, sorted.
func cause(err error) string {
	var content *ssa.InvalidContentError
	var status apierrors.APIStatus
	if errors.As(err, &content) || !errors.As(err, &status) || status.Status().Details == nil || len(status.Status().Details.Causes) == 0 {
		return innermost(err)
	}
	causes := slices.Clone(status.Status().Details.Causes)
	slices.SortFunc(causes, func(a, b metav1.StatusCause) int {
		return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Message, b.Message))
	})
	words := make([]string, len(causes))
	for i, c := range causes {
		words[i] = strings.TrimPrefix(fmt.Sprintf("%s: %s", c.Field, c.Message), ": ")
	}
	return strings.Join(slices.Compact(words), "; ")
}

func innermost(err error) string {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return err.Error()
}

func conflicts(list []fieldowners.Conflict) string {
	words := make([]string, len(list))
	for i, c := range list {
		words[i] = fmt.Sprintf("%s belongs to %s", c.Path, ownerWords(c.Owner))
	}
	slices.Sort(words) // their order is that of managedFields
	return strings.Join(words, "; ")
}

func paths(r ssa.Result) string { return strings.Join(r.Paths(), ", ") }

// isHealthy reports whether a child is as desired, or was just made so.
func (a applied) isHealthy() bool {
	return a.err == nil && a.foreign == "" && !a.leaving && a.Outcome != ssa.Conflicted && a.Outcome != ssa.Gone
}
