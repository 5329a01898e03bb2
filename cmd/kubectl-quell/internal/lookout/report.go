package lookout

import (
	"time"

	"github.com/hduolab/quell/cmd/kubectl-quell/internal/show"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/storms"
	"github.com/hduolab/quell/controller/fieldowners"
	"github.com/hduolab/quell/controller/storm"
	"github.com/hduolab/quell/controller/storm/live"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Report is what was seen from one time to another.
type Report struct {
	APIVersion string      `json:"apiVersion"`
	Kind       string      `json:"kind"`
	From       metav1.Time `json:"from"`
	To         metav1.Time `json:"to"`
	// Writes that were seen, and their mean.
	Writes    int64   `json:"writes"`
	PerSecond float64 `json:"perSecond"`
	// Namespaces that were watched; all of them when empty.
	Namespaces []string `json:"namespaces,omitempty"`
	// CustomResourcesOnly is whether Kubernetes' own kinds were left out.
	CustomResourcesOnly bool       `json:"customResourcesOnly,omitempty"`
	Resources           []Resource `json:"resources"`
	// Storms at any time: those that go on first, the fastest first.
	Storms []Storm `json:"storms"`
	// Others are objects that were written often in the end and are no storm.
	Others   []storms.Storm `json:"others"`
	Managers []Manager      `json:"managers"`
	// Unseen is what could not be found out.
	Unseen []string `json:"unseen,omitempty"`
}

// Storm is one with when it was found and when it ended; one that goes on has not.
type Storm struct {
	storms.Storm `json:",inline"`
	Found        metav1.Time  `json:"found"`
	Ended        *metav1.Time `json:"ended,omitempty"`
}

// Resource is one that was to be watched.
type Resource struct {
	Group    string `json:"group,omitempty"`
	Version  string `json:"version"`
	Resource string `json:"resource"`
	Kind     string `json:"kind"`
	// State is Watching when all is well; otherwise Error says why not.
	State live.State `json:"state"`
	Error string     `json:"error,omitempty"`
	// Gaps is how often any number of writes may have been missed.
	Gaps int `json:"gaps,omitempty"`
}

// Manager is how much a field manager has written.
type Manager struct {
	show.Owner `json:",inline"`
	Writes     int64 `json:"writes"`
	// PerSecond in the end is at most Error too high.
	PerSecond float64 `json:"perSecond"`
	Error     float64 `json:"error,omitempty"`
}

func newReport(r storm.Report, watches []live.Watch, h *history, from, to time.Time) Report {
	report := Report{
		APIVersion: show.APIVersion, Kind: "StormReport", From: metav1.NewTime(from), To: metav1.NewTime(to), Writes: r.Writes,
		PerSecond: storms.Rounded(float64(r.Writes) / max(1, to.Sub(from).Seconds())), Resources: []Resource{}, Storms: []Storm{},
		Others: []storms.Storm{}, Managers: []Manager{},
	}
	for _, w := range watches {
		report.Resources = append(report.Resources, newResource(w))
	}
	for _, s := range h.ranked() {
		report.Storms = append(report.Storms, newStorm(s))
	}
	for _, f := range r.Findings {
		if _, was := h.storms[f.Object]; !was {
			report.Others = append(report.Others, now(f))
		}
	}
	for _, m := range r.Managers {
		report.Managers = append(report.Managers, newManager(m))
	}
	return report
}

// now is a finding with its rate.
func now(f storm.Finding) storms.Storm {
	s := storms.New(f)
	s.Rate = storms.Rounded(f.Rate)
	return s
}

func newStorm(s *spell) Storm {
	found := Storm{Storm: now(s.finding), Found: metav1.NewTime(s.found)}
	if s.isOver() {
		ended := metav1.NewTime(s.ended)
		found.Rate, found.Ended = 0, &ended
	}
	return found
}

func newResource(w live.Watch) Resource {
	r := Resource{Group: w.Group, Version: w.Version, Resource: w.GroupVersionResource.Resource, Kind: w.Kind, State: w.State, Gaps: w.Gaps}
	if w.Err != nil {
		r.Error = w.Err.Error()
	}
	return r
}

func newManager(m storm.Rate[fieldowners.Owner]) Manager {
	owner := show.Owner{Manager: m.Key.Manager, Operation: string(m.Key.Operation), Subresource: m.Key.Subresource}
	return Manager{Owner: owner, Writes: m.Writes, PerSecond: storms.Rounded(m.PerSecond), Error: storms.Rounded(m.Error)}
}
