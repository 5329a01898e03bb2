package frame

import (
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/hduolab/quell/cmd/kubectl-quell/internal/show"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/rest"
)

// Frame is shared by all commands of one run. It is not safe for concurrent use.
type Frame struct {
	genericiooptions.IOStreams
	// Config are kubectl's own flags that name cluster, user and namespace.
	Config *genericclioptions.ConfigFlags
	// Now is the clock by which ages are told.
	Now func() time.Time
	// Version of the program.
	Version string

	color   string
	started bool
}

// New makes a frame on these streams; warnings of the API server go to ErrOut.
func New(streams genericiooptions.IOStreams, version string) *Frame {
	f := &Frame{IOStreams: streams, Now: time.Now, Version: version}
	f.Config = genericclioptions.NewConfigFlags(true).WithDeprecatedPasswordFlag().WithDiscoveryBurst(300).WithDiscoveryQPS(50)
	f.Config.WrapConfigFn = func(c *rest.Config) *rest.Config {
		c.WarningHandlerWithContext = &warnings{out: streams.ErrOut, told: map[string]bool{}}
		c.QPS, c.Burst = 50, 300 // a person waits for the answer; the API server's own flow control stands behind it
		return c
	}
	return f
}

// AddFlags adds the flags that every command has.
func (f *Frame) AddFlags(flags *pflag.FlagSet) {
	f.Config.AddFlags(flags)
	flags.StringVar(&f.color, "color", "auto", "colour the output: auto, always or never; auto heeds NO_COLOR and whether the output is a terminal")
}

// Palette decides about colour.
func (f *Frame) Palette() show.Palette {
	if f.color == "auto" || f.color == "" {
		return show.Palette(os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && printers.IsTerminal(f.Out))
	}
	return f.color == "always"
}

// Run makes the function of a command: options are filled from the flags already, validate judges them, run does the
// work. Whatever fails before run is the user's to mend.
func (f *Frame) Run(validate func(args []string) error, run func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		f.started = true
		if !slices.Contains([]string{"auto", "always", "never"}, f.color) {
			return UsageError{fmt.Errorf("--color must be auto, always or never, is %q", f.color)}
		}
		if err := validate(args); err != nil {
			return UsageError{err}
		}
		return run(cmd, args)
	}
}

// Started reports whether a command was reached; an error before that is one of the command line.
func (f *Frame) Started() bool { return f.started }

// CheckManager refuses what the API server does not take for the name of a field manager.
func CheckManager(flag, name string) error {
	if name == "" {
		return fmt.Errorf("%s must not be empty", flag)
	}
	if errs := validation.ValidateFieldManager(name, nil); len(errs) > 0 {
		return fmt.Errorf("%s %q: %s", flag, name, errs[0].Detail)
	}
	return nil
}

// NoArgs is the validation of a command without arguments.
func NoArgs(args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("unexpected argument %q", args[0])
	}
	return nil
}
