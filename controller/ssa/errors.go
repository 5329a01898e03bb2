package ssa

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// InvalidContentError says that an apply configuration can never be applied as it is; nothing was sent.
type InvalidContentError struct{ Reason string }

func (e *InvalidContentError) Error() string { return e.Reason }

// Invalid returns an InvalidContentError whose reason is formatted as fmt.Sprintf does; it wraps nothing.
func Invalid(format string, args ...any) error {
	return &InvalidContentError{Reason: fmt.Sprintf(format, args...)}
}

// terminalText are answers of the API server that come as 500 although no retry can change them: content that does not
// fit the schema, duplicate or missing list keys, and a managedFields entry whose API version is not served any more.
var terminalText = []string{
	"failed to create typed patch object",
	"field not declared in schema",
	"duplicate entries for key",
	"omits key field",
	"request to convert CR to an invalid group/version",
}

// IsTerminal reports whether sending the same content again is pointless until a person changes the object, its schema or
// a policy: the content is invalid by the API server's word or by ours. Errors of authorization, quota, conflict, load
// and transport are not terminal.
func IsTerminal(err error) bool {
	var content *InvalidContentError
	if errors.As(err, &content) {
		return true
	}
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsMethodNotSupported(err) ||
		apierrors.IsNotAcceptable(err) || apierrors.IsUnsupportedMediaType(err) || apierrors.IsRequestEntityTooLargeError(err) {
		return true
	}
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code == http.StatusInternalServerError && hasAny(err.Error(), terminalText)
}

func hasAny(text string, parts []string) bool {
	for _, part := range parts {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}

// details are those of an error that the API server answered, empty for any other.
func details(err error) metav1.StatusDetails {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return metav1.StatusDetails{}
	}
	return *status.Status().Details
}
