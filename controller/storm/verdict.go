package storm

// Verdict is a kind of storm, or of traffic that is none.
type Verdict string

// The verdicts on what an object's versions show.
const (
	// DeleteRecreate: an object is deleted and created again, each time with another uid.
	DeleteRecreate Verdict = "DeleteRecreate"
	// APIVersionFlip: one manager writes in two API versions in turn, each of which re-labels its managedFields entry.
	APIVersionFlip Verdict = "APIVersionFlip"
	// Fight: two or more managers take a field from each other.
	Fight Verdict = "Fight"
	// OrderFlip: a list keeps its items and changes their order.
	OrderFlip Verdict = "OrderFlip"
	// UnboundedGrowth: a list, map or text only ever grows.
	UnboundedGrowth Verdict = "UnboundedGrowth"
	// MetadataChurn: only annotations or labels change.
	MetadataChurn Verdict = "MetadataChurn"
	// SpecChurn: the generation rises with the writes: a controller writes its own spec, or there is no status subresource.
	SpecChurn Verdict = "SpecChurn"
	// Flapping: one manager moves a field to and fro between few values.
	Flapping Verdict = "Flapping"
	// VolatileText: a text differs in an id, a number or a duration only.
	VolatileText Verdict = "VolatileText"
	// TimestampChurn: only times change.
	TimestampChurn Verdict = "TimestampChurn"
	// CounterChurn: only numbers change, and they only rise: a counter or heartbeat.
	CounterChurn Verdict = "CounterChurn"
	// DoesNotStick: nothing changes, since what the writer claims to own is not stored.
	DoesNotStick Verdict = "DoesNotStick"
	// ManagedFieldsOnly: nothing changes but managedFields and the resourceVersion.
	ManagedFieldsOnly Verdict = "ManagedFieldsOnly"
	// ValuesNotSeen: the same fields are written again and again; metadata alone do not tell their values.
	ValuesNotSeen Verdict = "ValuesNotSeen"
	// RealChanges: the values change in no way that is a known mistake.
	RealChanges Verdict = "RealChanges"
	// Rollout: real changes of many objects of one resource at a time, few of each. It is never a storm.
	Rollout Verdict = "Rollout"
	// Heartbeat: leases, events and leader records. It is never a storm.
	Heartbeat Verdict = "Heartbeat"
	// TooLittleEvidence: fewer versions were seen than a verdict takes.
	TooLittleEvidence Verdict = "TooLittleEvidence"
)

// The verdicts on requests, which only an audit log shows.
const (
	// NoOpWrites: writes that change nothing are sent all the time.
	NoOpWrites Verdict = "NoOpWrites"
	// RejectedRetries: a write is rejected and retried in a loop.
	RejectedRetries Verdict = "RejectedRetries"
	// ReadFlood: a client lists or gets the same over and over.
	ReadFlood Verdict = "ReadFlood"
)

var remedies = map[Verdict]string{
	DeleteRecreate:    "update the object in place; where a field is immutable, recreate on a change of the desired content only",
	APIVersionFlip:    "pin one API version for this manager; make sure that only one version of the operator runs",
	Fight:             "let one manager own the field; take it out of what the other one writes",
	OrderFlip:         "sort the list by its key before writing, and keep the live order of items that are there already",
	UnboundedGrowth:   "put a limit on the list or text and drop the oldest part",
	MetadataChurn:     "do not record each pass in annotations or labels; write them when their meaning changes",
	SpecChurn:         "serve the status subresource and write status through it; do not write the spec of an object you reconcile",
	Flapping:          "write status once at the end of a pass; make sure that only one replica and version of the operator is active",
	VolatileText:      "keep ids, durations and counts out of messages; log them instead",
	TimestampChurn:    "renew a time only when what it dates has changed",
	CounterChurn:      "export the number as a metric, or write it at intervals of minutes",
	DoesNotStick:      "declare the fields in the schema of the CRD, or do not send them",
	ManagedFieldsOnly: "compare with the live object before writing; look for content that is dropped or normalised on storing",
	ValuesNotSeen:     "look at whole versions of the object to see which values change",
	RealChanges:       "find what triggers the writer; put several changes into one write",
	NoOpWrites:        "compare with the live object before sending; a write without effect still costs admission and authorisation",
	RejectedRetries:   "back off exponentially; read the object anew after a 409, and do not retry a 422 unchanged",
	ReadFlood:         "read through an informer's cache instead of asking the API server",
}

// Remedy is the usual cure in one line; "" for what is no storm.
func (v Verdict) Remedy() string { return remedies[v] }

// isNeedless reports whether writes of this kind never make sense at a rate.
func (v Verdict) isNeedless() bool {
	switch v {
	case RealChanges, ValuesNotSeen, Rollout, Heartbeat, TooLittleEvidence:
		return false
	}
	return true
}

// isTelling reports whether a few versions are enough for it: what makes progress never looks like this.
func (v Verdict) isTelling() bool {
	switch v {
	case DeleteRecreate, APIVersionFlip, OrderFlip, TimestampChurn, DoesNotStick, ManagedFieldsOnly:
		return true
	}
	return false
}
