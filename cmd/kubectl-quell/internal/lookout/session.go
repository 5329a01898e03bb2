package lookout

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hduolab/quell/cmd/kubectl-quell/internal/show"
	"github.com/hduolab/quell/controller/storm"
	"github.com/hduolab/quell/controller/storm/live"
)

// source is what a session asks.
type source interface {
	Report() storm.Report
	Watches() []live.Watch
}

// session is one run: what was seen until now, and whom it is told to.
type session struct {
	source  source
	scope   *scope
	from    time.Time
	history history
	record  *record
	teller  teller
	// latest of what the source told, and when that was.
	latest  storm.Report
	watches []live.Watch
	to      time.Time
	// saw is whether anything was watched at any time.
	saw bool
}

// teller shows a session to somebody while it runs.
type teller interface {
	// tell is called after each step with what is new.
	tell(s *session, news []happening)
	// tick is called more often, between the steps.
	tick(s *session)
	// done is called once, in the end.
	done()
}

const (
	// interval at which the source is asked.
	interval = time.Second
	// ticks in an interval.
	ticks = 5
)

// watch runs a session until its time is over, or Ctrl-C.
func (o options) watch(ctx context.Context, sc *scope) (*session, error) {
	source := live.New(live.Options{
		Metadata: sc.metadata, Dynamic: sc.dynamic, Storm: storm.Options{Rate: float64(o.rate)}, Namespaces: sc.namespaces,
	})
	source.Watch(sc.resources)
	running, stop := context.WithCancel(context.WithoutCancel(ctx)) // it is asked once more after ctx is done
	if length := o.length(); length > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, length)
		defer cancel()
	}
	var ended sync.WaitGroup
	ended.Go(func() { source.Run(running) })
	defer ended.Wait()
	defer stop()
	fmt.Fprintln(o.frame.ErrOut, o.greeting(sc))
	return o.follow(ctx, source, sc)
}

func (o options) greeting(sc *scope) string {
	where := "in all namespaces"
	if len(sc.namespaces) > 0 {
		where = "in the namespace " + sc.namespaces[0]
	}
	until := "until Ctrl-C"
	if length := o.length(); length > 0 {
		until = fmt.Sprintf("for %s", length)
	}
	return show.Escape(fmt.Sprintf("watching %s %s %s", sc.words, where, until))
}

// follow asks the source until ctx is done.
func (o options) follow(ctx context.Context, source source, sc *scope) (*session, error) {
	from := o.frame.Now()
	s := &session{source: source, scope: sc, from: from, to: from, record: newRecord(from), teller: o.teller()}
	ticker := time.NewTicker(interval / ticks)
	defer ticker.Stop()
	defer s.teller.done()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			s.step(o.frame.Now())
			if !s.saw {
				return nil, cover(s.watches).blindness(sc.namespaces)
			}
			return s, nil
		case <-ticker.C:
		}
		if n%ticks > 0 {
			s.teller.tick(s)
			continue
		}
		s.step(o.frame.Now())
		if c := cover(s.watches); !s.saw && c.isBlind() && len(c.lost[live.Failing]) == 0 { // which may still come
			return nil, c.blindness(sc.namespaces)
		}
	}
}

// step asks the source once.
func (s *session) step(now time.Time) {
	s.latest, s.watches, s.to = s.source.Report(), s.source.Watches(), now
	s.saw = s.saw || cover(s.watches).watching > 0
	s.record.add(s.latest, now)
	s.teller.tell(s, s.history.observe(s.latest.Findings, now))
}

// report of all that was seen.
func (s *session) report() Report {
	r := newReport(s.latest, s.watches, &s.history, s.from, s.to)
	r.Namespaces, r.CustomResourcesOnly = s.scope.namespaces, s.scope.onlyCustom
	r.Unseen = append(r.Unseen, s.scope.unseen...)
	r.Unseen = append(r.Unseen, cover(s.watches).unseen()...)
	return r
}
