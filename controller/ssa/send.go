package ssa

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hduolab/quell/controller/fieldowners"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// send applies the content and judges the API server's answer.
func (c *call) send(ctx context.Context) error {
	if known, err := c.refusedBefore(); known {
		return err
	}
	c.prepare()
	c.record.doubt, c.record.last = true, c.digest
	start := c.opts.Clock.Now()
	err := c.request(ctx)
	requestSeconds.WithLabelValues(c.record.kind, c.opts.Subresource).Observe(c.opts.Clock.Since(start).Seconds())
	if err != nil {
		return c.refused(ctx, err)
	}
	answer, err := c.inScheme(c.object)
	if err != nil {
		return err
	}
	return c.judge(ctx, answer)
}

// prepare puts lists of a subresource into live order and, on the object itself, pins the object that was seen: a deleted one
// is not made again. What the content was compared with stays as it is.
func (c *call) prepare() {
	switch {
	case c.Live == nil:
	case c.opts.Subresource == "":
		metadata, _ := c.object.Object["metadata"].(map[string]any)
		c.object.Object = with(c.object.Object, "metadata", with(metadata, "uid", string(c.Live.GetUID())))
	default:
		c.object.Object = c.arranged()
	}
}

// arranged is the content with its lists in live order.
func (c *call) arranged() map[string]any {
	live, err := runtime.DefaultUnstructuredConverter.ToUnstructured(c.Live)
	if err != nil {
		return c.object.Object
	}
	return arrange(c.typed.Schema(), c.typed.TypeRef(), c.object.Object, live).(map[string]any)
}

func (c *call) request(ctx context.Context) error {
	body := client.ApplyConfigurationFromUnstructured(c.object)
	if c.opts.Subresource == "" {
		opts := []client.ApplyOption{client.FieldOwner(c.opts.FieldManager)}
		if !c.Unforced {
			opts = append(opts, client.ForceOwnership)
		}
		return c.opts.Client.Apply(ctx, body, opts...)
	}
	opts := []client.SubResourceApplyOption{client.FieldOwner(c.opts.FieldManager)}
	if !c.Unforced {
		opts = append(opts, client.ForceOwnership)
	}
	return c.opts.Client.SubResource(c.opts.Subresource).Apply(ctx, body, opts...)
}

// refused turns an error of the API server into an outcome where it is one, and returns it otherwise.
func (c *call) refused(ctx context.Context, err error) error {
	conflicts := fieldowners.Conflicts(err)
	switch {
	case len(conflicts) > 0:
		c.record.doubt = false
		c.noteRefusal(conflicts, nil)
		c.result.Outcome, c.result.RetryAfter, c.result.Conflicts = Conflicted, 0, conflicts
		return nil
	case c.isNotFound(err) && !c.isThere(ctx), isOtherUID(err):
		if c.Live != nil {
			c.memory.forget(c.Live.GetUID())
		}
		c.result = Result{Outcome: Gone}
		return nil
	}
	err = fmt.Errorf("apply %s %q as %q: %w", c.record.kind, c.object.GetName(), c.opts.FieldManager, c.explain(err))
	if IsTerminal(err) {
		c.noteRefusal(nil, err)
	}
	return err
}

// noteRefusal remembers that this content was refused.
func (c *call) noteRefusal(conflicts []fieldowners.Conflict, answer error) {
	r := &c.record.refused
	if r.digest != c.digest {
		*r = refusal{digest: c.digest}
	}
	r.conflicts, r.answer = conflicts, answer
}

// refusedBefore answers as the API server did when it refused this content, until it is time to ask again: whatever wakes the
// caller meanwhile, the answer would be the same. A call that forces is not held by conflicts.
func (c *call) refusedBefore() (bool, error) {
	r := &c.record.refused
	if r.digest != c.digest || r.answer == nil && !c.Unforced {
		return false, nil
	}
	wait := r.again.pass(c.opts.Contention, 0, c.now)
	if wait == 0 {
		return false, nil
	}
	if r.answer == nil {
		c.result.Outcome, c.result.RetryAfter, c.result.Conflicts = Conflicted, wait, r.conflicts
	}
	return true, r.answer
}

// isNotFound reports whether the object itself is missing, as opposed to its resource, its subresource or its namespace. The
// client words a 404 without a body, which an API server gives for a path that it does not serve, as if it were the object's.
func (c *call) isNotFound(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	return status.Status().Details.Name == c.object.GetName() && status.Status().Details.Kind != "namespaces" &&
		!apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// isThere reports whether the object that was seen still exists: the API server answers an apply through a subresource that the
// kind does not have as if the object were missing.
func (c *call) isThere(ctx context.Context) bool {
	if c.opts.Subresource == "" || c.Live == nil || c.opts.Reader == nil {
		return false
	}
	fresh, err := c.read(ctx)
	return err == nil && fresh.GetUID() == c.Live.GetUID()
}

// isOtherUID reports whether an apply that named a UID met no object, or another one, of the same name.
func isOtherUID(err error) bool {
	var status apierrors.APIStatus
	switch {
	case apierrors.IsConflict(err):
		return hasAny(err.Error(), []string{"uid mismatch", "UID in precondition"})
	case apierrors.IsInvalid(err) && errors.As(err, &status) && status.Status().Details != nil:
		return slices.ContainsFunc(status.Status().Details.Causes, func(c metav1.StatusCause) bool { return c.Field == "metadata.uid" })
	}
	return false
}

// explain adds what a person can do about an error that the API server words for machines.
func (c *call) explain(err error) error {
	if !hasAny(err.Error(), []string{"request to convert CR to an invalid group/version"}) {
		return err
	}
	for _, e := range c.entries {
		if strings.HasSuffix(err.Error(), e.APIVersion) {
			return fmt.Errorf("the managedFields entry of %s names %s, which is not served any more; remove the entry with a JSON patch: %w", e.Owner, e.APIVersion, err)
		}
	}
	return err
}

// inScheme is an object that the API server answered as a type of the scheme, so that fields which only a newer schema knows do
// not stand in the way; unstructured where the scheme does not know the kind.
func (c *call) inScheme(u *unstructured.Unstructured) (client.Object, error) {
	o, err := c.opts.Client.Scheme().New(u.GroupVersionKind())
	if err != nil {
		return u, nil //nolint:nilerr // an unknown kind is no failure
	}
	object, ok := o.(client.Object)
	if !ok {
		return u, nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, object); err != nil {
		return nil, fmt.Errorf("read answer to a write of %s %q: %w", c.record.kind, u.GetName(), err)
	}
	return object, nil
}

// judge fills in the result from the answer and remembers it.
func (c *call) judge(ctx context.Context, answer client.Object) error {
	live := c.Live
	if live == nil || live.GetUID() != answer.GetUID() {
		fresh := c.memory.of(answer.GetUID())
		defer fresh.Unlock()
		fresh.kind = c.record.kind
		c.record = fresh
	}
	lost, err := c.unsticky(answer)
	if err != nil {
		return err
	}
	c.result.Object, c.result.Sent, c.result.RetryAfter = answer, true, 0
	c.result.Outcome = c.effect(ctx, live, answer)
	c.Live = answer
	c.remember(answer.GetResourceVersion())
	c.record.at = c.now
	if c.result.Outcome != NoOp {
		c.keep(answer)
	}
	if len(lost) > 0 {
		c.record.unsticky = lost
		c.result.Outcome, c.result.Reasons, c.result.RetryAfter = DoesNotStick, lost, c.recheck()
		return nil
	}
	c.stillContended()
	return nil
}

// effect is what the request did to the object.
func (c *call) effect(ctx context.Context, live, answer client.Object) Outcome {
	switch {
	case live == nil && c.opts.Subresource == "":
		return Created
	case live == nil:
		return Applied
	case live.GetUID() != answer.GetUID():
		c.memory.forget(live.GetUID())
		return Replaced
	case live.GetResourceVersion() == answer.GetResourceVersion():
		c.noticeStripped(ctx, live, answer)
		return NoOp
	}
	return Applied
}

// unsticky are the fields that were sent and that the answer has with another value, or not as ours.
func (c *call) unsticky(answer client.Object) ([]Reason, error) {
	typed, err := fieldowners.Typed(answer, answer.GetObjectKind().GroupVersionKind(), c.opts.Types)
	if err != nil {
		return nil, err
	}
	paths, err := differingValues(c.content, typed)
	if err != nil {
		return nil, err
	}
	owned := fieldpath.NewSet()
	if mine, found := fieldowners.Find(fieldowners.Parse(answer.GetManagedFields()), c.owner()); found {
		owned = mine.Fields
	}
	reasons := appendPaths(nil, Lost, paths.Union(c.fields.Difference(owned)))
	sortReasons(reasons)
	return reasons, nil
}

// noticeStripped finds out whether the cache drops managedFields: the same version of the object has them in the API server.
func (c *call) noticeStripped(ctx context.Context, live, answer client.Object) {
	if len(live.GetManagedFields()) > 0 || len(answer.GetManagedFields()) == 0 {
		return
	}
	c.stripped.Store(true)
	strippedCache.WithLabelValues(c.record.kind).Set(1)
	c.warn.Do(func() {
		logf.FromContext(ctx).Error(nil, "the cache delivers objects without metadata.managedFields: fields that other writers take over "+
			"with the same value will not be noticed; keep managedFields in the cache's transform", "kind", c.record.kind, "fieldManager", c.opts.FieldManager)
	})
}
