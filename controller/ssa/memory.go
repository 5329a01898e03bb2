package ssa

import (
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/hduolab/quell/controller/fieldowners"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Bounds of what an Applier remembers.
const (
	// DefaultRemember is how many objects an Applier remembers, at about half a KiB each. An object beyond that is compared
	// anew at each call, and its pauses start over.
	DefaultRemember = 1 << 17
	// rememberAnswers is how many answers of the API server are kept until the cache has caught up with them.
	rememberAnswers = 512
	// trustAnswers is how long an answer counts for more than a cache that is behind it. A cache that works is not that far behind.
	trustAnswers = time.Minute
)

// record is what an Applier remembers of one object; its mutex is held during a call.
type record struct {
	sync.Mutex
	// known tells that the fields below are set.
	known bool
	// version is the resourceVersion at which content was last known to be in place; wrote is that of our own last write, or of what was
	// read past the cache since.
	version, wrote string
	// at is the time of our own last write.
	at time.Time
	// sent is the digest of the apply configuration as the caller gave it, content that of its canonical form.
	sent, content digest
	// surplus identifies what the object had more than content, within atomic values, when that was last in place.
	surplus digest
	// kind of the object, for metrics.
	kind string
	// inputs is the digest of what the content depended on.
	inputs digest
	// doubt tells that the object may have changed by our own hand without our knowing: the answer to a request with digest last
	// is missing, or forgotten.
	doubt bool
	last  digest
	// granted tells that the last call was allowed to write and ended Stale: the next one need not ask again.
	granted bool
	// stale paces exact writes that meet another version.
	stale brake
	// denied tells that managedFields cannot be patched, for former managers as for what is in the way.
	denied bool
	// outcome of the last call.
	outcome Outcome
	// unsticky are the paths of content that the API server does not keep, under schema epoch.
	unsticky []Reason
	epoch    int64
	// contention counts how often others took content back, churn how often content changed without its inputs, limit all writes.
	contention, churn, limit brake
	// refused is the last content that was refused.
	refused refusal
	// asked identifies what people ask of the object, as of the last call; when it changes, a fight starts over.
	asked digest
	// contended are the reasons of the fight that the contention brake is on for.
	contended []Reason
	// yielded are the fields that were left to others when the content was last in place.
	yielded []Reason
	// room is what was taken over because it was in the way and has not been removed yet, inTheWay what was last removed.
	room, inTheWay []Reason
}

// age is how long ago our own last write was. A clock that was set back starts it over.
func (r *record) age(now time.Time) time.Duration {
	if now.Before(r.at) {
		r.at = now
	}
	return now.Sub(r.at)
}

// memory maps UIDs, which no two objects ever share, to records and to recent answers.
type memory struct {
	records *lru.Cache[types.UID, *record]
	answers *lru.Cache[types.UID, answer]
}

// answer is an object as the API server had it at a time.
type answer struct {
	client.Object
	at time.Time
}

func newMemory(size int) (*memory, error) {
	records, err := lru.New[types.UID, *record](size)
	if err != nil {
		return nil, err
	}
	answers, err := lru.New[types.UID, answer](rememberAnswers)
	return &memory{records: records, answers: answers}, err
}

// of returns the record of an object, locked. An object without a UID, one that does not exist yet, has a fresh one.
func (m *memory) of(uid types.UID) *record {
	r, known := m.records.Get(uid)
	if !known {
		r = &record{}
		if raced, found := m.add(uid, r); found {
			r = raced
		}
	}
	r.Lock()
	return r
}

// add remembers a new record, unless there is one by now, which it returns. What does not exist yet is not remembered.
func (m *memory) add(uid types.UID, r *record) (*record, bool) {
	if uid == "" {
		return nil, false
	}
	raced, found, _ := m.records.PeekOrAdd(uid, r)
	return raced, found
}

// answer is the last answer for an object, nil when it is forgotten or from another time than the last minute.
func (m *memory) answer(uid types.UID, now time.Time) client.Object {
	a, found := m.answers.Get(uid)
	if age := now.Sub(a.at); !found || age < 0 || age > trustAnswers {
		return nil
	}
	return a.Object
}

func (m *memory) forget(uid types.UID) {
	m.records.Remove(uid)
	m.answers.Remove(uid)
}

// refusal is content that the API server refused, with its answer: conflicts, or an error that no retry can heal.
type refusal struct {
	digest    digest
	conflicts []fieldowners.Conflict
	answer    error
	// again paces asking again.
	again brake
}
