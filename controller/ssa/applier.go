package ssa

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hduolab/quell/controller/fieldowners"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// Options configure an Applier.
type Options struct {
	// Client sends the applies; its scheme should know the kinds that are applied. Required.
	Client client.Client
	// Reader reads past the cache, as a manager's GetAPIReader does; needed for FormerManagers and for taking over entries
	// that updates under our own name left, which also takes the permission to patch the object itself. Without these the
	// entries stay as they are. It is also asked whether an object is Gone or only its subresource not served.
	Reader client.Reader
	// Types gives the kinds their merge rules: NewTypeConverter beside generated apply configurations. Required.
	Types managedfields.TypeConverter
	// FieldManager is the fixed name under which everything is applied. Required, at most 128 characters.
	FieldManager string
	// FormerManagers are names under which earlier releases wrote the same fields; what they own is taken over once.
	FormerManagers []string
	// Subresource to apply through, "" for the object itself.
	Subresource string
	// Contention paces the repair of what others take back; zero means DefaultContentionPace.
	Contention Pace
	// Churn paces content that changes although its inputs do not; zero means DefaultChurnPace.
	Churn Pace
	// Remember bounds the number of remembered objects; zero means DefaultRemember.
	Remember int
	// Clock is the time source; nil means the real one.
	Clock clock.PassiveClock
}

// Intent is one desired state.
type Intent struct {
	// Desired is the full apply configuration: every field that the manager wants to own. It is not changed.
	Desired runtime.ApplyConfiguration
	// Live is the object as the cache has it, nil when it does not exist. It is not changed.
	Live client.Object
	// Inputs identifies what Desired was computed from (see Generation and Version). While it stands still, other content
	// counts as the caller's own churn. Empty means that nothing but the generation of Live is known.
	Inputs string
	// Children is the number of objects that Desired sums up; the churn budget grows with it.
	Children int
	// Unforced leaves fields alone that others own with other values: the outcome is then Conflicted and nothing is written.
	Unforced bool
}

// Applier applies what one field manager wants on one subresource. It is safe for concurrent use; calls for the same object
// wait for each other.
type Applier struct {
	Options
	memory *memory
	// epoch counts the schema changes that the caller told.
	epoch    atomic.Int64
	stripped atomic.Bool
	warn     sync.Once
	// denied tells that taking over fields of former managers is forbidden.
	denied atomic.Bool
}

// NewApplier returns an Applier, or an error that names the option that is missing or out of range.
func NewApplier(o Options) (*Applier, error) {
	switch {
	case o.Client == nil:
		return nil, errors.New("ssa: Options.Client is required")
	case o.Types == nil:
		return nil, errors.New("ssa: Options.Types is required")
	case o.FieldManager == "" || len(o.FieldManager) > 128:
		return nil, fmt.Errorf("ssa: Options.FieldManager must have 1 to 128 characters, is %q", o.FieldManager)
	case o.Remember < 0:
		return nil, fmt.Errorf("ssa: Options.Remember must not be negative, is %d", o.Remember)
	}
	if o.Remember == 0 {
		o.Remember = DefaultRemember
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	o.Contention, o.Churn = o.Contention.orDefault(DefaultContentionPace), o.Churn.orDefault(DefaultChurnPace)
	m, err := newMemory(o.Remember)
	return &Applier{Options: o, memory: m}, err
}

// Apply brings the object to the desired state, with at most one apply request, and none when it is there already. What
// became of it is in the Result. An error means that the request was refused or its fate is unknown; IsTerminal tells
// whether trying again is pointless.
func (a *Applier) Apply(ctx context.Context, in Intent) (Result, error) {
	return a.apply(ctx, in, plain)
}

// SchemaChanged makes content that did not stick be tried again; call it when the kind's schema or an admission policy
// has changed.
func (a *Applier) SchemaChanged() { a.epoch.Add(1) }

// Forget drops what is remembered of an object; call it when the object is gone for good. Not calling it costs memory
// within the bound of Options.Remember only.
func (a *Applier) Forget(o client.Object) { a.memory.forget(o.GetUID()) }

// finish completes decoded content with what depends on the live object, and may ask to hold details back.
type finish struct {
	complete func(u *unstructured.Unstructured, live client.Object, now time.Time) error
	settle   func(c *call) time.Duration
}

var plain = finish{}

// call is one Apply on its way.
type call struct {
	*Applier
	Intent
	finish
	record *record
	sent   digest
	// inputs is what the content depends on, as the caller saw it.
	inputs string
	now    time.Time
	// behind tells that Live is older than our own last write.
	behind bool
	// pending tells that the next call has to look closer, although the content is in place.
	pending bool
	*content
	kind    string
	entries []fieldowners.Entry
	result  Result
}

func (a *Applier) apply(ctx context.Context, in Intent, f finish) (Result, error) {
	if isNil(in.Live) {
		in.Live = nil
	}
	raw, sent, err := encode(in.Desired)
	if err != nil {
		return Result{}, err
	}
	c := &call{Applier: a, Intent: in, finish: f, sent: sent, inputs: a.inputs(in), now: a.Clock.Now()}
	if in.Live != nil {
		c.record = a.memory.of(in.Live.GetUID())
	} else {
		c.record = a.memory.of("")
	}
	defer c.record.Unlock()
	if c.remembered() {
		return c.count("", Result{Outcome: Unchanged, Object: in.Live}), nil
	}
	return c.run(ctx, raw)
}

// remembered reports whether this content is known to be in place at this version of the object, or is known not to stick.
func (c *call) remembered() bool {
	return c.Live != nil && c.record.known && c.record.sent == c.sent && c.record.version == c.Live.GetResourceVersion() &&
		(len(c.record.unsticky) == 0)
}

func (c *call) run(ctx context.Context, raw []byte) (Result, error) {
	u, err := decode(raw, c.Subresource)
	if err != nil {
		return Result{}, err
	}
	c.kind, c.content = u.GetKind(), &content{object: u}
	if err := c.sameVersion(); err != nil {
		return Result{}, err
	}
	c.catchUp()
	if c.Live != nil {
		if err := c.takeOver(ctx); err != nil {
			return Result{}, err
		}
	}
	if c.complete != nil {
		if err := c.complete(u, c.Live, c.now); err != nil {
			return Result{}, err
		}
	}
	if c.content, err = newContent(u, c.Types, c.Subresource); err != nil {
		return Result{}, err
	}
	done, err := c.decide()
	if err != nil || done {
		return c.count(c.kind, c.result), err
	}
	return c.send(ctx)
}

// sameVersion refuses a live object of another API version than the content's: their fields cannot be compared.
func (c *call) sameVersion() error {
	if c.Live == nil {
		return nil
	}
	gvk, err := c.Client.GroupVersionKindFor(c.Live)
	if err != nil {
		return fmt.Errorf("find kind of live object %q: %w", c.Live.GetName(), err)
	}
	if gvk != c.object.GroupVersionKind() {
		return invalid("apply configuration is of %s, the live object of %s: read and apply the same version", c.object.GroupVersionKind(), gvk)
	}
	return nil
}

// catchUp replaces a live object that is older than our own last write by what the API server answered to that write.
func (c *call) catchUp() {
	if c.Live == nil || c.record.wrote == "" {
		return
	}
	order, err := resourceversion.CompareResourceVersion(c.Live.GetResourceVersion(), c.record.wrote)
	c.behind = err == nil && order < 0
	if answer, ok := c.memory.answers.Get(c.Live.GetUID()); ok && c.behind {
		c.Live, c.behind = answer, false
	} else if !c.behind {
		c.memory.answers.Remove(c.Live.GetUID())
	}
}

// keep notes a version that is newer than the cache, for as long as it is.
func (c *call) keep(o client.Object) {
	c.record.wrote = o.GetResourceVersion()
	c.memory.answers.Add(o.GetUID(), o)
}

// decide fills in the result and returns true when nothing is to be sent.
func (c *call) decide() (bool, error) {
	if c.Live == nil {
		return false, nil
	}
	c.entries = fieldowners.Parse(c.Live.GetManagedFields())
	if c.stripped.Load() && len(c.entries) == 0 && c.inPlaceBefore() {
		c.entries = []fieldowners.Entry{{Owner: c.owner(), Fields: c.fields}}
	}
	typed, err := fieldowners.Typed(c.Live, c.object.GroupVersionKind(), c.Types)
	if err != nil {
		return false, err
	}
	if c.result.Reasons, err = difference(c.content, typed, c.entries, c.owner()); err != nil {
		return false, err
	}
	if c.Subresource == "" && len(c.result.Reasons) == 0 {
		c.result.Reasons = moved("", c.object.Object, c.arranged())
	}
	c.result.Object = c.Live
	switch {
	case c.behind && c.inPlaceBefore():
		c.result = Result{Outcome: Unchanged, Migrated: c.result.Migrated}
		return true, nil
	case len(c.result.Reasons) == 0:
		c.result.Outcome = Unchanged
		c.remember(c.Live.GetResourceVersion())
		return true, nil
	}
	return c.holdBack(), nil
}

// inPlaceBefore reports whether this very content has been in place on this object.
func (c *call) inPlaceBefore() bool { return c.record.known && c.record.content == c.digest }

// holdBack decides whether the write has to wait or is pointless.
func (c *call) holdBack() bool {
	var wait time.Duration
	if c.settle != nil {
		c.result.Outcome, wait = Settling, c.settle(c)
	}
	switch {
	case c.onlyUnsticky():
		c.result.Outcome = DoesNotStick
		return true
	case wait > 0:
	case c.inPlaceBefore():
		c.result.Outcome, wait = Contended, c.record.contention.pass(c.Contention, 0, c.now)
	case c.record.known && c.record.inputs == c.inputs:
		c.result.Outcome, wait = SelfChurn, c.record.churn.pass(c.Churn, c.Children, c.now)
	}
	if wait == 0 {
		return false
	}
	c.result.RetryAfter = wait
	heldTotal.WithLabelValues(c.kind, c.Subresource, string(c.result.Outcome)).Inc()
	return true
}

// onlyUnsticky reports whether everything that differs is known not to stick under the present schema.
func (c *call) onlyUnsticky() bool {
	if len(c.record.unsticky) == 0 || c.record.content != c.digest || c.record.epoch != c.epoch.Load() {
		return false
	}
	for _, r := range c.result.Reasons {
		if !slices.ContainsFunc(c.record.unsticky, func(u Reason) bool { return u.Path == r.Path }) {
			return false
		}
	}
	return true
}

// inputs is what the content depends on: for a subresource also the generation of the object itself, which no write of ours moves.
func (a *Applier) inputs(in Intent) string {
	if a.Subresource == "" || in.Live == nil {
		return in.Inputs
	}
	return Generation(in.Live) + in.Inputs
}

func (c *call) owner() fieldowners.Owner {
	return fieldowners.Owner{
		Manager: c.FieldManager, Operation: metav1.ManagedFieldsOperationApply,
		Subresource: c.Subresource, APIVersion: c.object.GetAPIVersion(),
	}
}

// remember notes that the content is in place at a version of the live object.
func (c *call) remember(version string) {
	if c.record.content != c.digest || c.record.epoch != c.epoch.Load() {
		c.record.unsticky = nil
	}
	c.record.known, c.record.version, c.record.sent, c.record.content = true, version, c.sent, c.digest
	c.record.inputs, c.record.epoch = c.inputs, c.epoch.Load()
	if c.pending {
		c.record.version = ""
	}
}

func (c *call) count(kind string, r Result) Result {
	if kind == "" {
		kind = c.Live.GetObjectKind().GroupVersionKind().Kind
		if gvk, err := c.Client.GroupVersionKindFor(c.Live); err == nil {
			kind = gvk.Kind
		}
	}
	callsTotal.WithLabelValues(kind, c.Subresource, string(r.Outcome)).Inc()
	return r
}

// send applies the content and judges the API server's answer.
func (c *call) send(ctx context.Context) (Result, error) {
	c.prepare()
	start := c.Clock.Now()
	err := c.request(ctx)
	requestSeconds.WithLabelValues(c.kind, c.Subresource).Observe(c.Clock.Since(start).Seconds())
	if err != nil {
		err = c.refused(ctx, err)
		return c.count(c.kind, c.result), err
	}
	answer, err := c.inScheme(c.object)
	if err != nil {
		return Result{}, err
	}
	err = c.judge(ctx, answer)
	return c.count(c.kind, c.result), err
}

// prepare puts lists of a subresource into live order and, on the object itself, pins the object that was seen: a deleted one
// is not made again. What the content was compared with stays as it is.
func (c *call) prepare() {
	switch {
	case c.Live == nil:
	case c.Subresource == "":
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
	if c.Subresource == "" {
		opts := []client.ApplyOption{client.FieldOwner(c.FieldManager)}
		if !c.Unforced {
			opts = append(opts, client.ForceOwnership)
		}
		return c.Client.Apply(ctx, body, opts...)
	}
	opts := []client.SubResourceApplyOption{client.FieldOwner(c.FieldManager)}
	if !c.Unforced {
		opts = append(opts, client.ForceOwnership)
	}
	return c.Client.SubResource(c.Subresource).Apply(ctx, body, opts...)
}

// refused turns an error of the API server into an outcome where it is one, and returns it otherwise.
func (c *call) refused(ctx context.Context, err error) error {
	conflicts := fieldowners.Conflicts(err)
	switch {
	case len(conflicts) > 0:
		c.result.Outcome, c.result.Conflicts = Conflicted, conflicts
		return nil
	case c.isNotFound(err) && !c.isThere(ctx), isOtherUID(err):
		if c.Live != nil {
			c.memory.forget(c.Live.GetUID())
		}
		c.result = Result{Outcome: Gone}
		return nil
	}
	c.result = Result{Outcome: "Error"}
	return fmt.Errorf("apply %s %q as %q: %w", c.kind, c.object.GetName(), c.FieldManager, c.explain(err))
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
	if c.Subresource == "" || c.Live == nil || c.Reader == nil {
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
	o, err := c.Client.Scheme().New(u.GroupVersionKind())
	if err != nil {
		return u, nil //nolint:nilerr // an unknown kind is no failure
	}
	object, ok := o.(client.Object)
	if !ok {
		return u, nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, object); err != nil {
		return nil, fmt.Errorf("read answer to a write of %s %q: %w", c.kind, u.GetName(), err)
	}
	return object, nil
}

// judge fills in the result from the answer and remembers it.
func (c *call) judge(ctx context.Context, answer client.Object) error {
	live := c.Live
	if live == nil || live.GetUID() != answer.GetUID() {
		fresh := c.memory.of(answer.GetUID())
		defer fresh.Unlock()
		c.record = fresh
	}
	lost, err := c.unsticky(answer)
	if err != nil {
		return err
	}
	version := answer.GetResourceVersion()
	c.result.Object, c.result.Outcome, c.result.Sent = answer, Applied, true
	switch {
	case live == nil && c.Subresource == "":
		c.result.Outcome = Created
	case live == nil:
	case live.GetUID() != answer.GetUID():
		c.result.Outcome = Replaced
		c.memory.forget(live.GetUID())
	case live.GetResourceVersion() == version:
		c.result.Outcome = NoOp
		c.noticeStripped(ctx, live, answer)
	}
	c.Live = answer
	c.remember(version)
	c.record.wrote, c.record.at = version, c.now
	if c.result.Outcome != NoOp {
		c.keep(answer)
	}
	if len(lost) > 0 {
		c.record.unsticky = lost
		c.result.Outcome, c.result.Reasons = DoesNotStick, lost
	}
	return nil
}

// unsticky are the fields that were sent and did not come back with the same value.
func (c *call) unsticky(answer client.Object) ([]Reason, error) {
	typed, err := fieldowners.Typed(answer, answer.GetObjectKind().GroupVersionKind(), c.Types)
	if err != nil {
		return nil, err
	}
	paths, err := differingValues(c.content, typed)
	if err != nil {
		return nil, err
	}
	reasons := appendPaths(nil, Lost, paths)
	sortReasons(reasons)
	return reasons, nil
}

// noticeStripped finds out whether the cache drops managedFields: the same version of the object has them in the API server.
func (c *call) noticeStripped(ctx context.Context, live, answer client.Object) {
	if len(live.GetManagedFields()) > 0 || len(answer.GetManagedFields()) == 0 {
		return
	}
	c.stripped.Store(true)
	strippedCache.WithLabelValues(c.kind).Set(1)
	c.warn.Do(func() {
		logf.FromContext(ctx).Error(nil, "the cache delivers objects without metadata.managedFields: fields that other writers take over "+
			"with the same value will not be noticed; keep managedFields in the cache's transform", "kind", c.kind, "fieldManager", c.FieldManager)
	})
}

// Generation identifies objects by what people ask of them, for Intent.Inputs.
func Generation(objects ...client.Object) string {
	return join(objects, func(o client.Object) string { return fmt.Sprint(o.GetGeneration()) })
}

// Version identifies objects by their whole content, status included, for Intent.Inputs.
func Version(objects ...client.Object) string {
	return join(objects, client.Object.GetResourceVersion)
}

func join(objects []client.Object, of func(client.Object) string) string {
	var s string
	for _, o := range objects {
		if !isNil(o) {
			s += string(o.GetUID()) + "/" + of(o) + ";"
		}
	}
	return s
}

// isNil also finds a nil pointer inside the interface, which a caller with an optional child hands in easily.
func isNil(o client.Object) bool {
	return o == nil || reflect.ValueOf(o).Kind() == reflect.Pointer && reflect.ValueOf(o).IsNil()
}
