package storms

import (
	"math"
	"slices"
	"strconv"

	"github.com/hduolab/quell/cmd/kubectl-quell/internal/show"
	"github.com/hduolab/quell/controller/storm"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Object names an object, or with no name a resource.
type Object struct {
	Group     string `json:"group,omitempty"`
	Resource  string `json:"resource"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
}

// Storm is an object that is written without need.
type Storm struct {
	Object  Object          `json:"object"`
	Verdict storm.Verdict   `json:"verdict"`
	Also    []storm.Verdict `json:"also,omitempty"`
	// Rate of writes per second when a live report was made; Peak is the highest.
	Rate       float64     `json:"rate,omitempty"`
	Peak       float64     `json:"peak"`
	Writes     int64       `json:"writes"`
	First      metav1.Time `json:"first"`
	Last       metav1.Time `json:"last"`
	Writers    []Writer    `json:"writers"`
	Fields     []Field     `json:"fields,omitempty"`
	Evidence   []string    `json:"evidence"`
	Remedy     string      `json:"remedy"`
	Samples    int         `json:"samples"`
	Confidence float64     `json:"confidence"`
}

// Writer is who writes an object, with how many of the samples.
type Writer struct {
	show.Owner `json:",inline"`
	Writes     int `json:"writes"`
}

// Field is one that changes, with how many of the samples.
type Field struct {
	Path    string   `json:"path"`
	Changes int      `json:"changes"`
	Values  []string `json:"values,omitempty"`
}

// New gives a finding in the form of reports, without the rate of the moment, which a record has none of.
func New(f storm.Finding) Storm {
	s := Storm{
		Object: ObjectOf(f.Object), Verdict: f.Verdict, Also: f.Also, Peak: Rounded(f.Peak), Writes: f.Writes,
		First: metav1.NewTime(f.First), Last: metav1.NewTime(f.Last), Writers: []Writer{}, Evidence: f.Evidence, Remedy: f.Remedy,
		Samples: f.Samples, Confidence: f.Confidence,
	}
	for _, w := range f.Writers {
		owner := show.Owner{Manager: w.Manager, Operation: string(w.Operation), Subresource: w.Subresource, APIVersion: w.APIVersion}
		s.Writers = append(s.Writers, Writer{owner, w.Writes})
	}
	for _, field := range f.Fields {
		s.Fields = append(s.Fields, Field{field.Path, field.Changes, field.Values})
	}
	return s
}

// ObjectOf names an object in a report.
func ObjectOf(k storm.Key) Object {
	return Object{Group: k.Group, Resource: k.Resource, Namespace: k.Namespace, Name: k.Name}
}

// Words is such as widgets.example.com/team-a/w1.
func (o Object) Words() string {
	k := storm.Key{GroupResource: schema.GroupResource{Group: o.Group, Resource: o.Resource}, Namespace: o.Namespace, Name: o.Name}
	return k.String()
}

// Unknown stands for a writer whom managedFields do not tell.
const Unknown = "<unknown>"

// Managers are who writes the object and how, each once, for example `hpa (Update/scale)`.
func (s Storm) Managers() []string {
	var names []string
	for _, w := range s.Writers {
		if name := w.Name(); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// Name is the manager and how it writes.
func (w Writer) Name() string {
	manager, how := w.Words()
	if manager == "" {
		manager = Unknown
	}
	if how != "" {
		manager += " (" + how + ")"
	}
	return manager
}

// Paths are the fields that change.
func (s Storm) Paths() []string {
	var names []string
	for _, f := range s.Fields {
		names = append(names, f.Path)
	}
	return names
}

// Rounded leaves three digits, or whole numbers from 100 on.
func Rounded(v float64) float64 {
	if v == 0 {
		return 0
	}
	digits := math.Pow(10, max(0, 2-math.Floor(math.Log10(math.Abs(v)))))
	return math.Round(v*digits) / digits
}

// Number writes what Rounded gives.
func Number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
