package handover

import (
	"bufio"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hduolab/quell/cmd/kubectl-quell/internal/frame"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/show"
	"github.com/spf13/cobra"
)

// writeFlags are common to the commands that write.
type writeFlags struct {
	dryRun string
	yes    bool
	backup string
}

func (fl *writeFlags) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&fl.dryRun, "dry-run", "none", "server has the API server check the change and store nothing; none makes it")
	cmd.Flags().BoolVarP(&fl.yes, "yes", "y", false, "do not ask")
}

func (fl *writeFlags) addBackup(cmd *cobra.Command) {
	cmd.Flags().StringVar(&fl.backup, "backup", "", "file to write what was there before to, for 'kubectl quell restore' (default quell-backup-TIME.yaml)")
}

func (fl *writeFlags) validate() error {
	if fl.dryRun != "none" && fl.dryRun != "server" {
		return fmt.Errorf("--dry-run must be none or server, is %q", fl.dryRun)
	}
	return nil
}

// writer shows changes, asks, and makes them.
type writer struct {
	*writeFlags
	frame *frame.Frame
	// keepsBackup says whether a backup is written first.
	keepsBackup bool
}

func (w writer) write(changes []*change) error {
	if err := w.show(changes); err != nil {
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
	for _, c := range changes {
		name := show.Escape(c.object.GetKind() + " " + c.object.GetName())
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

func (w writer) show(changes []*change) error {
	for _, c := range changes {
		var rows [][]string
		for _, r := range c.rows() {
			rows = append(rows, []string{"  " + r.path, r.from, r.to})
		}
		fmt.Fprintln(w.frame.Out, show.Escape(c.object.GetKind()+" "+c.object.GetName()))
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
	if err != nil {
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
	fmt.Fprintf(w.frame.ErrOut, "wrote %s; undo with: kubectl quell restore %s\n", path, path)
	return nil
}
