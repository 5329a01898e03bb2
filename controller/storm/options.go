package storm

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// DefaultRate of writes per second: a write each second is a storm even where its pass takes a while, the fastest known heartbeats,
// which make 0.5, are none.
const DefaultRate = 0.8

// Options are the thresholds of a Detector; every zero value stands for its default.
type Options struct {
	// Rate in writes per second from which an object's needless writes are a storm. Default DefaultRate.
	Rate float64
	// WriterRate in writes per second of one field manager over all objects from which needless writes are a storm however
	// they are spread. Default 25 times Rate.
	WriterRate float64
	// MinSamples is the number of versions below which a verdict is TooLittleEvidence. Half of them are enough where each one
	// bears out a verdict that no progress looks like: DeleteRecreate, APIVersionFlip, OrderFlip, TimestampChurn, DoesNotStick or
	// ManagedFieldsOnly. Default 10.
	MinSamples int
	// MinDuration for which an object must have been written, without a silence of six half-lives, before that is a storm.
	// Default 4s.
	MinDuration time.Duration
	// Persist is how long real changes, which need not be a mistake, or such whose values are not seen, may go on before they
	// are a storm; it counts from when their rate was below half of Rate last. Default 5m. With Retrospective, more than 100 such
	// writes whose values are not seen are one too.
	Persist time.Duration
	// Share of an object's versions that must bear a verdict out; of a Fight it is those of the managers who take part. Default 0.6.
	// A storm takes more: a Finding.Confidence of 0.5 at least, or Persist.
	Share float64
	// FewValues is the number of values up to which a field that returns to earlier ones flaps. Default 4.
	FewValues int
	// HalfLife after which a write counts half in every rate. Default 10s.
	HalfLife time.Duration
	// Counters of the sketch of objects, and of each of those of writers, resources and operations. Default 1024. A rate is
	// too high by at most all writes' rate divided by this.
	Counters int
	// Hot is how many objects keep their last version and a window of changes. Default 128.
	Hot int
	// Window is how many changes a hot object keeps, those with values rather than those without. Default 64.
	Window int
	// Known are the resources whose traffic is no storm, however much there is. Default leases and events.
	Known []schema.GroupResource
	// Retrospective judges objects by the time at which they were written most, as fits a record. Otherwise it is the rate at
	// the time of the report.
	Retrospective bool
}

// KnownTraffic are the resources that are written all the time in a cluster in good order.
var KnownTraffic = []schema.GroupResource{
	{Group: "coordination.k8s.io", Resource: "leases"}, {Resource: "events"}, {Group: "events.k8s.io", Resource: "events"},
}

func (o Options) withDefaults() Options {
	setDefault(&o.Rate, DefaultRate)
	setDefault(&o.WriterRate, 25*o.Rate)
	setDefault(&o.MinSamples, 10)
	setDefault(&o.MinDuration, 4*time.Second)
	setDefault(&o.Persist, 5*time.Minute)
	setDefault(&o.Share, 0.6)
	setDefault(&o.FewValues, 4)
	setDefault(&o.HalfLife, 10*time.Second)
	setDefault(&o.Counters, 1024)
	setDefault(&o.Hot, 128)
	setDefault(&o.Window, 64)
	if o.Known == nil {
		o.Known = KnownTraffic
	}
	return o
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func (o Options) isKnown(r schema.GroupResource) bool { return slices.Contains(o.Known, r) }
