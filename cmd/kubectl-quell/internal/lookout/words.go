package lookout

import (
	"fmt"
	"strings"
	"time"

	"github.com/hduolab/quell/cmd/kubectl-quell/internal/show"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/storms"
	"github.com/hduolab/quell/controller/storm/live"
)

// coverage is what the watches see, in words.
type coverage struct {
	watching, starting, gaps int
	// lost are those that are not watched, by their state.
	lost map[live.State][]live.Watch
}

func cover(watches []live.Watch) coverage {
	c := coverage{lost: map[live.State][]live.Watch{}}
	for _, w := range watches {
		c.gaps += w.Gaps
		switch w.State {
		case live.Watching:
			c.watching++
		case live.Starting:
			c.starting++
		default:
			c.lost[w.State] = append(c.lost[w.State], w)
		}
	}
	return c
}

// reasons for which a resource is not watched, in the order in which they are told.
var reasons = []struct {
	state live.State
	words string
}{{live.Forbidden, "forbidden"}, {live.NotFound, "not served"}, {live.Failing, "failing"}}

// words such as `5 resources watched, 2 forbidden (secrets, roles.rbac.authorization.k8s.io), 1 gap`.
func (c coverage) words() string {
	parts := []string{show.Count(c.watching, "resource") + " watched"}
	if c.starting > 0 {
		parts = append(parts, fmt.Sprintf("%d starting", c.starting))
	}
	for _, r := range reasons {
		if lost := c.lost[r.state]; len(lost) > 0 {
			parts = append(parts, fmt.Sprintf("%d %s (%s)", len(lost), r.words, names(lost)))
		}
	}
	if c.gaps > 0 {
		return strings.Join(append(parts, show.Count(c.gaps, "gap")), ", ")
	}
	return strings.Join(append(parts, "no gaps"), ", ")
}

func names(watches []live.Watch) string {
	var all []string
	for _, w := range watches {
		all = append(all, show.Escape(w.GroupResource().String()))
	}
	return storms.Short(all)
}

// unseen are the same things, each in a sentence.
func (c coverage) unseen() []string {
	var told []string
	for _, r := range reasons {
		for _, w := range c.lost[r.state] {
			line := fmt.Sprintf("%s: %s", w.GroupResource(), r.words)
			if w.Err != nil {
				line += ", " + w.Err.Error()
			}
			told = append(told, line)
		}
	}
	if c.starting > 0 {
		told = append(told, show.Count(c.starting, "resource")+" whose watch had not begun")
	}
	if c.gaps > 0 {
		told = append(told, show.Count(c.gaps, "gap")+" in the watches, in each of which any number of writes may have been missed")
	}
	return told
}

// isBlind reports whether nothing can be seen and no watch is on its way.
func (c coverage) isBlind() bool { return c.watching+c.starting == 0 }

// blindness is the error that nothing can be watched.
func (c coverage) blindness(namespaces []string) error {
	where := "in all namespaces"
	if len(namespaces) > 0 {
		where = "in the namespace " + strings.Join(namespaces, ", ")
	}
	if lost := c.lost[live.Forbidden]; len(lost) > 0 {
		return fmt.Errorf("nothing can be watched: it takes the rights to list and watch %s %s: %w", names(lost), where, lost[0].Err)
	}
	for _, lost := range c.lost {
		return fmt.Errorf("nothing can be watched: %s: %w", names(lost), lost[0].Err)
	}
	return fmt.Errorf("nothing could be watched: the API server did not answer in time")
}

// line tells a turn of a storm.
func (h happening) line() string {
	s := now(h.spell.finding)
	object := s.Object.Words()
	switch h.turn {
	case ends:
		return fmt.Sprintf("the storm of %s has ended after %s: %s", object, lasted(h.spell.found, h.spell.ended), s.Verdict)
	case changes:
		return fmt.Sprintf("the storm of %s has another verdict: %s, was %s; %s", object, s.Verdict, h.before, doings(s))
	}
	return fmt.Sprintf("storm: %s: %s; %s", object, s.Verdict, doings(s))
}

func doings(s storms.Storm) string {
	text := fmt.Sprintf("%s writes/s by %s", storms.Number(s.Rate), storms.Short(s.Managers()))
	if paths := s.Paths(); len(paths) > 0 {
		text += " to " + storms.Short(paths)
	}
	return text
}

// lasted is a length of time as people say it.
func lasted(from, to time.Time) time.Duration { return to.Sub(from).Round(time.Second) }
