package page

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"time"

	"github.com/hduolab/quell/cmd/kubectl-quell/internal/show"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/storms"
	"github.com/hduolab/quell/controller/storm/chart"
)

// Page is what a file shows. All of its text may come from strangers.
type Page struct {
	Title    string
	From, To time.Time
	// Lead is one sentence, and Facts are lines below it.
	Lead  string
	Facts []string
	// Charts of what happened when.
	Charts []chart.Chart
	// Storms, and what is said where there is none.
	Storms []storms.Storm
	None   string
	// Sections of other things that were found.
	Sections []Section
	// Unseen is what cannot be told from this page.
	Unseen []string
	// Program that made it.
	Program string
}

// Section is a table with words to it.
type Section struct {
	Title   string
	Heading []string
	Rows    [][]string
	Notes   []string
}

//go:embed page.html
var source string

var layout = template.Must(template.New("page").Funcs(template.FuncMap{
	"text": show.Escape, "time": clock, "length": length, "number": storms.Number, "percent": percent, "owner": storms.Writer.Name,
	"style": func() template.CSS { return chart.Style }, "draw": chart.Chart.HTML,
}).Parse(source))

// HTML is the page.
func (p Page) HTML() ([]byte, error) {
	var b bytes.Buffer
	if err := layout.Execute(&b, p); err != nil {
		return nil, fmt.Errorf("make the report page: %w", err)
	}
	return b.Bytes(), nil
}

func clock(when time.Time) string { return when.UTC().Format("2006-01-02 15:04:05") }

func percent(share float64) string { return fmt.Sprintf("%.0f %%", share*100) }

// length says how long something lasted.
func length(from, to time.Time) string { return to.Sub(from).Round(time.Second).String() }
