// Command kubectl-quell is the kubectl plugin `kubectl quell`: field-manager inspection.
package main

import (
	"context"
	"os"

	"github.com/go-logr/logr"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/command"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"
)

// version is set by the linker.
var version = "unknown"

func main() {
	// What client-go logs on the way to an error says less than the error, in another form.
	klog.SetLogger(logr.Discard())
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	os.Exit(command.Execute(context.Background(), streams, version, command.Arguments(os.Args)))
}
