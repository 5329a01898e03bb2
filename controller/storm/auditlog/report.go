package auditlog

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/hduolab/quell/controller/fieldowners"
	"github.com/hduolab/quell/controller/storm"
	"github.com/hduolab/quell/controller/storm/timeline"
)

// Report is what audit logs show.
type Report struct {
	// From the first to the last request.
	From, To time.Time
	// Lines that were read, and Requests, each counted once at its end.
	Lines, Requests int64
	// Broken lines, and Examples of them.
	Broken   int64
	Examples []Broken
	// Levels count the requests by audit level.
	Levels map[string]int64
	// Writes is what is known of the objects.
	Writes storm.Report
	// Findings of repeated requests, by their peak.
	Findings []Finding
	// Users, Agents, Verbs and Objects by requests.
	Users, Agents, Verbs []Count[string]
	Objects              []Count[storm.Key]
	// WritesByObject and WritesByManager over time, of those that write most; a manager is without an API version.
	WritesByObject  timeline.Rates[storm.Key]
	WritesByManager timeline.Rates[fieldowners.Owner]
}

// IsStorm reports whether anything was found.
func (r Report) IsStorm() bool {
	return len(r.Findings) > 0 || slices.ContainsFunc(r.Writes.Findings, func(f storm.Finding) bool { return f.IsStorm })
}

// SeesVersions reports whether any event told of an object's content, without which neither no-ops nor fields can be seen.
func (r Report) SeesVersions() bool { return r.Levels["RequestResponse"] > 0 }

// Report gives what was found so far. It changes nothing, and reading may go on.
func (a *Analysis) Report() Report {
	r := Report{
		From: a.from, To: a.to, Lines: a.lines, Requests: int64(a.tally.verbs.Total()), Broken: a.broken, Examples: slices.Clone(a.examples),
		Levels: maps.Clone(a.levels), Writes: a.detector.Report(a.to), Findings: a.tally.findings(),
		Users: a.tally.users.most(), Agents: a.tally.agents.most(), Verbs: a.tally.verbs.most(),
		Objects: a.tally.objects.most(), WritesByObject: a.objects.Rates(shownLines), WritesByManager: a.managers.Rates(shownLines),
	}
	slices.SortStableFunc(r.Findings, func(x, y Finding) int {
		return cmp.Or(cmp.Compare(y.Peak, x.Peak), cmp.Compare(y.Requests, x.Requests), cmp.Compare(x.Key.Object.String(), y.Key.Object.String()))
	})
	return r
}
