package live

import (
	"context"

	"github.com/hduolab/quell/controller/storm"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
)

// Options of a Source; every zero value but the clients stands for its default.
type Options struct {
	// Metadata and Dynamic are the clients of the cluster; required. They only watch, and list one object to learn the newest version.
	Metadata metadata.Interface
	Dynamic  dynamic.Interface
	// Storm are the thresholds.
	Storm storm.Options
	// Namespaces whose objects are watched. Without any it is all, and objects that belong to no namespace.
	Namespaces []string
	// FullWatches is how many objects are watched in full at a time. Default 8.
	FullWatches int
}

// Source watches resources and keeps account of who writes what. It is safe for concurrent use.
type Source struct {
	options Options
}

// New makes a source that watches nothing yet.
func New(options Options) *Source { return &Source{options} }

// Run watches what Watch names until ctx is done, and returns once all watches have ended.
func (s *Source) Run(ctx context.Context) { panic("not built yet") }

// Watch sets the resources that are watched from now on; watches of others end. It may be called before and while Run runs.
func (s *Source) Watch(resources []Resource) { panic("not built yet") }

// Report gives the storms at this moment.
func (s *Source) Report() storm.Report { panic("not built yet") }

// Watches tells how the watches are, in the order of their names.
func (s *Source) Watches() []Watch { panic("not built yet") }
