package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/hduolab/quell/controller/storm"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/pager"
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

// Missing is a part of Selector.Kinds of which nothing can be watched.
type Missing struct {
	schema.GroupKind
	// IsServed is whether it exists, and just cannot be watched.
	IsServed bool
}

// Discover finds what a selector chooses, each resource once, in the order of their names; and which of its kinds there are none
// of. Resources of CustomResourceDefinitions take a list of these, of metadata only. Where a part of the API cannot be discovered,
// such as that of an extension server that is away, the error says so and the rest is returned.
func Discover(ctx context.Context, d discovery.DiscoveryInterface, m metadata.Interface, selector Selector) ([]Resource, []Missing, error) {
	lists, err := discovery.ServerPreferredResourcesWithContext(ctx, discovery.ToDiscoveryInterfaceWithContext(d))
	if err != nil {
		err = fmt.Errorf("discover resources: %w", err)
	}
	var custom map[schema.GroupResource]bool
	if selector.CustomResources {
		defined, listErr := definitions(ctx, m)
		custom, err = defined, errors.Join(err, listErr)
	}
	served := map[schema.GroupKind]bool{}
	chosen := map[schema.GroupResource]Resource{}
	for r, verbs := range resources(lists) {
		served[r.groupKind()] = true
		if slices.Contains(verbs, "list") && slices.Contains(verbs, "watch") && selector.chooses(r, custom) {
			chosen[r.GroupResource()] = r
		}
	}
	sorted := slices.SortedFunc(maps.Values(chosen), Resource.compare)
	return sorted, selector.missing(sorted, served), err
}

// resources gives what discovery lists, with the verbs of each, but no subresources.
func resources(lists []*metav1.APIResourceList) iter.Seq2[Resource, metav1.Verbs] {
	return func(yield func(Resource, metav1.Verbs) bool) {
		for _, list := range lists {
			gv, err := schema.ParseGroupVersion(list.GroupVersion)
			if err != nil {
				continue // the server's own words name no such version
			}
			for i := range list.APIResources {
				a := &list.APIResources[i]
				r := Resource{GroupVersionResource: gv.WithResource(a.Name), Kind: a.Kind, IsNamespaced: a.Namespaced}
				if !strings.Contains(a.Name, "/") && !yield(r, a.Verbs) {
					return
				}
			}
		}
	}
}

var customResourceDefinitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// definitions are the resources of all CustomResourceDefinitions, whose names are those of the resources.
func definitions(ctx context.Context, m metadata.Interface) (map[schema.GroupResource]bool, error) {
	defined := map[schema.GroupResource]bool{}
	pages := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return m.Resource(customResourceDefinitions).List(ctx, o)
	})
	err := pages.EachListItem(ctx, metav1.ListOptions{}, func(o runtime.Object) error {
		if crd, isMetadata := o.(*metav1.PartialObjectMetadata); isMetadata {
			defined[schema.ParseGroupResource(crd.Name)] = true
		}
		return nil
	})
	if err != nil {
		err = fmt.Errorf("list customresourcedefinitions: %w", err)
	}
	return defined, err
}

func (r Resource) groupKind() schema.GroupKind { return schema.GroupKind{Group: r.Group, Kind: r.Kind} }

func (r Resource) compare(other Resource) int {
	return cmp.Or(cmp.Compare(r.GroupResource().String(), other.GroupResource().String()), cmp.Compare(r.Version, other.Version))
}

func (s *Selector) chooses(r Resource, custom map[schema.GroupResource]bool) bool {
	gr := r.GroupResource()
	isOrdinary := !slices.Contains(storm.KnownTraffic, gr)
	return isOrdinary && (s.All || custom[gr]) || slices.ContainsFunc(s.Kinds, func(k schema.GroupKind) bool {
		return k == r.groupKind() || isOrdinary && fits(k, r.groupKind())
	})
}

// fits reports whether a kind is one that a pattern stands for.
func fits(pattern, kind schema.GroupKind) bool {
	return (pattern.Group == Any || pattern.Group == kind.Group) && (pattern.Kind == Any || pattern.Kind == kind.Kind)
}

func (s *Selector) missing(found []Resource, served map[schema.GroupKind]bool) []Missing {
	var all []Missing
	for _, k := range s.Kinds {
		if slices.ContainsFunc(found, func(r Resource) bool { return fits(k, r.groupKind()) }) {
			continue
		}
		isServed := slices.ContainsFunc(slices.Collect(maps.Keys(served)), func(kind schema.GroupKind) bool { return fits(k, kind) })
		all = append(all, Missing{k, isServed})
	}
	return all
}
