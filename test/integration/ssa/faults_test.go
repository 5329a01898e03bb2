package ssa_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/hduolab/quell/controller/ssa"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var errReset = &net.OpError{Op: "read", Err: errors.New("connection reset by peer")}

// answer makes a fault that answers in place of the API server, after it has committed the request if committed is set.
func answer(code int, status string, committed bool) fault {
	return func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if committed {
			if err := pass(r, next); err != nil {
				return nil, err
			}
		}
		header := http.Header{"Content-Type": {"application/json"}}
		return &http.Response{StatusCode: code, Header: header, Body: io.NopCloser(bytes.NewBufferString(status)), Request: r}, nil
	}
}

// lose makes a fault that loses the request, or the answer if committed is set.
func lose(err error, committed bool) fault {
	return func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if committed {
			if err := pass(r, next); err != nil {
				return nil, err
			}
		}
		return nil, err
	}
}

func pass(r *http.Request, next http.RoundTripper) error {
	response, err := next.RoundTrip(r)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

func failure(code int, reason string) string {
	return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"injected","reason":%q,"code":%d}`, reason, code)
}

var _ = Describe("a request that fails", func() {
	faults := map[string]func(committed bool) fault{
		"500":                           func(c bool) fault { return answer(500, failure(500, "InternalError"), c) },
		"503 without a body":            func(c bool) fault { return answer(503, "", c) },
		"409 of the optimistic lock":    func(c bool) fault { return answer(409, failure(409, "Conflict"), c) },
		"429":                           func(c bool) fault { return answer(429, failure(429, "TooManyRequests"), c) },
		"504 of the API server's limit": func(c bool) fault { return answer(504, failure(504, "Timeout"), c) },
		"timeout":                       func(c bool) fault { return lose(context.DeadlineExceeded, c) },
		"connection reset":              func(c bool) fault { return lose(errReset, c) },
	}
	for name, broken := range faults {
		It("is an error, and the next call makes up for it: "+name, func(ctx SpecContext) {
			clock, thing := newClock(), newThing(ctx)
			w := newWriter(clock)
			live := written(ctx, w, thing, readyIs("False"))
			wire.breakWith(broken(false))
			clock.Step(1100 * time.Millisecond)
			_, err := w.Write(ctx, ssa.Intent{Desired: status(thing, readyIs("True")), Live: live})
			Expect(err).To(HaveOccurred())
			Expect(ssa.IsTerminal(err)).To(BeFalse(), "%v", err)
			wire.heal()
			Expect(wire.requests()).NotTo(BeEmpty())
			Expect(fetchThing(ctx, thing).GetResourceVersion()).To(Equal(live.GetResourceVersion()))
			clock.Step(1100 * time.Millisecond)
			Expect(write(ctx, w, status(thing, readyIs("True")), live).Outcome).To(Equal(ssa.Applied))
			Expect(wire.requests()).To(HaveLen(1))
			after := fetchThing(ctx, thing)
			Expect(conditionOf(after, "Ready")).To(HaveKeyWithValue("lastTransitionTime", "2026-03-01T12:00:02Z"))
			Expect(write(ctx, w, status(thing, readyIs("True")), after).Outcome).To(Equal(ssa.Unchanged))
			quiet(ctx, after)
		})

		It("after the API server committed it costs nothing more once the cache has it: "+name, func(ctx SpecContext) {
			clock, thing := newClock(), newThing(ctx)
			w := newWriter(clock)
			live := written(ctx, w, thing, readyIs("False"))
			wire.breakWith(broken(true))
			clock.Step(1100 * time.Millisecond)
			_, err := w.Write(ctx, ssa.Intent{Desired: status(thing, readyIs("True")), Live: live})
			Expect(err).To(HaveOccurred())
			wire.heal()
			wire.requests()
			after := fetchThing(ctx, thing)
			Expect(field(after, "status", "s")).To(Equal("True"))
			clock.Step(1100 * time.Millisecond)
			Expect(write(ctx, w, status(thing, readyIs("True")), after).Outcome).To(Equal(ssa.Unchanged))
			quiet(ctx, after)
			By("going back to the content of before, which is ours and no contention")
			for i := range 10 {
				s := map[bool]string{true: "False", false: "True"}[i%2 == 0]
				Expect(write(ctx, w, status(thing, readyIs(s)), fetchThing(ctx, thing)).Outcome).To(Equal(ssa.Applied))
			}
		})
	}

	It("after the API server committed it costs one request that changes no value while the cache is old", func(ctx SpecContext) {
		clock, thing := newClock(), newThing(ctx)
		w := newWriter(clock)
		live := written(ctx, w, thing, content{"s": "a"})
		wire.breakWith(lose(errReset, true))
		_, err := w.Write(ctx, ssa.Intent{Desired: status(thing, content{"s": "b"}), Live: live})
		Expect(err).To(HaveOccurred())
		wire.heal()
		wire.requests()
		committed := fetchThing(ctx, thing)
		for range 3 {
			write(ctx, w, status(thing, content{"s": "b"}), live)
		}
		Expect(wire.requests()).To(HaveLen(1))
		Expect(fetchThing(ctx, thing).GetResourceVersion()).To(Equal(committed.GetResourceVersion()))
	})

	It("with a canceled context is an error, too, and sends nothing later", func(ctx SpecContext) {
		clock, thing := newClock(), newThing(ctx)
		canceled, cancel := context.WithCancel(ctx)
		cancel()
		_, err := newWriter(clock).Write(canceled, ssa.Intent{Desired: status(thing, content{"s": "a"}), Live: fetchThing(ctx, thing)})
		Expect(err).To(MatchError(context.Canceled))
	})
})
