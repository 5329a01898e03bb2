package fieldowners

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Conflict is one field for which the API server refused an apply without force.
type Conflict struct {
	// Owner is who owns the field. An applier's API version is not told by the server and stays empty.
	Owner
	// Path of the field as the API server writes it, for example .spec.template.spec.containers[name="web"].image.
	Path string
}

// String gives the conflict in words, for example `.spec.replicas owned by "kubectl-edit" (Update)`.
func (c Conflict) String() string { return fmt.Sprintf("%s owned by %s", c.Path, c.Owner) }

// conflictMessage is the form in which the API server's field manager words a cause
// (k8s.io/apimachinery/pkg/util/managedfields/internal, conflict.go); the manager is quoted by strconv.Quote.
var conflictMessage = regexp.MustCompile(`^conflict with ("(?:[^"\\]|\\.)*")(?: with subresource ("(?:[^"\\]|\\.)*"))?(?: using (\S+))?`)

// Conflicts reads the causes of an API error in the order in which the server gives them, without repetitions. It returns
// nil for every error that is not a field manager conflict, so a 409 of the optimistic lock gives nil.
func Conflicts(err error) []Conflict {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	var conflicts []Conflict
	seen := map[Conflict]bool{}
	for _, cause := range status.Status().Details.Causes {
		c, ok := parseCause(cause)
		if ok && !seen[c] {
			seen[c] = true
			conflicts = append(conflicts, c)
		}
	}
	return conflicts
}

func parseCause(cause metav1.StatusCause) (Conflict, bool) {
	if cause.Type != metav1.CauseTypeFieldManagerConflict {
		return Conflict{}, false
	}
	c := Conflict{Path: cause.Field, Owner: Owner{Operation: metav1.ManagedFieldsOperationApply}}
	m := conflictMessage.FindStringSubmatch(cause.Message)
	if m == nil {
		c.Operation = ""
		return c, true
	}
	c.Manager, c.Subresource = unquote(m[1]), unquote(m[2])
	if m[3] != "" {
		c.Operation, c.APIVersion = metav1.ManagedFieldsOperationUpdate, m[3]
	}
	return c, true
}

func unquote(s string) string {
	if u, err := strconv.Unquote(s); err == nil {
		return u
	}
	return s
}
