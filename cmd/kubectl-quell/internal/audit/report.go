package audit

import (
	"fmt"

	"github.com/hduolab/quell/cmd/kubectl-quell/internal/show"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/storms"
	"github.com/hduolab/quell/controller/storm"
	"github.com/hduolab/quell/controller/storm/auditlog"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Report is what the audit logs show.
type Report struct {
	APIVersion string      `json:"apiVersion"`
	Kind       string      `json:"kind"`
	From       metav1.Time `json:"from"`
	To         metav1.Time `json:"to"`
	// Requests, each counted once, and Levels, their audit levels.
	Requests int64            `json:"requests"`
	Levels   map[string]int64 `json:"levels"`
	Lines    int64            `json:"lines"`
	Broken   int64            `json:"broken"`
	// BrokenLines are the first of them.
	BrokenLines []BrokenLine `json:"brokenLines,omitempty"`
	// Storms of writes, the fastest first.
	Storms []storms.Storm `json:"storms"`
	// Findings are storms of requests that a watch cannot show, the fastest first.
	Findings []Finding `json:"findings"`
	Users    []Count   `json:"users"`
	Agents   []Count   `json:"userAgents"`
	Verbs    []Count   `json:"verbs"`
	Objects  []Count   `json:"objects"`
}

// BrokenLine is a line that could not be read.
type BrokenLine struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Reason string `json:"reason"`
}

// Finding is a request that is repeated without need.
type Finding struct {
	Verdict     storm.Verdict `json:"verdict"`
	User        string        `json:"user"`
	Agent       string        `json:"userAgent"`
	Verb        string        `json:"verb"`
	Object      storms.Object `json:"object"`
	Subresource string        `json:"subresource,omitempty"`
	Code        int           `json:"code,omitempty"`
	Requests    int64         `json:"requests"`
	Error       int64         `json:"error,omitempty"`
	Peak        float64       `json:"peak"`
	First       metav1.Time   `json:"first"`
	Last        metav1.Time   `json:"last"`
	Evidence    string        `json:"evidence"`
	Remedy      string        `json:"remedy"`
}

// Count is how many requests have a user, user agent, verb or object.
type Count struct {
	Name string `json:"name"`
	// Requests is at most Error too high.
	Requests int64 `json:"requests"`
	Error    int64 `json:"error,omitempty"`
	// PerSecond is the mean over the logs, Peak the highest rate.
	PerSecond float64 `json:"perSecond"`
	Peak      float64 `json:"peak"`
}

func newReport(r auditlog.Report, top int) Report {
	seconds := max(1, r.To.Sub(r.From).Seconds())
	report := Report{
		APIVersion: show.APIVersion, Kind: "AuditReport", From: metav1.NewTime(r.From), To: metav1.NewTime(r.To), Requests: r.Requests,
		Levels: r.Levels, Lines: r.Lines, Broken: r.Broken, Storms: []storms.Storm{}, Findings: []Finding{},
		Users: counts(r.Users, top, seconds), Agents: counts(r.Agents, top, seconds),
		Verbs: counts(r.Verbs, top, seconds), Objects: counts(r.Objects, top, seconds),
	}
	for _, b := range r.Examples {
		report.BrokenLines = append(report.BrokenLines, BrokenLine(b))
	}
	for _, f := range r.Writes.Findings {
		if f.IsStorm {
			report.Storms = append(report.Storms, storms.New(f))
		}
	}
	for _, f := range r.Findings {
		report.Findings = append(report.Findings, newFinding(f))
	}
	return report
}

func newFinding(f auditlog.Finding) Finding {
	return Finding{
		Verdict: f.Verdict, User: f.Key.User, Agent: f.Key.Agent, Verb: f.Key.Verb, Object: storms.ObjectOf(f.Key.Object),
		Subresource: f.Key.Subresource, Code: f.Key.Code, Requests: f.Requests, Error: f.Error, Peak: storms.Rounded(f.Peak),
		First: metav1.NewTime(f.First), Last: metav1.NewTime(f.Last), Evidence: f.Evidence, Remedy: f.Remedy,
	}
}

func counts[K comparable](found []auditlog.Count[K], top int, seconds float64) []Count {
	listed := []Count{}
	for _, c := range found[:min(top, len(found))] {
		listed = append(listed, Count{fmt.Sprint(c.Key), c.Requests, c.Error, storms.Rounded(float64(c.Requests) / seconds), storms.Rounded(c.Peak)})
	}
	return listed
}
