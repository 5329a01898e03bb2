package handover

import (
	"bufio"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hduolab/quell/cmd/kubectl-quell/internal/cluster"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/frame"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/show"
	"github.com/hduolab/quell/controller/fieldowners"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Flags are common to the commands that write.
type Flags struct {
	dryRun string
	yes    bool
	backup string
}

// AddFlags adds --dry-run and --yes to a command.
func (fl *Flags) AddFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&fl.dryRun, "dry-run", "none", "server has the API server check the change and store nothing; none makes it")
	show.Choices(cmd, "dry-run", "none", "server")
	cmd.Flags().BoolVarP(&fl.yes, "yes", "y", false, "do not ask")
}

// AddBackup adds --backup to a command.
func (fl *Flags) AddBackup(cmd *cobra.Command) {
	cmd.Flags().StringVar(&fl.backup, "backup", "", "file to write what was there before to, for 'kubectl quell restore' (default quell-backup-TIME.yaml)")
}

// Validate judges the flags.
func (fl *Flags) Validate() error {
	if fl.dryRun != "none" && fl.dryRun != "server" {
		return fmt.Errorf("--dry-run must be none or server, which alone knows the owners, is %q", fl.dryRun)
	}
	return nil
}

// Given reports whether any of the flags says something.
func (fl *Flags) Given() bool { return fl.dryRun != "none" || fl.backup != "" || fl.yes }

// HandOver shows what is handed over in the objects of a selection, asks, writes a backup, and does it. Objects with nothing to
// hand over are left aside; without any other the error is fieldowners.ErrNothing, unless nothing was selected at all.
func (fl *Flags) HandOver(f *frame.Frame, selection *cluster.Selection, args []string, choose func(cluster.Object) fieldowners.Handover) error {
	var changes []*change
	visited := false
	err := selection.Visit(f, args, func(object cluster.Object) error {
		visited = true
		handover := choose(object)
		c, err := newChange(object, func(u *unstructured.Unstructured) ([]metav1.ManagedFieldsEntry, error) {
			return handover.Apply(u.GetManagedFields())
		})
		if errors.Is(err, fieldowners.ErrNothing) {
			return nil
		}
		changes = append(changes, c)
		return err
	})
	if err != nil || !visited { // of which Visit tells
		return err
	}
	if len(changes) == 0 {
		return fieldowners.ErrNothing
	}
	return writer{fl, f, true}.write(changes)
}

// writer shows changes, asks, and makes them.
type writer struct {
	*Flags
	frame *frame.Frame
	// keepsBackup says whether a backup is written first.
	keepsBackup bool
}

func (w writer) write(changes []*change) error {
	names := show.Names(changes, func(c *change) show.ObjectRef { return show.RefOf(c.object.Unstructured) })
	if err := w.show(changes, names); err != nil {
		return err
	}
	isDry := w.dryRun == "server"
	if !isDry {
		if sure, err := w.ask(len(changes)); err != nil || !sure {
			return err
		}
		if err := w.save(changes); err != nil {
			return err
		}
	}
	var errs []error
	for i, c := range changes {
		name := names[i]
		if err := c.run(isDry); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
			continue
		}
		if isDry {
			name += " (server dry run)"
		}
		fmt.Fprintln(w.frame.Out, name+": changed")
	}
	return errors.Join(errs...)
}

func (w writer) show(changes []*change, names []string) error {
	for i, c := range changes {
		var rows [][]string
		for _, r := range c.rows() {
			rows = append(rows, []string{"  " + r.path, r.from, r.to})
		}
		fmt.Fprintln(w.frame.Out, names[i])
		if err := show.Table(w.frame.Out, []string{"  PATH", "FROM", "TO"}, rows); err != nil {
			return err
		}
	}
	return nil
}

// ask reads the answer of a person. Without one nothing is done.
func (w writer) ask(n int) (bool, error) {
	if w.yes {
		return true, nil
	}
	fmt.Fprintf(w.frame.ErrOut, "change the owners of %s? [y/N] ", show.Count(n, "object"))
	answer, err := bufio.NewReader(w.frame.In).ReadString('\n')
	if err != nil && answer == "" {
		return false, frame.UsageError{Err: errors.New("nobody answers: say --yes, or --dry-run=server")}
	}
	if slices.Contains([]string{"y", "yes"}, strings.ToLower(strings.TrimSpace(answer))) {
		return true, nil
	}
	fmt.Fprintln(w.frame.ErrOut, "nothing was changed")
	return false, nil
}

func (w writer) save(changes []*change) error {
	if !w.keepsBackup {
		return nil
	}
	path := w.backup
	if path == "" {
		path = "quell-backup-" + w.frame.Now().UTC().Format("20060102T150405.000Z") + ".yaml"
	}
	if err := writeBackup(path, changes); err != nil {
		return err
	}
	fmt.Fprintf(w.frame.ErrOut, "wrote %s; undo with: kubectl quell restore %s\n", show.Escape(path), show.Escape(show.ShellWord(path)))
	return nil
}
