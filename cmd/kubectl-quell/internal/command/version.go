package command

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/hduolab/quell/cmd/kubectl-quell/internal/frame"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/show"
	"github.com/spf13/cobra"
)

// Version is the machine-readable answer of kubectl quell version.
type Version struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Version of this program.
	Version string `json:"version"`
	// GoVersion that built it, and Platform that it was built for, such as linux/amd64.
	GoVersion string `json:"goVersion"`
	Platform  string `json:"platform"`
}

func newVersion(f *frame.Frame) *cobra.Command {
	output := show.NewOutput(false)
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program",
		Example: `  kubectl quell version

  # For a script
  kubectl quell version -o jsonpath='{.version}'`,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	output.AddFlags(cmd)
	validate := func(args []string) error { return errors.Join(frame.NoArgs(args), output.Validate()) }
	cmd.RunE = f.Run(validate, func(*cobra.Command, []string) error {
		if output.IsReport() {
			return output.Print(Version{show.APIVersion, "Version", f.Version, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}, f.Out)
		}
		_, err := fmt.Fprintln(f.Out, "kubectl quell", f.Version)
		return err
	})
	return cmd
}
