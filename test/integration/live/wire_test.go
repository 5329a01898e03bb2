package live_test

import (
	"io"
	"net/http"
	"net/url"
	"sync"
)

// wire is what a source sends, and what it gets.
type wire struct {
	next  http.RoundTripper
	mutex sync.Mutex
	sent  []*exchange
	// answer, unless nil, stands in for the API server where it gives something.
	answer func(*http.Request) *http.Response
}

// exchange is a request and its answer.
type exchange struct {
	path  string
	query url.Values
	wire  *wire
	body  io.ReadCloser
	// guarded by wire.mutex:
	size   int
	isOpen bool
}

func (w *wire) over(next http.RoundTripper) http.RoundTripper {
	w.next = next
	return w
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mutex.Lock()
	answer := w.answer
	w.mutex.Unlock()
	if answer != nil {
		if response := answer(r); response != nil {
			return response, nil
		}
	}
	response, err := w.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	e := &exchange{path: r.URL.Path, query: r.URL.Query(), wire: w, body: response.Body, isOpen: true}
	response.Body = e
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.sent = append(w.sent, e)
	return response, nil
}

// WrappedRoundTripper is for whoever closes idle connections.
func (w *wire) WrappedRoundTripper() http.RoundTripper { return w.next }

func (e *exchange) Read(p []byte) (int, error) {
	n, err := e.body.Read(p)
	e.wire.mutex.Lock()
	defer e.wire.mutex.Unlock()
	e.size += n
	return n, err
}

func (e *exchange) Close() error {
	e.wire.mutex.Lock()
	e.isOpen = false
	e.wire.mutex.Unlock()
	return e.body.Close()
}

func (e *exchange) isWatch() bool { return e.query.Get("watch") != "" }

// isFull is whether one object is watched in full.
func (e *exchange) isFull() bool { return e.isWatch() && e.query.Get("fieldSelector") != "" }

// count counts the exchanges that fit, and those of them that are still open.
func (w *wire) count(fits func(*exchange) bool) (all, open int) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for _, e := range w.sent {
		if fits(e) {
			all++
			if e.isOpen {
				open++
			}
		}
	}
	return all, open
}

// replace has something else answer from now on.
func (w *wire) replace(answer func(*http.Request) *http.Response) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.answer = answer
}

// cut ends all watches as a lost connection does.
func (w *wire) cut() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for _, e := range w.sent {
		if e.isWatch() && e.isOpen {
			_ = e.body.Close()
		}
	}
}
