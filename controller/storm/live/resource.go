package live

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
)

// Any stands for every group, or every kind of a group, in Selector.Kinds.
const Any = "*"

// Selector chooses resources. What fits any of its parts is chosen.
type Selector struct {
	// All chooses every resource that can be watched, but not storm.KnownTraffic.
	All bool
	// CustomResources chooses those that CustomResourceDefinitions define.
	CustomResources bool
	// Kinds, also with Any as group, kind or both; storm.KnownTraffic is chosen by its name only.
	Kinds []schema.GroupKind
}

// Resource is one that can be watched, at the version that the API server prefers.
type Resource struct {
	schema.GroupVersionResource
	Kind         string
	IsNamespaced bool
}

// Missing is a kind that a Selector names and that cannot be watched.
type Missing struct {
	schema.GroupKind
	// IsServed is whether it exists, and just cannot be watched.
	IsServed bool
}

// Discover finds what a selector chooses, each resource once, in the order of their names; and which of its kinds there are none
// of. Resources of CustomResourceDefinitions take a list of these, of metadata only. Where a part of the API cannot be discovered,
// such as that of an extension server that is away, the error says so and the rest is returned.
func Discover(ctx context.Context, d discovery.DiscoveryInterface, m metadata.Interface, selector Selector) ([]Resource, []Missing, error) {
	panic("not built yet")
}
