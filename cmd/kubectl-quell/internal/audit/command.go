package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/hduolab/quell/cmd/kubectl-quell/internal/frame"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/page"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/show"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/storms"
	"github.com/hduolab/quell/controller/storm"
	"github.com/hduolab/quell/controller/storm/auditlog"
	"github.com/spf13/cobra"
)

type flags struct {
	output                  *show.Output
	rate, listRate, getRate storms.Rate
	top                     int
	exitCode                bool
	page                    string
}

type options struct {
	*flags
	frame *frame.Frame
	files []string
}

// stdin is the argument that stands for the standard input.
const stdin = "-"

// New makes the command.
func New(f *frame.Frame) *cobra.Command {
	fl := &flags{output: show.NewOutput(true), rate: storm.DefaultRate, listRate: 1, getRate: 10}
	cmd := &cobra.Command{
		Use:   "audit FILE...",
		Short: "Find write storms, retry loops and read floods in audit logs of the API server",
		Long: `Find write storms in audit logs of the API server: the object, the field, the field manager, and what kind of mistake it
is; and what no watch can show: writes without effect that are sent all the time, rejected writes that are retried in a
loop, and floods of reads. Then the users, user agents, verbs and objects with most requests.

Logs are JSON lines, one event each, also gzipped; - is the standard input. Rotated files may be given in any order. Nothing
is asked of a cluster. Memory does not grow with the length of the logs. Lines that cannot be read are counted and told.

What can be found depends on the audit level. Metadata tells who sends which requests how often, and which are rejected. It
takes RequestResponse to see which fields change and which writes have no effect.`,
		Example: `  # What is wrong on this control plane
  kubectl quell audit /var/log/kubernetes/audit*.log*

  # With confidence, samples and long names
  kubectl quell audit audit.log -o wide

  # In a pipeline: fail if there is a storm
  zcat audit.log.gz | kubectl quell audit - --exit-code

  # To show to others: one page with plots, which needs no network
  kubectl quell audit audit.log --report audit.html

  # For a script
  kubectl quell audit audit.log -o json`,
	}
	cmd.RunE = f.Run(fl.validate, func(cmd *cobra.Command, args []string) error {
		return options{fl, f, args}.run(cmd.Context())
	})
	fl.output.AddFlags(cmd)
	cmd.Flags().Var(&fl.rate, "rate", "writes of one object from which they can be a storm; also rejected writes and those without effect")
	cmd.Flags().Var(&fl.listRate, "list-rate", "lists of one resource by one client from which they are a flood")
	cmd.Flags().Var(&fl.getRate, "get-rate", "gets of one object by one client from which they are a flood")
	cmd.Flags().IntVar(&fl.top, "top", 5, "how many users, user agents, verbs and objects to list, at most 50")
	cmd.Flags().BoolVar(&fl.exitCode, "exit-code", false, "exit with 1 if a storm was found")
	cmd.Flags().StringVar(&fl.page, "report", "", page.Usage)
	return cmd
}

func (fl *flags) validate(args []string) error {
	if len(args) == 0 {
		return errors.New("name the audit logs, or - for the standard input")
	}
	seen := map[string]bool{}
	for _, arg := range args {
		name := filepath.Clean(arg)
		if seen[name] {
			return fmt.Errorf("%s is named twice, and its requests would count twice", arg)
		}
		seen[name] = true
	}
	if fl.top < 0 || fl.top > maxTop {
		return fmt.Errorf("--top must be from 0 to %d, is %d", maxTop, fl.top)
	}
	return fl.output.Validate()
}

// maxTop is how many of a kind a report of package auditlog has.
const maxTop = 50

func (o options) run(ctx context.Context) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if o.page != "" {
		if err := page.Check(o.page); err != nil {
			return err
		}
	}
	analysis := auditlog.New(auditlog.Options{
		Storm: storm.Options{Rate: float64(o.rate)}, ListRate: float64(o.listRate), GetRate: float64(o.getRate),
	})
	// What was read before a failure is told all the same.
	failed := o.read(ctx, analysis)
	found := analysis.Report()
	o.warn(found)
	if found.Requests == 0 {
		return cmp.Or(failed, errors.New("there is no request in these audit logs"))
	}
	report := newReport(found, o.top)
	if err := errors.Join(o.print(report), o.writePage(report, found, failed), failed); err != nil {
		return err
	}
	if o.exitCode && found.IsStorm() {
		return frame.ErrFindings
	}
	return nil
}

func (o options) print(r Report) error {
	if o.output.IsReport() {
		return o.output.Print(r, o.frame.Out)
	}
	return r.print(o.frame.Out, o.frame.Palette(), o.output.Wide())
}

// read takes the files in the order of their times, and the standard input last.
func (o options) read(ctx context.Context, analysis *auditlog.Analysis) error {
	files := slices.DeleteFunc(slices.Clone(o.files), func(name string) bool { return name == stdin })
	files, err := auditlog.Sort(ctx, files)
	if err != nil {
		return err
	}
	p := newProgress(o.frame, files)
	defer p.done()
	for _, name := range files {
		if err := readFile(ctx, analysis, p, name); err != nil {
			return err
		}
	}
	if len(files) < len(o.files) {
		return analysis.Read(ctx, "standard input", p.over(o.frame.In))
	}
	return nil
}

func readFile(ctx context.Context, analysis *auditlog.Analysis, p *progress, name string) error {
	f, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("open the audit log: %w", err)
	}
	defer f.Close()
	return analysis.Read(ctx, name, p.over(f))
}

// warn tells of lines that could not be read.
func (o options) warn(r auditlog.Report) {
	const shown = 3
	if r.Broken == 0 {
		return
	}
	fmt.Fprintf(o.frame.ErrOut, "warning: %s could not be read\n", show.Count(int(r.Broken), "line"))
	for _, b := range r.Examples[:min(shown, len(r.Examples))] {
		fmt.Fprintln(o.frame.ErrOut, "  "+show.Escape(fmt.Sprintf("%s:%d: %s", b.File, b.Line, b.Reason)))
	}
}
