package transitions

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"syscall"

	"github.com/hduolab/quell/cmd/kubectl-quell/internal/cluster"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/frame"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/show"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/resource"
	watchtools "k8s.io/client-go/tools/watch"
)

type flags struct {
	selection cluster.Selection
	output    *show.Output
	watch     bool
}

type options struct {
	*flags
	frame *frame.Frame
	args  []string
}

// New makes the command.
func New(f *frame.Frame) *cobra.Command {
	fl := &flags{output: show.NewOutput(false)}
	cmd := &cobra.Command{
		Use:   "diff-owners (TYPE/NAME --watch | -f FILE)",
		Short: "Tell who takes or loses which field, with each change of an object",
		Long: `Tell who takes or loses which field of an object, one line for each: live with --watch, until the object is deleted or
Ctrl-C; or from a file with several versions of it, one after the other.

A change by the owner of a field is no change of owners, and managedFields do not tell of writers who only remove fields.

With -o, a file makes one report. With --watch there is a report for each change of owners at once, as objects come from
kubectl get --watch: one JSON after the other, or YAML documents with --- between them.`,
		Example: `  # Who keeps taking the replicas from whom
  kubectl quell diff-owners deployment/web --watch

  # From a record
  kubectl get deployment/web -o yaml --show-managed-fields --watch > record.yaml
  kubectl quell diff-owners -f record.yaml

  # For a script: who has taken which field
  kubectl quell diff-owners deployment/web --watch -o jsonpath='{range .items[*]}{.path}{"\t"}{.gained[*].manager}{"\n"}{end}'`,
	}
	fl.selection.AddFiles(cmd, "file with versions of an object and their managedFields; - is the standard input", false)
	fl.output.AddFlags(cmd)
	cmd.Flags().BoolVarP(&fl.watch, "watch", "w", false, "watch the object in the cluster")
	cmd.ValidArgsFunction = cluster.CompleteTypes(f)
	cmd.RunE = f.Run(fl.validate, func(cmd *cobra.Command, args []string) error {
		return options{fl, f, args}.run(cmd.Context())
	})
	return cmd
}

func (fl *flags) validate(args []string) error {
	if fl.watch == fl.selection.FromFiles() {
		return errors.New("give either TYPE/NAME and --watch, or -f FILE")
	}
	if fl.watch && !cluster.Named(args) {
		return errors.New("name the object to watch: TYPE/NAME")
	}
	return errors.Join(fl.output.Validate(), fl.selection.Validate(args))
}

func (o options) run(ctx context.Context) error {
	if !o.watch {
		return o.replay()
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	var objects []cluster.Object
	err := o.selection.Visit(o.frame, o.args, func(object cluster.Object) error {
		objects = append(objects, object)
		return nil
	})
	if err != nil {
		return err
	}
	if len(objects) != 1 {
		return fmt.Errorf("one object can be watched at a time, not %d", len(objects))
	}
	fmt.Fprintf(o.frame.ErrOut, "watching %s from version %s on\n", cluster.Ref(objects[0].Unstructured), objects[0].GetResourceVersion())
	d := &differ{tell: printer{o.frame.Out, o.frame.Palette()}.tell}
	if o.output.IsReport() {
		d.tell = newReporter(o.frame.Out, o.output, true).tell
	}
	return o.follow(ctx, d, objects[0])
}

// replay reads the versions from files, until one does not go with those before. A report has what was read until then.
func (o options) replay() error {
	if !o.output.IsReport() {
		return o.replayTo(&differ{tell: printer{o.frame.Out, o.frame.Palette()}.tell})
	}
	r := newReporter(o.frame.Out, o.output, false)
	err := o.replayTo(&differ{tell: r.tell})
	return errors.Join(r.print(), err)
}

func (o options) replayTo(d *differ) error {
	versions := 0
	var failed error
	err := o.selection.Visit(o.frame, nil, func(version cluster.Object) error {
		if versions++; failed == nil {
			failed = d.next(version.Unstructured, latest(version.Unstructured))
		}
		return nil
	})
	err = errors.Join(failed, err)
	switch {
	case err != nil || versions == 0:
	case !d.isTracked:
		fmt.Fprintln(o.frame.ErrOut, "note: no version has managedFields: kubectl get -o yaml writes them with --show-managed-fields only")
	case versions == 1:
		fmt.Fprintln(o.frame.ErrOut, "note: there is one version only, and nothing to compare it with")
	}
	return err
}

// follow watches until the object is deleted or ctx is done. When the API server has forgotten the version at which a watch is
// to go on, the object is read anew, and the line of one change may then stand for several.
func (o options) follow(ctx context.Context, d *differ, object cluster.Object) error {
	current := object.Unstructured
	for {
		if err := d.next(current, o.frame.Now()); err != nil {
			return err
		}
		deleted, err := o.events(ctx, d, object.Info, current.GetResourceVersion())
		if deleted || ctx.Err() != nil || err != nil {
			return err
		}
		current, err = cluster.Get(object.Info, "")
		if apierrors.IsNotFound(err) {
			fmt.Fprintln(o.frame.ErrOut, "the object was deleted")
			return nil
		}
		if err != nil {
			return fmt.Errorf("read %s anew: %w", cluster.Ref(object.Unstructured), err)
		}
	}
}

// events hands on the versions of one watch, which goes on over lost connections.
func (o options) events(ctx context.Context, d *differ, info *resource.Info, version string) (deleted bool, err error) {
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, version, lister{info})
	if err != nil {
		return false, fmt.Errorf("watch %s: %w", info.ObjectName(), err)
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		u, isObject := event.Object.(*unstructured.Unstructured)
		switch {
		case event.Type == watch.Deleted:
			fmt.Fprintln(o.frame.ErrOut, "the object was deleted")
			return true, nil
		case event.Type == watch.Error:
			err := apierrors.FromObject(event.Object)
			if apierrors.IsGone(err) || apierrors.IsResourceExpired(err) {
				return false, nil
			}
			return false, fmt.Errorf("watch %s: %w", info.ObjectName(), err)
		case isObject && event.Type != watch.Bookmark:
			if err := d.next(u, o.frame.Now()); err != nil {
				return false, err
			}
		}
	}
	return false, nil
}

// lister opens watches of one object.
type lister struct{ *resource.Info }

// WatchWithContext opens one watch.
func (l lister) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.Watch = true
	options.FieldSelector = fields.OneTermEqualSelector("metadata.name", l.Name).String()
	return l.Client.Get().NamespaceIfScoped(l.Namespace, l.Namespaced()).Resource(l.Mapping.Resource.Resource).
		VersionedParams(&options, metav1.ParameterCodec).Watch(ctx)
}
