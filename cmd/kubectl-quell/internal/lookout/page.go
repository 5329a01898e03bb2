package lookout

import (
	"fmt"

	"github.com/hduolab/quell/cmd/kubectl-quell/internal/page"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/show"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/storms"
	"github.com/hduolab/quell/controller/storm"
	"github.com/hduolab/quell/controller/storm/chart"
)

// page shows a report to others.
func (s *session) page(r Report, program string) page.Page {
	p := page.Page{
		Title: "Write storms", From: r.From.Time, To: r.To.Time, Program: program,
		None: "No write storm was found.", Unseen: r.Unseen,
		Lead: fmt.Sprintf("%s found: %s, %s per second on average.", show.Count(len(r.Storms), "storm"), show.Count(int(r.Writes), "write"),
			storms.Number(r.PerSecond)),
		Facts: []string{"Resources: " + s.scope.words + ", " + r.watched() + " to the end"},
	}
	if len(r.Namespaces) > 0 {
		p.Facts = append(p.Facts, "Namespace: "+storms.Short(r.Namespaces))
	}
	if r.Writes > 0 {
		managers, objects := s.record.managers.Rates(chart.Colours), s.record.objects.Rates(chart.Colours)
		p.Charts = append(p.Charts,
			page.Chart("By field manager", managers, page.ManagerName), page.Chart("By object", objects, storm.Key.String))
	}
	for _, found := range r.Storms {
		p.Storms = append(p.Storms, found.Storm)
		if found.Ended != nil {
			last := &p.Storms[len(p.Storms)-1]
			last.Evidence = append(last.Evidence, fmt.Sprintf("it has ended after %s", lasted(found.Found.Time, found.Ended.Time)))
		}
	}
	p.Sections = append(p.Sections, others(r.Others))
	p.Unseen = append(p.Unseen,
		"writes without effect, rejected writes and reads, which no watch shows; kubectl quell audit finds them in an audit log")
	return p
}

func others(found []storms.Storm) page.Section {
	section := page.Section{Title: "Busy objects that are no storm", Heading: []string{"writes/s", "object", "manager", "fields", "verdict"}}
	for _, s := range found {
		section.Rows = append(section.Rows, []string{
			storms.Number(s.Rate), s.Object.Words(), storms.Short(s.Managers()), storms.Short(s.Paths()), string(s.Verdict),
		})
	}
	if len(found) == 0 {
		section.Notes = []string{"None."}
	}
	return section
}
