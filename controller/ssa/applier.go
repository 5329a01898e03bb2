package ssa

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hduolab/quell/controller/fieldowners"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Options configure an Applier.
type Options struct {
	// Client sends the applies; its scheme should know the kinds that are applied. Required.
	Client client.Client
	// Reader reads past the cache, as a manager's GetAPIReader does; needed for FormerManagers and for taking over entries
	// that updates under our own name left, which also takes the permission to patch the object itself. Without these the
	// entries stay as they are, and so does what others left in the way (see Applier.Apply). It is also asked when a request met
	// another version than it was made for, when a cache is still behind our own last write after a minute, and whether an object is
	// Gone or only its subresource not served.
	Reader client.Reader
	// Types gives the kinds their merge rules: NewTypeConverter beside generated apply configurations. Required.
	Types managedfields.TypeConverter
	// FieldManager is the fixed name under which everything is applied. Required, at most 128 characters.
	FieldManager string
	// FormerManagers are names under which earlier releases wrote the same fields; what they own is taken over once.
	FormerManagers []string
	// Subresource to apply through: status, or "" for the object itself.
	Subresource string
	// Contention paces the repair of what others take back; zero means DefaultContentionPace.
	Contention Pace
	// Churn paces content that changes although its inputs do not; zero means DefaultChurnPace.
	Churn Pace
	// Limit paces all writes to one object that a contention does not pace already, whatever their reason: what an object sums up
	// may itself change all the time. Zero means no limit.
	Limit Pace
	// Recheck is when content that did not stick is tried again; zero means only after SchemaChanged, or with other content.
	Recheck time.Duration
	// Remember bounds the number of remembered objects; zero means DefaultRemember.
	Remember int
	// Clock is the time source; nil means the real one.
	Clock clock.PassiveClock
}

// Applier applies what one field manager wants on one subresource. It is safe for concurrent use; calls for the same object
// wait for each other.
type Applier struct {
	opts   Options
	memory *memory
	// epoch counts the schema changes that the caller told.
	epoch atomic.Int64
	// stripped has the schema.GroupKind of what the cache drops managedFields of.
	stripped sync.Map
	warn     sync.Once
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
	case o.Subresource != "" && o.Subresource != "status":
		return nil, fmt.Errorf("ssa: Options.Subresource must be status, or empty for the object itself, is %q", o.Subresource)
	case o.Remember < 0:
		return nil, fmt.Errorf("ssa: Options.Remember must not be negative, is %d", o.Remember)
	case o.Recheck < 0:
		return nil, fmt.Errorf("ssa: Options.Recheck must not be negative, is %s", o.Recheck)
	}
	var err error
	if o.Contention, err = o.Contention.orDefault(DefaultContentionPace); err != nil {
		return nil, fmt.Errorf("ssa: Options.Contention: %w", err)
	}
	if o.Churn, err = o.Churn.orDefault(DefaultChurnPace); err != nil {
		return nil, fmt.Errorf("ssa: Options.Churn: %w", err)
	}
	if o.Limit != (Pace{}) {
		if o.Limit, err = o.Limit.orDefault(DefaultChurnPace); err != nil {
			return nil, fmt.Errorf("ssa: Options.Limit: %w", err)
		}
	}
	if o.Remember == 0 {
		o.Remember = DefaultRemember
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	m, err := newMemory(o.Remember)
	return &Applier{opts: o, memory: m}, err
}

// Apply brings the object to the desired state, with one apply request as a rule, and none when it is there already. It
// takes a second one where Intent.Rules do not force all and somebody holds a field, or where giving up fields makes the API server
// drop a map that the content has, empty; and it is tried up to five times where the object changes meanwhile. Where others left
// something beside which the desired state is not valid, under rule Force, that is taken over and
// removed, at the cost of a read, some dry runs and a patch of managedFields. What became of it is in the Result. An error means
// that the request was refused or its fate is unknown; IsTerminal tells whether trying again is pointless.
func (a *Applier) Apply(ctx context.Context, in Intent) (Result, error) {
	return a.apply(ctx, in, finish{})
}

// SchemaChanged makes content that did not stick be tried again; call it when the kind's schema or an admission policy
// has changed.
func (a *Applier) SchemaChanged() { a.epoch.Add(1) }

// finish completes decoded content with what depends on the live object, may ask to hold details back, and tells what alone is no
// reason to write.
type finish struct {
	complete   func(u *unstructured.Unstructured, live client.Object, now time.Time) error
	settle     func(c *call) time.Duration
	incidental func(r Reason) bool
}

// call is one Apply on its way.
type call struct {
	*Applier
	Intent
	finish
	record *record
	sent   digest
	// given is the version that an exact request is for: that of Live as the caller gave it, later that of what our own apply has
	// just made of it; "" when there is none.
	given string
	// inputs is what the content depends on, as the caller saw it.
	inputs string
	now    time.Time
	// pending tells that the next call has to look closer, although the content is in place.
	pending bool
	// force tells that fields of others are taken, madeRoom that this call took over what was in the way.
	force, madeRoom bool
	// surplus identifies what the object has more than the content while that is in place.
	surplus digest
	// whole is the content with what is yielded, begun how much of that is new.
	whole *content
	begun int
	*content
	entries []fieldowners.Entry
	result  Result
}

func (a *Applier) apply(ctx context.Context, in Intent, f finish) (Result, error) {
	if isNil(in.Live) {
		in.Live = nil
	}
	sent, err := identify(in.Desired)
	if err != nil {
		return Result{}, err
	}
	c := &call{Applier: a, Intent: in, finish: f, sent: in.Rules.mark(sent), now: a.opts.Clock.Now()}
	var uid types.UID
	if in.Live != nil {
		uid, c.given = in.Live.GetUID(), in.Live.GetResourceVersion()
	}
	c.record = a.memory.of(uid)
	defer func() { c.record.Unlock() }() // of an object that is created, it is another one by then
	if c.remembered() {
		c.result = Result{Outcome: Unchanged, Object: in.Live, Yielded: c.record.yielded, Remembered: true}
	} else {
		c.inputs, c.result.Yielded = c.dependsOn(), c.record.yielded
		err = c.run(ctx)
	}
	return c.counted(err)
}

// remembered reports whether this content is known to be in place at this version of the object, with nothing left to tell.
func (c *call) remembered() bool {
	return c.Live != nil && c.record.known && !c.record.doubt && c.record.sent == c.sent &&
		c.record.version == c.Live.GetResourceVersion() && len(c.record.unsticky) == 0 && c.record.contention.level() == 0
}

// dependsOn is Intent.Inputs and, for a subresource, the generation of the object itself, which no write of ours moves.
func (c *call) dependsOn() string {
	if c.opts.Subresource == "" || c.Live == nil {
		return c.Inputs
	}
	return Generation(c.Live) + c.Inputs
}

// run fills in the result, of which nothing but Yielded has a meaning when there is an error.
func (c *call) run(ctx context.Context) error {
	raw, err := encode(c.Desired)
	if err != nil {
		return err
	}
	u, err := decode(raw, c.opts.Subresource)
	if err != nil {
		return err
	}
	c.record.kind, c.content = u.GetKind(), &content{object: u}
	c.startOver()
	if err := c.look(ctx); err != nil {
		return err
	}
	if c.complete != nil {
		if err := c.complete(u, c.Live, c.now); err != nil {
			return err
		}
	}
	if c.content, err = newContent(u, c.opts.Types, c.opts.Subresource); err != nil {
		return err
	}
	c.digest = c.Rules.mark(c.digest)
	c.whole, c.surplus = c.content, c.knownSurplus()
	if done, err := c.decide(); err != nil || done {
		return err
	}
	return c.send(ctx)
}

// startOver forgets a fight when people ask for something else: they may have settled it.
func (c *call) startOver() {
	asked := digestOf(c.Inputs)
	if c.opts.Subresource != "" {
		asked = digestOf(Generation(c.Live))
	}
	if c.record.asked != asked {
		c.record.asked, c.record.contention, c.record.contended, c.record.refused = asked, brake{}, nil, refusal{}
		c.record.inTheWay = nil
	}
}

// look makes sure that Live can be compared with and is not older than what we wrote.
func (c *call) look(ctx context.Context) error {
	if c.Live == nil {
		return nil
	}
	if err := c.sameVersion(); err != nil {
		return err
	}
	if !c.isBehind() {
		c.memory.answers.Remove(c.Live.GetUID())
	} else if read, err := c.catchUp(ctx); err != nil {
		return err
	} else if read {
		c.keep(c.Live)
	}
	return c.takeOver(ctx)
}

// sameVersion refuses a live object of another API version than the content's: their fields cannot be compared.
func (c *call) sameVersion() error {
	gvk, err := c.opts.Client.GroupVersionKindFor(c.Live)
	if err != nil {
		return fmt.Errorf("find kind of live object %q: %w", c.Live.GetName(), err)
	}
	if gvk != c.object.GroupVersionKind() {
		return Invalid("apply configuration is of %s, the live object of %s: read and apply the same version", c.object.GroupVersionKind(), gvk)
	}
	return nil
}

// isBehind reports whether the live object is older than our own last write.
func (c *call) isBehind() bool {
	return c.record.wrote != "" && isOlder(c.Live.GetResourceVersion(), c.record.wrote)
}

// catchUp replaces a live object that is behind by what the API server answered to our last write or, when that is forgotten or long
// ago, by what it has now: versions go back when an API server is restored from a backup. It reports whether it read that.
func (c *call) catchUp(ctx context.Context) (bool, error) {
	if answer := c.memory.answer(c.Live.GetUID(), c.now); answer != nil {
		c.Live = answer
		return false, nil
	}
	// Whatever the old object says, the request then tells what is true.
	c.record.doubt, c.record.last = true, digest{}
	if c.opts.Reader == nil {
		return false, nil
	}
	fresh, err := c.read(ctx)
	if err != nil || fresh.GetUID() != c.Live.GetUID() {
		return false, client.IgnoreNotFound(err)
	}
	c.record.doubt = false
	c.Live, err = c.inScheme(fresh)
	return err == nil, err
}

// isOlder reports whether a resourceVersion is older than another one. Of two that cannot be compared neither is.
func isOlder(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}

// keep notes a version that is newer than the cache, for as long as it is.
func (c *call) keep(o client.Object) {
	c.record.wrote = o.GetResourceVersion()
	c.memory.answers.Add(o.GetUID(), answer{o, c.now})
}

func (c *call) owner() fieldowners.Owner {
	return fieldowners.Owner{
		Manager: c.opts.FieldManager, Operation: metav1.ManagedFieldsOperationApply,
		Subresource: c.opts.Subresource, APIVersion: c.object.GetAPIVersion(),
	}
}

// remember notes that the content is in place at a version of the live object.
func (c *call) remember(version string) {
	r := c.record
	r.known, r.version, r.sent, r.content, r.surplus = true, version, c.sent, c.digest, c.surplus
	r.inputs, r.epoch, r.unsticky, r.doubt, r.refused = digestOf(c.inputs), c.epoch.Load(), nil, false, refusal{}
	r.granted = false
	c.begun = added(c.result.Yielded, r.yielded)
	r.yielded = c.result.Yielded
	if c.pending {
		r.version = ""
	}
}

// counted closes a call: it is counted, and the result tells whether its outcome is a new one.
func (c *call) counted(err error) (Result, error) {
	outcome := c.result.Outcome
	if err != nil {
		outcome, c.result = outcomeError, Result{Yielded: c.result.Yielded, RetryAfter: c.result.RetryAfter}
	}
	callsTotal.WithLabelValues(c.record.kind, c.opts.Subresource, string(outcome)).Inc()
	if err == nil && c.result.Held() {
		heldTotal.WithLabelValues(c.record.kind, c.opts.Subresource, string(outcome)).Inc()
	}
	c.result.Began = c.record.outcome != outcome
	c.countConflicts()
	c.record.outcome = outcome
	return c.result, err
}
