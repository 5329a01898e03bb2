package ssa

import (
	"context"
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

// maxRequests bounds the attempts of one call; each takes a second apply where it empties a map.
const maxRequests = 5

// send applies the content and judges the API server's answer. Without force where Intent.Rules do not force all; what the
// API server answers then is ruled on and sent again.
func (c *call) send(ctx context.Context) error {
	if known, err := c.refusedBefore(); known {
		return err
	}
	c.force = c.Rules.forceAll()
	var last error
	for range maxRequests {
		if c.Tentative || c.outdated() {
			return c.stale()
		}
		live := c.Live // judge compares with it; reapply replaces it
		answer, err := c.attempt(ctx)
		if err == nil && c.isEmptied(answer) {
			answer, err = c.reapply(ctx, answer)
		}
		if err == nil {
			return c.judge(ctx, live, answer)
		}
		last = err
		if again, err := c.mend(ctx, err); err != nil || !again {
			return err
		}
	}
	if IsTerminal(last) {
		return c.refused(ctx, last)
	}
	return fmt.Errorf("apply %s %q as %q: it changed during each of %d attempts", c.record.kind, c.object.GetName(), c.opts.FieldManager, maxRequests)
}

// attempt sends one apply and returns the API server's answer.
func (c *call) attempt(ctx context.Context) (*unstructured.Unstructured, error) {
	body := c.body()
	doubt, last := c.record.doubt, c.record.last
	c.record.granted, c.record.doubt, c.record.last = false, true, c.digest
	if doubt && last != c.digest {
		c.record.last = digest{} // either of the two may be the one that arrives last
	}
	start := c.opts.Clock.Now()
	err := c.request(ctx, body)
	requestSeconds.WithLabelValues(c.record.kind, c.opts.Subresource).Observe(c.opts.Clock.Since(start).Seconds())
	if isRefusal(err) {
		c.record.doubt, c.record.last = doubt, last
	}
	return body, err
}

// isRefusal reports whether the API server answered a request and wrote nothing. Of other errors that is unknown, also of those
// that ask for patience, which whatever stands in between may give.
func isRefusal(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err) || IsTerminal(err)
}

// mend does what it can about a refusal and tells whether to send again; if not, the result says why, or the error.
func (c *call) mend(ctx context.Context, refusal error) (again bool, err error) {
	list := fieldowners.Conflicts(refusal)
	switch {
	case isOtherUID(refusal):
	case len(list) > 0:
		return c.arbitrate(list)
	case c.metAnother(refusal):
		return false, c.stale()
	case apierrors.IsConflict(refusal) && c.version() != "" && c.opts.Reader != nil:
		return c.refresh(ctx)
	case apierrors.IsInvalid(refusal):
		if room, err := c.makeRoom(ctx, refusal); err != nil || room {
			return room, err
		}
	}
	return false, c.refused(ctx, refusal)
}

// arbitrate rules on the conflicts of an apply without force.
func (c *call) arbitrate(list []fieldowners.Conflict) (again bool, err error) {
	forced, done, err := c.rule(c.named(list))
	if done {
		c.record.doubt = false
		c.noteRefusal(c.result.Conflicts, nil)
	}
	c.force = forced
	return !done, err
}

// refresh starts over with the object as it is now.
func (c *call) refresh(ctx context.Context) (again bool, err error) {
	fresh, err := c.read(ctx)
	if apierrors.IsNotFound(err) || err == nil && fresh.GetUID() != c.Live.GetUID() {
		return false, c.gone()
	}
	if err != nil {
		return false, fmt.Errorf("read %s %q anew: %w", c.record.kind, c.object.GetName(), err)
	}
	if c.Live, err = c.inScheme(fresh); err != nil {
		return false, err
	}
	c.content, c.force, c.result.Object = c.whole, false, c.Live
	if err := c.findReasons(); err != nil || c.result.Outcome == Conflicted {
		return false, err
	}
	if len(c.result.Reasons) == 0 {
		c.result.Outcome = Unchanged
		c.remember(c.Live.GetResourceVersion())
	}
	return len(c.result.Reasons) > 0, nil
}

// version is the one that the object must have for the request to be right, "" for any. What is left to others must be theirs
// then, or we might give up a field that nobody else has; and what is taken under mixed rules must be what was ruled on.
func (c *call) version() string {
	switch {
	case c.isExact():
		return c.given
	case c.Live != nil && (len(c.result.Yielded) > 0 || c.force && !c.Rules.forceAll()):
		return c.Live.GetResourceVersion()
	}
	return ""
}

// body is what is sent: the content with the lists of a subresource in live order and, on the object itself, pinned to the
// object that was seen, so that a deleted one is not made again.
func (c *call) body() *unstructured.Unstructured {
	object := c.object.Object
	if c.Live != nil && c.opts.Subresource != "" {
		object = c.arranged(c.Live)
	}
	body := &unstructured.Unstructured{Object: object}
	if c.Live != nil && c.opts.Subresource == "" {
		body.Object = pin(body.Object, "uid", string(c.Live.GetUID()))
	}
	if v := c.version(); v != "" {
		body.Object = pin(body.Object, "resourceVersion", v)
	}
	return body
}

func pin(object map[string]any, field, value string) map[string]any {
	metadata, _ := object["metadata"].(map[string]any)
	return with(object, "metadata", with(metadata, field, value))
}

// arranged is the content with its lists in the order of an object.
func (c *call) arranged(o client.Object) map[string]any {
	live, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return c.object.Object
	}
	return arrange(c.typed.Schema(), c.typed.TypeRef(), c.object.Object, live).(map[string]any)
}

func (c *call) request(ctx context.Context, u *unstructured.Unstructured) error {
	body := client.ApplyConfigurationFromUnstructured(u)
	opts := client.ApplyOptions{FieldManager: c.opts.FieldManager}
	if c.force {
		opts.Force = new(true)
	}
	if c.opts.Subresource == "" {
		return c.opts.Client.Apply(ctx, body, &opts)
	}
	return c.opts.Client.SubResource(c.opts.Subresource).Apply(ctx, body, &client.SubResourceApplyOptions{ApplyOptions: opts})
}

// refused turns an error of the API server into an outcome where it is one, and returns it otherwise.
func (c *call) refused(ctx context.Context, err error) error {
	if c.isNotFound(err) && !c.isThere(ctx) || isOtherUID(err) {
		return c.gone()
	}
	err = fmt.Errorf("apply %s %q as %q: %w", c.record.kind, c.object.GetName(), c.opts.FieldManager, c.explain(err))
	if IsTerminal(err) {
		c.noteRefusal(nil, err)
	}
	return err
}

func (c *call) gone() error {
	if c.Live != nil {
		c.memory.forget(c.Live.GetUID())
	}
	c.result = Result{Outcome: Gone}
	return nil
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
// caller meanwhile, the answer would be the same.
func (c *call) refusedBefore() (bool, error) {
	r := &c.record.refused
	if r.digest != c.digest || c.record.granted {
		return false, nil
	}
	wait := r.again.pass(c.opts.Contention, 0, c.now)
	if wait == 0 {
		return false, nil
	}
	c.result.RetryAfter = wait
	if r.answer == nil {
		c.result.Outcome, c.result.Conflicts = Conflicted, r.conflicts
	}
	return true, r.answer
}

// isNotFound reports whether the object itself is missing, as opposed to its resource, its subresource or its namespace. The
// client words a 404 without a body, which an API server gives for a path that it does not serve, as if it were the object's.
func (c *call) isNotFound(err error) bool {
	d := details(err)
	return apierrors.IsNotFound(err) && d.Name == c.object.GetName() && d.Kind != "namespaces" &&
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
	switch {
	case apierrors.IsConflict(err):
		return hasAny(err.Error(), []string{"uid mismatch", "UID in precondition"})
	case apierrors.IsInvalid(err):
		return slices.ContainsFunc(details(err).Causes, func(c metav1.StatusCause) bool { return c.Field == "metadata.uid" })
	}
	return false
}

// explain adds what a person can do about an error that the API server words for machines.
func (c *call) explain(err error) error {
	if !strings.Contains(err.Error(), "request to convert CR to an invalid group/version") {
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
func (c *call) judge(ctx context.Context, live client.Object, raw *unstructured.Unstructured) error {
	answer, err := c.inScheme(raw)
	if err != nil {
		return err
	}
	if live == nil || live.GetUID() != answer.GetUID() {
		fresh := c.memory.of(answer.GetUID())
		fresh.kind = c.record.kind
		c.record.Unlock()
		c.record = fresh
	}
	lost, err := c.unsticky(answer)
	if err != nil {
		return err
	}
	c.result.Object, c.result.Sent, c.result.RetryAfter = answer, true, 0
	c.tellRoom()
	c.result.Outcome = c.effect(ctx, live, answer)
	c.Live = answer
	c.remember(answer.GetResourceVersion())
	c.record.at = c.now
	if c.result.Outcome == NoOp {
		c.record.wrote = answer.GetResourceVersion() // the one that live has, older than before where versions went back
	} else {
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

// unsticky are the fields that were sent and that the answer has with another value, or not as ours, and lists that it has in another
// order: that is not the API server's doing, so an admission webhook or policy sorts them, and would again.
func (c *call) unsticky(answer client.Object) ([]Reason, error) {
	typed, err := fieldowners.Typed(answer, answer.GetObjectKind().GroupVersionKind(), c.opts.Types)
	if err != nil {
		return nil, err
	}
	v, err := compare(c.content, typed)
	if err != nil {
		return nil, err
	}
	// What the answer has more is what the API server adds.
	c.surplus = v.surplus
	owned := fieldpath.NewSet()
	if mine, found := fieldowners.Find(fieldowners.Parse(answer.GetManagedFields()), c.owner()); found {
		owned = mine.Fields
	}
	reasons := appendPaths(nil, Lost, v.differing.Union(c.fields.Difference(owned)))
	if c.opts.Subresource == "" {
		reasons = append(reasons, moved("", c.object.Object, c.arranged(answer))...)
	}
	sortReasons(reasons)
	return reasons, nil
}

// noticeStripped finds out whether the cache drops managedFields: the same version of the object has them in the API server.
func (c *call) noticeStripped(ctx context.Context, live, answer client.Object) {
	if len(live.GetManagedFields()) > 0 || len(answer.GetManagedFields()) == 0 {
		return
	}
	c.stripped.Store(c.object.GroupVersionKind().GroupKind(), true)
	strippedCache.WithLabelValues(c.record.kind).Set(1)
	c.warn.Do(func() {
		logf.FromContext(ctx).Error(nil, "the cache delivers objects without metadata.managedFields: fields that other writers take over "+
			"with the same value will not be noticed; keep managedFields in the cache's transform", "kind", c.record.kind, "fieldManager", c.opts.FieldManager)
	})
}
