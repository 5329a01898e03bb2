package model

import (
	"encoding/json"
	"fmt"
	"sync"
)

// maxRemembered bounds what a memory holds; beyond that it begins anew. An outcome takes some 20 KiB.
const maxRemembered = 20000

// memory remembers what requests led to: the same request in the same state of its object at the same time leads to the same, and an
// exploration sends it again and again. Safe for concurrent use.
type memory struct {
	mu    sync.Mutex
	known map[Digest]outcome
}

// of is the outcome of a question, decided when it is asked for the first time.
func (m *memory) of(question Digest, decide func() outcome) outcome {
	m.mu.Lock()
	o, found := m.known[question]
	m.mu.Unlock()
	if found {
		return o
	}
	o = decide()
	m.mu.Lock()
	defer m.mu.Unlock()
	if first, found := m.known[question]; found {
		return first
	}
	if len(m.known) >= maxRemembered {
		m.known = map[Digest]outcome{}
	}
	m.known[question] = o
	return o
}

// question is everything on which the outcome of a request depends.
func (s *Server) question(key Key, q Request) Digest {
	raw, err := json.Marshal(q)
	if err != nil {
		panic(fmt.Sprintf("model: encode %s: %v", q, err))
	}
	d := newDigester()
	d.hash.Write(raw)
	d.version(s.objects[key])
	c := s.counters[key]
	d.number(uint64(c.version))
	d.number(uint64(c.uid))
	d.number(uint64(s.second().Unix()))
	return d.sum()
}
