package audit

import (
	"fmt"
	"strconv"

	"github.com/hduolab/quell/cmd/kubectl-quell/internal/page"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/show"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/storms"
	"github.com/hduolab/quell/controller/storm"
	"github.com/hduolab/quell/controller/storm/auditlog"
)

// writePage writes the page that --report names, if it names one.
func (o options) writePage(r Report, found auditlog.Report, failed error) error {
	if o.page == "" {
		return nil
	}
	p := r.page(found, failed)
	p.Program = "kubectl quell " + o.frame.Version
	if err := p.Write(o.page); err != nil {
		return err
	}
	fmt.Fprintln(o.frame.ErrOut, "the report is in "+show.Escape(o.page))
	return nil
}

// page shows the report to others. What was read before a failure is in it, and that there was one.
func (r Report) page(found auditlog.Report, failed error) page.Page {
	p := page.Page{
		Title: "Write storms in audit logs", From: r.From.Time, To: r.To.Time, Storms: r.Storms, None: "No write storm was found.",
		Lead: fmt.Sprintf("%s and %s found in %s.", show.Count(len(r.Storms), "write storm"),
			show.Count(len(r.Findings), "storm")+" of other requests", show.Count(int(r.Requests), "request")),
		Facts: []string{"Audit levels: " + r.levels()},
	}
	if found.Writes.Writes > 0 {
		p.Charts = append(p.Charts,
			page.Chart("By field manager", found.WritesByManager, page.ManagerName),
			page.Chart("By object", found.WritesByObject, storm.Key.String))
	}
	p.Sections = append(p.Sections, r.findingsSection())
	for _, part := range r.countParts() {
		p.Sections = append(p.Sections, part.section())
	}
	p.Unseen = r.unseen()
	if failed != nil {
		p.Unseen = append([]string{"the logs were not read to their end: " + failed.Error()}, p.Unseen...)
	}
	return p
}

func (r Report) unseen() []string {
	unseen := []string{"requests that the audit policy leaves out"}
	if r.Levels["RequestResponse"] == 0 {
		unseen = append(unseen, "fields and writes without effect, since no event has the level RequestResponse")
	}
	if r.Broken > 0 {
		unseen = append(unseen, show.Count(int(r.Broken), "line")+" could not be read, such as:")
	}
	for _, b := range r.BrokenLines {
		unseen = append(unseen, fmt.Sprintf("%s:%d: %s", b.File, b.Line, b.Reason))
	}
	return unseen
}

func (r Report) findingsSection() page.Section {
	section := page.Section{Title: "Requests repeated without need"}
	section.Heading = []string{"peak/s", "verb", "object", "user", "user agent", "evidence", "verdict"}
	rows, remedies := r.findingRows(true)
	section.Rows = rows
	for _, remedy := range remedies {
		section.Notes = append(section.Notes, string(remedy.verdict)+", remedy: "+remedy.words)
	}
	if len(rows) == 0 {
		section.Notes = []string{"None."}
	}
	return section
}

func (p countPart) section() page.Section {
	section := page.Section{Title: p.title, Heading: []string{"requests", "mean/s", "peak/s", p.one}}
	for _, c := range p.counts {
		section.Rows = append(section.Rows, []string{c.words(), storms.Number(c.PerSecond), storms.Number(c.Peak), c.Name})
	}
	return section
}

// words are the number, or between which it is.
func (c Count) words() string {
	if c.Error > 0 {
		return fmt.Sprintf("%d..%d", c.Requests-c.Error, c.Requests)
	}
	return strconv.FormatInt(c.Requests, 10)
}
