package command

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/hduolab/quell/cmd/kubectl-quell/internal/audit"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/blame"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/cluster"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/frame"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/handover"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/lookout"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/managers"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/manifest"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/show"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/transitions"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/net"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

const long = `Find out who owns which field of a Kubernetes object, whom an apply would overrule, and why it is not a no-op;
hand ownership over; and find write storms.

Paths are written as the API server writes them, with names that have dots in brackets and quotes:
  .spec.template.spec.containers[name="web"].image
  .metadata.labels["app.kubernetes.io/name"]
  .metadata.finalizers[="example.com/cleanup"]

Exit codes: 0 fine, 1 there are findings (conflicts, an apply that is no no-op, storms with --exit-code), 2 wrong usage,
3 the cluster or the input failed.`

// New makes the whole command line.
func New(f *frame.Frame) *cobra.Command {
	root := &cobra.Command{
		Use:           "kubectl-quell",
		Short:         "Find out who owns which field of a Kubernetes object, and who storms",
		Long:          long,
		SilenceErrors: true,
		SilenceUsage:  true,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl quell"},
	}
	root.SetIn(f.In)
	root.SetOut(f.Out)
	root.SetErr(f.ErrOut)
	f.AddFlags(root.PersistentFlags())
	root.AddCommand(blame.New(f), managers.New(f), manifest.NewConflicts(f), manifest.NewNoop(f),
		handover.NewTransfer(f), handover.NewRelease(f), handover.NewRestore(f), transitions.New(f), lookout.New(f), audit.New(f), newVersion(f))
	show.Choices(root, "color", "auto", "always", "never")
	cluster.CompleteConfig(f, root)
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "completion":
			cmd.Long = completionHelp
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() } // which has its arguments judged first
		case "help":
			cmd.Run, cmd.RunE = nil, help
		}
	}
	return root
}

// help shows the help of a command. A name that is none is wrong usage, as it is elsewhere.
func help(cmd *cobra.Command, args []string) error {
	topic, _, err := cmd.Root().Find(args)
	if err != nil {
		return err
	}
	topic.InitDefaultHelpFlag()
	return topic.Help()
}

const completionHelp = `Print a script that has a shell complete the command line of kubectl-quell.

kubectl completes its plugins by programs of another name. To have 'kubectl quell' completed, put a link of that name into
a folder of your PATH:
  ln -s "$(command -v kubectl-quell)" ~/.local/bin/kubectl_complete-quell`

// Completer is the name under which kubectl runs this program to complete the arguments of kubectl quell.
const Completer = "kubectl_complete-quell"

// Arguments are those of a run of this program, which under the name of Completer asks for completions.
func Arguments(argv []string) []string {
	name := strings.TrimSuffix(filepath.Base(argv[0]), ".exe")
	if name == Completer {
		return append([]string{cobra.ShellCompRequestCmd}, argv[1:]...)
	}
	return argv[1:]
}

// Execute runs a command line and returns the exit code.
func Execute(ctx context.Context, streams genericiooptions.IOStreams, version string, args []string) int {
	f := frame.New(streams, version)
	root := New(f)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !f.Started() {
		err = frame.UsageError{Err: err}
	}
	code := frame.Code(err)
	if code > frame.Findings {
		for _, text := range frame.Texts(err) {
			fmt.Fprintln(f.ErrOut, "error: "+strings.TrimSpace(show.EscapeLines(text)))
		}
	}
	if isRefused(err) {
		fmt.Fprintln(f.ErrOut, "is the cluster running, and is it the one that you mean? see --kubeconfig, --context and 'kubectl config view'")
	}
	if code == frame.Usage {
		fmt.Fprintf(f.ErrOut, "see '%s --help'\n", cmd.CommandPath())
	}
	return code
}

// isRefused reports whether nobody listens where the cluster should be. Of the kind of a manifest, which is looked up first,
// there is no more than the text of the cause.
func isRefused(err error) bool {
	if err == nil || net.IsConnectionRefused(err) {
		return err != nil
	}
	text := err.Error()
	return strings.Contains(text, "unable to recognize") && strings.Contains(text, syscall.ECONNREFUSED.Error())
}
