package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hduolab/quell/cmd/kubectl-quell/internal/frame"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/show"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/rest"
)

// pageSize is how many objects one request asks for; it bounds memory, not the selection.
const pageSize = 500

// Media types that have the API server leave out all but the metadata, of one object and of a list.
const (
	oneMetadata  = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
	listMetadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
)

// Object is one selected object. Info has no Client and no Mapping when it comes from a file.
type Object struct {
	*unstructured.Unstructured
	Info *resource.Info
}

// IsLive reports whether the object was read from the cluster.
func (o Object) IsLive() bool { return o.Info.Client != nil }

// Ref names an object for a reader, for example deployment.apps/default/web.
func Ref(u *unstructured.Unstructured) string { return show.RefOf(u).String() }

// Selection are the flags that choose objects.
type Selection struct {
	// Files to read instead of the cluster.
	Files resource.FilenameOptions
	// MetadataOnly reads no more than the metadata. The clients of the objects then serve for nothing else.
	MetadataOnly bool

	selector, fieldSelector string
	allNamespaces           bool
	// takesFiles is whether the command has the flag -f.
	takesFiles bool
}

// AddSelectors adds the flags that choose among the objects of a type.
func (s *Selection) AddSelectors(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&s.selector, "selector", "l", "", "label selector, for example -l app=web")
	cmd.Flags().StringVar(&s.fieldSelector, "field-selector", "", "field selector, for example --field-selector metadata.name=web")
	cmd.Flags().BoolVarP(&s.allNamespaces, "all-namespaces", "A", false, "choose objects in all namespaces")
}

// AddFiles adds -f, -R and, where the files are manifests, -k.
func (s *Selection) AddFiles(cmd *cobra.Command, usage string, kustomize bool) {
	flags := genericclioptions.FileNameFlags{Usage: usage, Filenames: &s.Files.Filenames, Recursive: &s.Files.Recursive}
	if kustomize {
		flags.Kustomize = &s.Files.Kustomize
	}
	flags.AddFlags(cmd.Flags())
	s.takesFiles = true
}

// FromFiles reports whether files were named.
func (s *Selection) FromFiles() bool { return len(s.Files.Filenames) > 0 || s.Files.Kustomize != "" }

// Validate wants either files or arguments, the latter as kubectl get takes them.
func (s *Selection) Validate(args []string) error {
	switch {
	case s.FromFiles() && len(args) > 0:
		return errors.New("name objects by arguments or by -f, not both")
	case s.FromFiles() && (s.selector != "" || s.fieldSelector != "" || s.allNamespaces):
		return errors.New("-l, --field-selector and -A choose objects of the cluster, not of files")
	case !s.FromFiles() && len(args) == 0 && s.takesFiles:
		return errors.New("name the objects: TYPE/NAME, TYPE NAME or TYPE, see 'kubectl api-resources'; or -f FILE")
	case !s.FromFiles() && len(args) == 0:
		return errors.New("name the objects: TYPE/NAME, TYPE NAME or TYPE, see 'kubectl api-resources'")
	case s.takesFiles && slices.Contains(args, "-"):
		return errors.New("- names no object; the standard input is -f -")
	case len(s.Files.Filenames) > 0 && s.Files.Kustomize != "":
		return errors.New("-f and -k exclude each other")
	}
	return errors.Join(checkNames(args), s.checkSelectors())
}

func (s *Selection) checkSelectors() error {
	if _, err := labels.Parse(s.selector); err != nil {
		return fmt.Errorf("-l %q: %w", s.selector, err)
	}
	if _, err := fields.ParseSelector(s.fieldSelector); err != nil {
		return fmt.Errorf("--field-selector %q: %w", s.fieldSelector, err)
	}
	return nil
}

// checkNames refuses what kubectl's own builder would refuse later, in words that go with this program.
func checkNames(args []string) error {
	for _, arg := range args {
		if parts := strings.Split(arg, "/"); len(parts) == 3 { // as reports of storms name an object
			return fmt.Errorf("%s has more than one /: name it by %s/%s -n %s", arg, parts[0], parts[2], parts[1])
		} else if len(parts) > 3 {
			return fmt.Errorf("%s has more than one /: name the object by TYPE/NAME", arg)
		}
	}
	if _, err := resource.HasNames(args); err != nil {
		return errors.New("name objects either by TYPE/NAME, each of them, or by TYPE NAME")
	}
	return nil
}

// Named reports whether arguments name single objects rather than types.
func Named(args []string) bool {
	named, err := resource.HasNames(args)
	return err == nil && named
}

// Visit calls fn for each object, a page at a time. Errors of single objects do not end the visit; they come back joined.
func (s *Selection) Visit(f *frame.Frame, args []string, fn func(Object) error) error {
	if s.FromFiles() {
		return tellNone(f, s.visitFiles(f, fn))
	}
	builder, err := s.builder(f)
	if err != nil {
		return err
	}
	if s.MetadataOnly {
		accept := listMetadata
		if Named(args) {
			accept = oneMetadata
		}
		builder.TransformRequests(func(r *rest.Request) { r.SetHeader("Accept", accept) })
	}
	err = visit(builder.
		AllNamespaces(s.allNamespaces).LabelSelectorParam(s.selector).FieldSelectorParam(s.fieldSelector).
		RequestChunksOf(pageSize).ResourceTypeOrNameArgs(true, args...), fn)
	return tellNone(f, err)
}

var errNone = errors.New("there is no object in the input")

// visit is errNone when there is no object.
func visit(builder *resource.Builder, fn func(Object) error) error {
	found := false
	err := builder.Do().Visit(each(func(o Object) error {
		found = true
		return fn(o)
	}))
	if err == nil && !found {
		return errNone
	}
	return err
}

// tellNone has a selection of nothing be no error.
func tellNone(f *frame.Frame, err error) error {
	if errors.Is(err, errNone) {
		fmt.Fprintln(f.ErrOut, "no objects found")
		return nil
	}
	return err
}

func (s *Selection) builder(f *frame.Frame) (*resource.Builder, error) {
	namespace, _, err := f.Config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, fmt.Errorf("find the namespace: %w", err)
	}
	return resource.NewBuilder(f.Config).Unstructured().NamespaceParam(namespace).DefaultNamespace().ContinueOnError(), nil
}

// each hands on the items of lists one by one, with the kind that a metadata-only answer lacks.
func each(fn func(Object) error) resource.VisitorFunc {
	return func(info *resource.Info, err error) error {
		if err != nil {
			return err
		}
		var errs []error
		visit := func(o runtime.Object) error {
			u, ok := o.(*unstructured.Unstructured)
			if !ok {
				return fmt.Errorf("%s is no object that can be read", info)
			}
			if info.Mapping != nil {
				u.SetGroupVersionKind(info.Mapping.GroupVersionKind)
			}
			one := *info
			one.Object, one.Namespace, one.Name = u, u.GetNamespace(), u.GetName()
			if err := fn(Object{u, &one}); err != nil {
				errs = append(errs, err)
			}
			return nil
		}
		if list, ok := info.Object.(*unstructured.UnstructuredList); ok {
			errs = append(errs, list.EachListItem(visit))
		} else {
			errs = append(errs, visit(info.Object))
		}
		return errors.Join(errs...)
	}
}

// visitFiles reads objects as they stand in files, and asks no server.
func (s *Selection) visitFiles(f *frame.Frame, fn func(Object) error) error {
	return visit(s.withFiles(f, resource.NewLocalBuilder().Unstructured().ContinueOnError()).Flatten(), fn)
}

// withFiles adds the files to a builder; "-" is the frame's standard input.
func (s *Selection) withFiles(f *frame.Frame, builder *resource.Builder) *resource.Builder {
	files := s.Files
	files.Filenames = slices.DeleteFunc(slices.Clone(files.Filenames), func(name string) bool { return name == "-" })
	if len(files.Filenames) < len(s.Files.Filenames) {
		builder.Stream(f.In, "standard input")
	}
	if len(files.Filenames) > 0 || files.Kustomize != "" {
		builder.FilenameParam(false, &files)
	}
	return builder
}

// Manifests calls fn for each document of the files with what the API server knows of its kind. Without a server
// (offline) nothing is known but the document. No document at all is an error: nothing would have been looked at. As with kubectl
// apply, a document in another namespace than that of -n is one too.
func (s *Selection) Manifests(f *frame.Frame, offline bool, fn func(Object) error) error {
	if offline {
		return s.visitFiles(f, fn)
	}
	builder, err := s.builder(f)
	if err != nil {
		return err
	}
	if *f.Config.Namespace != "" {
		builder.RequireNamespace()
	}
	return visit(s.withFiles(f, builder).Flatten(), fn)
}

// Find looks up what the API server knows of the kinds of these objects, which need apiVersion, kind and name only, and
// calls fn for each.
func Find(f *frame.Frame, objects []*unstructured.Unstructured, fn func(Object) error) error {
	var documents bytes.Buffer
	for _, o := range objects {
		raw, err := o.MarshalJSON()
		if err != nil {
			return fmt.Errorf("encode %s: %w", Ref(o), err)
		}
		documents.Write(raw)
	}
	builder, err := (&Selection{}).builder(f)
	if err != nil {
		return err
	}
	return builder.Stream(&documents, "the objects").Flatten().Do().Visit(each(fn))
}
