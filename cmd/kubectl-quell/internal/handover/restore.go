package handover

import (
	"errors"
	"fmt"
	"slices"

	"github.com/hduolab/quell/cmd/kubectl-quell/internal/cluster"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/frame"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/show"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// NewRestore makes the command that puts a backup back.
func NewRestore(f *frame.Frame) *cobra.Command {
	fl := &restoreFlags{}
	cmd := &cobra.Command{
		Use:   "restore (FILE | -f FILE)",
		Short: "Put back the owners that transfer or release has changed",
		Long: `Put back managedFields from the backup file of 'kubectl quell transfer' or 'kubectl quell release'. Entries of other
managers stay as they are now. When an entry that was changed has changed again since, or the object is another one of the
same name, it is refused, and the other objects of the backup are restored all the same.

FILE - is the standard input. Nobody can answer there then, so it takes --yes, or --dry-run=server.`,
		Example: `  kubectl quell restore quell-backup-20260102T150405.000Z.yaml

  # From elsewhere
  cat quell-backup-20260102T150405.000Z.yaml | kubectl quell restore -f - --yes`,
	}
	fl.AddFlags(cmd)
	cmd.Flags().StringArrayVarP(&fl.files, "filename", "f", nil, "the backup file; - is the standard input")
	cmd.RunE = f.Run(fl.validate, func(_ *cobra.Command, args []string) error {
		return restore(f, &fl.Flags, slices.Concat(args, fl.files)[0])
	})
	return cmd
}

type restoreFlags struct {
	Flags
	files []string
}

// stdin is the name that stands for the standard input.
const stdin = "-"

func (fl *restoreFlags) validate(args []string) error {
	files := slices.Concat(args, fl.files)
	if len(files) != 1 {
		return errors.New("name one backup file, as an argument or by -f")
	}
	if files[0] == stdin && !fl.yes && fl.dryRun == "none" {
		return errors.New("the standard input is the backup, so nobody can answer there: say --yes, or --dry-run=server")
	}
	return fl.Validate()
}

func restore(f *frame.Frame, fl *Flags, path string) error {
	backup, err := readBackup(f.In, path)
	if err != nil {
		return err
	}
	items := map[show.ObjectRef]BackupItem{}
	var objects []*unstructured.Unstructured
	for _, i := range backup.Items {
		o := i.object()
		items[show.RefOf(o)] = i
		objects = append(objects, o)
	}
	var changes []*change
	failed := cluster.Find(f, objects, func(o cluster.Object) error {
		c, err := items[show.RefOf(o.Unstructured)].restoration(o)
		if errors.Is(err, errAsBefore) {
			fmt.Fprintln(f.ErrOut, err)
			return nil
		}
		if err == nil {
			changes = append(changes, c)
		}
		return err
	})
	if len(changes) == 0 {
		return failed
	}
	return errors.Join(failed, writer{fl, f, false}.write(changes))
}

// restoration is the change that puts an object's owners back, as it stands in the cluster.
func (i BackupItem) restoration(o cluster.Object) (*change, error) {
	live, err := cluster.Get(o.Info, "")
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", cluster.Ref(o.Unstructured), err)
	}
	o.Unstructured = live
	return newChange(o, i.restored)
}
