package command

import (
	"fmt"

	"github.com/hduolab/quell/cmd/kubectl-quell/internal/frame"
	"github.com/spf13/cobra"
)

func newVersion(f *frame.Frame) *cobra.Command {
	return &cobra.Command{
		Use:               "version",
		Short:             "Print the version of this program",
		Example:           "  kubectl quell version",
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: f.Run(frame.NoArgs, func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(f.Out, "kubectl quell", f.Version)
			return err
		}),
	}
}
