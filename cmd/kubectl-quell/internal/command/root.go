package command

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/hduolab/quell/cmd/kubectl-quell/internal/audit"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/blame"
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

Exit codes: 0 fine, 1 there are findings (conflicts, no-op, storms), 2 wrong usage, 3 the cluster or the input failed.`

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
	root.InitDefaultCompletionCmd()
	if completion, _, err := root.Find([]string{"completion"}); err == nil {
		completion.Long = completionHelp
	}
	return root
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
		fmt.Fprintln(f.ErrOut, "error: "+strings.TrimSpace(show.EscapeLines(err.Error())))
	}
	if net.IsConnectionRefused(err) {
		fmt.Fprintln(f.ErrOut, "is the cluster running, and is it the one that you mean? see --kubeconfig, --context and 'kubectl config view'")
	}
	if code == frame.Usage {
		fmt.Fprintf(f.ErrOut, "see '%s --help'\n", cmd.CommandPath())
	}
	return code
}
