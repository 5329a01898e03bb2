package faults_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

var (
	errReset = &net.OpError{Op: "read", Err: errors.New("connection reset by peer")}
	errDead  = errors.New("this process has died")
)

// call is one request of an operator.
type call struct {
	// verb is the HTTP method, and WATCH or LIST for a GET of many objects.
	verb                                   string
	namespace, resource, name, subresource string
	// code is the answer's; 0 when none came.
	code int
}

func (c call) String() string {
	return fmt.Sprintf("%s %s/%s %s %d", c.verb, c.resource, c.subresource, c.name, c.code)
}

func callOf(r *http.Request) call {
	c := call{verb: r.Method}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if len(parts) > 0 && parts[0] == "apis" {
		parts = parts[1:]
	}
	parts = parts[min(2, len(parts)):] // group or "api", and version
	if len(parts) > 1 && parts[0] == "namespaces" {
		c.namespace, parts = parts[1], parts[2:]
	}
	for i, field := range []*string{&c.resource, &c.name, &c.subresource} {
		if i < len(parts) {
			*field = parts[i]
		}
	}
	switch {
	case r.Method == http.MethodGet && r.URL.Query().Get("watch") != "":
		c.verb = "WATCH"
	case r.Method == http.MethodGet && c.resource != "" && c.name == "":
		c.verb = "LIST"
	}
	return c
}

// ofCache reports whether a call fills or follows the cache, as opposed to what a reconcile asks for.
func (c call) ofCache() bool {
	return c.verb == "WATCH" || c.verb == "LIST" && c.resource != "pods" && c.resource != "replicasets"
}

// ofLoop are the calls of reconciles: everything but the cache, discovery and leader election.
func ofLoop(c call) bool { return c.namespace != "" && c.resource != "leases" && !c.ofCache() }

// aboutChildren are the reads and writes of children. How often the status is written, and the Pods and ReplicaSets of a slow rollout
// are looked at, depends on how fast Pods become ready.
func aboutChildren(c call) bool {
	return ofLoop(c) && !slices.Contains([]string{"apps", "events", "pods", "replicasets"}, c.resource)
}

func isStatusApply(c call) bool { return c.resource == "apps" && c.subresource == "status" }

// isChildWrite is a write of a child.
func isChildWrite(c call) bool {
	return aboutChildren(c) && c.verb != http.MethodGet && c.verb != "LIST"
}

// isWrite is a write of a child or of a status.
func isWrite(c call) bool { return isChildWrite(c) || isStatusApply(c) }

// fault answers in place of the API server, to which send passes the request on. It returns nil, nil for a call that it leaves alone.
type fault func(c call, r *http.Request, send http.RoundTripper) (*http.Response, error)

// wire is what lies between one operator and the API server: it counts what the operator sends, and breaks it.
type wire struct {
	mu      sync.Mutex
	calls   []call
	fault   fault
	dead    bool
	lag     time.Duration
	streams map[*stream]bool
}

func newWire() *wire { return &wire{streams: map[*stream]bool{}} }

// wrap is to be called with the transport that reaches the API server.
func (w *wire) wrap(next http.RoundTripper) http.RoundTripper { return &hop{w, next} }

// breakWith puts a fault on the wire, nil for none.
func (w *wire) breakWith(f fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fault = f
}

// delay makes what watches tell arrive so much later.
func (w *wire) delay(lag time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lag = lag
}

// die loses everything that the operator sends from now on.
func (w *wire) die() {
	w.mu.Lock()
	w.dead = true
	w.mu.Unlock()
	w.cut()
}

func (w *wire) isDead() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dead
}

// cut ends all watches in the middle, and returns how many.
func (w *wire) cut() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(w.streams)
	for s := range w.streams {
		s.end(io.ErrUnexpectedEOF)
	}
	clear(w.streams)
	return n
}

// sent are the calls since the last forget that are kept.
func (w *wire) sent(keep func(call) bool) []call {
	w.mu.Lock()
	defer w.mu.Unlock()
	var kept []call
	for _, c := range w.calls {
		if keep(c) {
			kept = append(kept, c)
		}
	}
	return kept
}

func (w *wire) count(keep func(call) bool) int { return len(w.sent(keep)) }

func (w *wire) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = nil
}

func (w *wire) note(c call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, c)
}

func (w *wire) state() (fault, bool, time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.fault, w.dead, w.lag
}

// hop is a wire with the transport of one client.
type hop struct {
	*wire
	next http.RoundTripper
}

func (h *hop) RoundTrip(r *http.Request) (*http.Response, error) {
	c := callOf(r)
	broken, dead, _ := h.state()
	if dead {
		return nil, errDead
	}
	var response *http.Response
	var err error
	if broken != nil {
		response, err = broken(c, r, h.next)
	}
	if response == nil && err == nil {
		response, err = h.next.RoundTrip(r)
	}
	if response != nil {
		c.code = response.StatusCode
	}
	h.note(c)
	if err == nil && c.verb == "WATCH" && response.StatusCode == http.StatusOK {
		response.Body = h.follow(response.Body)
	}
	return response, err
}

// stream is the body of a watch, of which every part arrives as late as the wire says when it comes.
type stream struct {
	*io.PipeReader
	wire  *wire
	body  io.Closer
	pipe  *io.PipeWriter
	ended chan struct{}
	once  sync.Once
}

type part struct {
	bytes []byte
	at    time.Time
}

func (w *wire) follow(body io.ReadCloser) io.ReadCloser {
	reader, writer := io.Pipe()
	s := &stream{PipeReader: reader, wire: w, body: body, pipe: writer, ended: make(chan struct{})}
	parts := make(chan part, 1<<14)
	w.mu.Lock()
	w.streams[s] = true
	w.mu.Unlock()
	go s.read(body, parts)
	go s.write(parts)
	return s
}

func (s *stream) read(body io.Reader, parts chan<- part) {
	defer close(parts)
	for {
		buffer := make([]byte, 32<<10)
		n, err := body.Read(buffer)
		if n > 0 {
			select {
			case parts <- part{buffer[:n], time.Now()}:
			case <-s.ended:
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (s *stream) write(parts <-chan part) {
	for p := range parts {
		_, _, lag := s.wire.state()
		timer := time.NewTimer(time.Until(p.at.Add(lag)))
		select {
		case <-timer.C:
		case <-s.ended:
			timer.Stop()
			return
		}
		if _, err := s.pipe.Write(p.bytes); err != nil {
			return
		}
	}
	s.end(io.EOF)
}

func (s *stream) end(err error) {
	s.once.Do(func() { close(s.ended) })
	s.pipe.CloseWithError(err)
	s.body.Close()
}

// Close is called by the client that reads the watch.
func (s *stream) Close() error {
	s.end(io.EOF)
	s.wire.mu.Lock()
	defer s.wire.mu.Unlock()
	delete(s.wire.streams, s)
	return s.PipeReader.Close()
}

// answered is a fault's answer, sent in place of the API server's, which gets the request before if committed is set.
func answered(r *http.Request, send http.RoundTripper, committed bool, code int, reason string, header http.Header) (*http.Response, error) {
	if committed {
		if err := commit(r, send); err != nil {
			return nil, err
		}
	} else if r.Body != nil {
		r.Body.Close()
	}
	body := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"injected","reason":%q,"code":%d}`, reason, code)
	if header == nil {
		header = http.Header{}
	}
	header.Set("Content-Type", "application/json")
	return &http.Response{
		Status: http.StatusText(code), StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(bytes.NewBufferString(body)), Request: r,
	}, nil
}

// lost is a fault that loses the request, or the answer if committed is set.
func lost(r *http.Request, send http.RoundTripper, committed bool, err error) (*http.Response, error) {
	if committed {
		if err := commit(r, send); err != nil {
			return nil, err
		}
	} else if r.Body != nil {
		r.Body.Close()
	}
	return nil, err
}

// commit has the API server do a request, and drops the answer.
func commit(r *http.Request, send http.RoundTripper) error {
	response, err := send.RoundTrip(r)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, response.Body)
	return errors.Join(err, response.Body.Close())
}

// perObject counts calls by what they are about.
func perObject(calls []call) map[string]int {
	counts := map[string]int{}
	for _, c := range calls {
		counts[strings.TrimSuffix(c.resource+"/"+c.subresource, "/")+" "+c.name]++
	}
	return counts
}

// most is the highest of the counts.
func most(counts map[string]int) int {
	n := 0
	for _, count := range counts {
		n = max(n, count)
	}
	return n
}

// words lists calls, one a line.
func words(calls []call) string {
	lines := make([]string, len(calls))
	for i, c := range calls {
		lines[i] = c.String()
	}
	return strings.Join(slices.Clip(lines), "\n")
}
