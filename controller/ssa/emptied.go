package ssa

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// isEmptied reports whether an apply took a map or a list away that the content has, empty. Of what is given up in there the API
// server leaves nothing, not even the empty rest (sigs.k8s.io/structured-merge-diff/v6, merge/update.go, prune); the next apply,
// which gives nothing up any more, brings it back. Metadata has no empty maps.
func (c *call) isEmptied(answer *unstructured.Unstructured) bool {
	if c.Live == nil {
		return false
	}
	var empty []fieldpath.Path
	c.begins().Iterate(func(p fieldpath.Path) {
		if !isMetadata(p) && isEmpty(at(c.typed.AsValue(), p)) {
			empty = append(empty, p.Copy())
		}
	})
	if len(empty) == 0 {
		return false
	}
	before, _, errBefore := c.typedOf(c.Live)
	after, _, errAfter := c.typedOf(answer)
	if errBefore != nil || errAfter != nil {
		return false // the apply was accepted, and judge tells of an answer that cannot be read
	}
	return slices.ContainsFunc(empty, func(p fieldpath.Path) bool {
		return at(after.AsValue(), p) == nil && !isZero(at(before.AsValue(), p))
	})
}

func isEmpty(v value.Value) bool { return isZero(v) && v != nil && (v.IsMap() || v.IsList()) }

// reapply applies to what an apply has made. When it fails, live may show the content although it was needed, so that proves nothing.
func (c *call) reapply(ctx context.Context, made *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	var err error
	if c.Live, err = c.inScheme(made); err != nil {
		return nil, err
	}
	c.given = made.GetResourceVersion()
	answer, err := c.attempt(ctx)
	if err != nil {
		c.record.last = digest{}
	}
	return answer, err
}
