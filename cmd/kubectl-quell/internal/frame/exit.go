package frame

import (
	"errors"
	"slices"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

// The exit codes, as kubectl diff has them: findings are not failures.
const (
	Fine     = 0
	Findings = 1
	Usage    = 2
	Failure  = 3
)

// ErrFindings is returned by a command that did its work, printed what it found, and wants the exit code to tell.
var ErrFindings = errors.New("there are findings")

// UsageError is a command line that cannot be meant.
type UsageError struct{ Err error }

// Error says what is wrong with the command line.
func (e UsageError) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e UsageError) Unwrap() error { return e.Err }

// Code is the exit code for what a command returned. Commands return failures rather than findings when they have both: what
// was not seen cannot be vouched for.
func Code(err error) int {
	var usage UsageError
	switch {
	case err == nil:
		return Fine
	case errors.As(err, &usage):
		return Usage
	case errors.Is(err, ErrFindings):
		return Findings
	}
	return Failure
}

// Texts are what several objects of one run failed with, each text once, so that each can have a line.
func Texts(err error) []string {
	var parts []error
	switch several := any(err).(type) { // not what is wrapped: the words around it would be lost
	case utilerrors.Aggregate:
		parts = several.Errors()
	case interface{ Unwrap() []error }: // joined
		parts = several.Unwrap()
	default:
		return []string{err.Error()}
	}
	var texts []string
	for _, part := range parts {
		for _, text := range Texts(part) {
			if !slices.Contains(texts, text) {
				texts = append(texts, text)
			}
		}
	}
	return texts
}
