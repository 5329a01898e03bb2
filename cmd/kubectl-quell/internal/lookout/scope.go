package lookout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hduolab/quell/cmd/kubectl-quell/internal/show"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/storms"
	"github.com/hduolab/quell/controller/storm/live"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
)

// scope is what is watched.
type scope struct {
	metadata  metadata.Interface
	dynamic   dynamic.Interface
	resources []live.Resource
	// namespaces to watch; all of them when empty.
	namespaces []string
	// onlyCustom is whether Kubernetes' own kinds are left out.
	onlyCustom bool
	// words for the resources, and unseen what could not be found out about.
	words  string
	unseen []string
}

// scope finds out what the command line names.
func (o options) scope(ctx context.Context) (*scope, error) {
	s, err := o.clients()
	if err != nil {
		return nil, err
	}
	s.onlyCustom = !o.all && len(o.types) == 0
	selector := live.Selector{All: o.all, CustomResources: o.custom || s.onlyCustom}
	if selector.Kinds, err = o.kinds(); err != nil {
		return nil, err
	}
	discovery, err := o.frame.Config.ToDiscoveryClient()
	if err != nil {
		return nil, fmt.Errorf("find the cluster: %w", err)
	}
	discovery.Invalidate() // a definition made a minute ago counts
	resources, missing, err := live.Discover(ctx, discovery, s.metadata, selector)
	switch {
	case len(resources) > 0:
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("to find custom resources takes the right to list customresourcedefinitions; name a TYPE to do without: %w", err)
	case err != nil:
		return nil, fmt.Errorf("find the resources: %w", err)
	}
	if err != nil {
		s.unseen = append(s.unseen, "resources that could not be found out about: "+err.Error())
		fmt.Fprintln(o.frame.ErrOut, "warning: "+show.Escape(s.unseen[0]))
	}
	for _, m := range missing {
		return nil, fmt.Errorf("%s cannot be watched", m.GroupKind)
	}
	if len(resources) == 0 {
		return nil, errors.New("there are no custom resources in this cluster; name a TYPE, or give --all")
	}
	s.resources = resources
	err = o.setNamespaces(s)
	s.words = wordsFor(selector, s.resources)
	return s, err
}

func (o options) clients() (*scope, error) {
	config, err := o.frame.Config.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("find the cluster: %w", err)
	}
	config.Timeout = 0 // --request-timeout is for requests that have an end
	s := &scope{}
	if s.metadata, err = metadata.NewForConfig(config); err == nil {
		s.dynamic, err = dynamic.NewForConfig(config)
	}
	if err != nil {
		return nil, fmt.Errorf("find the cluster: %w", err)
	}
	return s, nil
}

// kinds are those of the TYPE arguments, which may be lists with commas.
func (o options) kinds() ([]schema.GroupKind, error) {
	if len(o.types) == 0 {
		return nil, nil
	}
	mapper, err := o.frame.Config.ToRESTMapper()
	if err != nil {
		return nil, fmt.Errorf("find the cluster: %w", err)
	}
	var kinds []schema.GroupKind
	for _, arg := range resource.SplitResourceArgument(strings.Join(o.types, ",")) {
		kind, err := kindFor(mapper, strings.TrimSpace(arg))
		if err != nil {
			return nil, err
		}
		kinds = append(kinds, kind)
	}
	return kinds, nil
}

// kindFor reads a TYPE as kubectl get does: a resource or kind in any number and case, its short name, with or without version
// and group.
func kindFor(mapper meta.RESTMapper, arg string) (schema.GroupKind, error) {
	full, resource := schema.ParseResourceArg(strings.ToLower(arg))
	if full != nil {
		if kind, err := mapper.KindFor(*full); err == nil {
			return kind.GroupKind(), nil
		}
	}
	kind, err := mapper.KindFor(resource.WithVersion(""))
	if err == nil {
		return kind.GroupKind(), nil
	}
	if meta.IsNoMatchError(err) {
		return schema.GroupKind{}, fmt.Errorf("the server has no resource type %q, see 'kubectl api-resources'", arg)
	}
	return schema.GroupKind{}, fmt.Errorf("find the resource type %q: %w", arg, err)
}

// setNamespaces decides where to watch. What belongs to no namespace is watched in no namespace.
func (o options) setNamespaces(s *scope) error {
	hasTypes := len(o.types) > 0
	if o.allNamespaces || !hasTypes && !o.hasNamespace {
		return nil
	}
	var outside []string
	for _, r := range s.resources {
		if !r.IsNamespaced {
			outside = append(outside, r.GroupResource().String())
		}
	}
	if len(outside) == len(s.resources) {
		return nil
	}
	namespace, _, err := o.frame.Config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return fmt.Errorf("find the namespace: %w", err)
	}
	if hasTypes && len(outside) > 0 {
		return fmt.Errorf("%s cannot be watched together with what is in the namespace %s: name them alone, or give -A",
			storms.Short(outside), namespace)
	}
	s.namespaces = []string{namespace}
	s.resources = slices.DeleteFunc(s.resources, func(r live.Resource) bool { return !r.IsNamespaced })
	return nil
}

// wordsFor says what is watched.
func wordsFor(selector live.Selector, resources []live.Resource) string {
	switch {
	case selector.All:
		return show.Count(len(resources), "resource")
	case selector.CustomResources && len(selector.Kinds) == 0:
		return show.Count(len(resources), "custom resource")
	case len(resources) == 1:
		return resources[0].GroupResource().String()
	}
	return show.Count(len(resources), "resource")
}
