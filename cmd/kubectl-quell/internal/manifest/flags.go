package manifest

import (
	"encoding/json"
	"fmt"

	"github.com/hduolab/quell/cmd/kubectl-quell/internal/cluster"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/frame"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/show"
	"github.com/hduolab/quell/controller/fieldowners"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// flags are common to the commands of this package.
type flags struct {
	selection cluster.Selection
	output    *show.Output
	apply     cluster.Apply
	times     string
	hints     hints
}

func (fl *flags) addFlags(cmd *cobra.Command) {
	fl.output = show.NewOutput(false)
	fl.selection.AddFiles(cmd, "manifests; - is the standard input", true)
	fl.output.AddFlags(cmd)
	cmd.Flags().StringVar(&fl.apply.Manager, "field-manager", "kubectl", "name of the manager that would apply")
	cmd.Flags().StringVar(&fl.apply.Subresource, "subresource", "", "subresource that would be applied through, for example status")
	cmd.Flags().BoolVar(&fl.apply.Force, "force-conflicts", false, "look at an apply that takes over fields of other managers")
}

func (fl *flags) validate(args []string) error {
	if err := frame.CheckManager("--field-manager", fl.apply.Manager); err != nil {
		return err
	}
	if err := fl.output.Validate(); err != nil {
		return err
	}
	return fl.selection.Validate(args)
}

// hint begins to collect hints once the flags are read.
func (fl *flags) hint(cmd *cobra.Command) {
	fl.hints = hints{apply: fl.apply, isAssumed: !cmd.Flags().Changed("field-manager"), meant: map[string][]show.ObjectRef{}}
}

// tellHints is for people, when any object was looked at; a report names the field manager.
func (fl *flags) tellHints(f *frame.Frame, objects int) {
	if objects > 0 {
		fl.hints.print(f.ErrOut)
	}
}

// manifests calls fn for each document: of the files, or as client-side kubectl apply remembers it in the named objects.
func (fl *flags) manifests(f *frame.Frame, args []string, offline bool, fn func(cluster.Object) error) error {
	if fl.selection.FromFiles() {
		return fl.selection.Manifests(f, offline, func(document cluster.Object) error {
			if document.GetName() == "" {
				return fmt.Errorf("a %s in the input has no name, and an apply is to an object of a name: generateName is for kubectl create", show.Escape(document.GetKind()))
			}
			if len(document.GetManagedFields()) > 0 {
				return fmt.Errorf("%s has metadata.managedFields, with which the API server takes no apply: give the manifest without them",
					cluster.Ref(document.Unstructured))
			}
			return fn(document)
		})
	}
	return fl.selection.Visit(f, args, func(o cluster.Object) error {
		raw, found := o.GetAnnotations()[corev1.LastAppliedConfigAnnotation]
		if !found {
			return fmt.Errorf("%s has no annotation %s that would tell what to apply: give the manifest with -f", cluster.Ref(o.Unstructured), corev1.LastAppliedConfigAnnotation)
		}
		document := &unstructured.Unstructured{}
		if err := json.Unmarshal([]byte(raw), &document.Object); err != nil {
			return fmt.Errorf("%s: read the annotation %s: %w", cluster.Ref(o.Unstructured), corev1.LastAppliedConfigAnnotation, err)
		}
		return fn(cluster.Object{Unstructured: document, Info: o.Info})
	})
}

// target is what is applied to, in words. That there is no such subresource is told by the API server in words that name nothing.
func (fl *flags) target(document cluster.Object) string {
	name := cluster.Ref(document.Unstructured)
	if fl.apply.Subresource != "" {
		name += fmt.Sprintf(" through subresource %q", fl.apply.Subresource)
	}
	return name
}

// read gets the live object, or nil when there is none yet.
func read(document cluster.Object) (*unstructured.Unstructured, error) {
	live, err := cluster.Get(document.Info, "")
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", cluster.Ref(document.Unstructured), err)
	}
	return live, nil
}

// timed gives a conflict's owner the time and version of its entry.
func timed(entries []fieldowners.Entry, owner fieldowners.Owner) show.Owner {
	for _, e := range entries {
		if e.Same(owner) {
			return show.OwnerOf(e)
		}
	}
	return show.OwnerOf(fieldowners.Entry{Owner: owner})
}

func managedBy(o fieldowners.Owner, a cluster.Apply) bool {
	return o.Manager == a.Manager && o.Operation == metav1.ManagedFieldsOperationApply && o.Subresource == a.Subresource
}
