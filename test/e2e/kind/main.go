// Command kind runs test/e2e in a kind cluster, or makes one for people. It is what make test-e2e-kind, kind-up and kind-down run. See
// its --help.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

const (
	exitFailed  = 1
	exitUsage   = 2
	exitMissing = 3
)

// missing is the error where something is not there that has to be: what it is, and how to get it.
type missing struct{ what, advice string }

func (m missing) Error() string { return m.what + ": " + m.advice }

// usage is the error of a wrong command line.
type usage struct{ error }

func main() { os.Exit(command(os.Args[1:])) }

func command(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	root := newRoot()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
	}
	return exitCode(err)
}

func exitCode(err error) int {
	var m missing
	var u usage
	switch {
	case err == nil:
		return 0
	case errors.As(err, &m):
		return exitMissing
	case errors.As(err, &u):
		return exitUsage
	}
	return exitFailed
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "e2e-kind",
		Short: "run Quell in a kind cluster",
		Long: `e2e-kind runs Quell in a kind cluster, whose nodes are containers of a Docker engine on this machine: with real kubelets, and the operator
as a Pod from its own image. It never touches a kubeconfig that is there already.

From the environment:
  DOCKER_HOST      the Docker engine, as docker takes it
  KIND             the program kind; without it the one in PATH, or else the one that test/tools/kind pins, which is built first
  KIND_NODE_IMAGE  the image of the nodes; without it kind's own, which is pulled
  KIND_CONFIG      a file with kind's configuration of the cluster
  KUBECTL          the program kubectl; without it the one in PATH

Exit codes:
  0  all went well
  1  something failed
  2  wrong usage
  3  Docker, kubectl, kind or the nodes' image is missing; the message says how to get it`,
		Args: none, RunE: func(*cobra.Command, []string) error { return usage{errors.New("which command? See 'kind --help'")} },
		SilenceUsage: true, SilenceErrors: true,
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage{err} })
	root.AddCommand(newTest(), newUp(), newDown())
	return root
}

func newTest() *cobra.Command {
	o := options{name: fmt.Sprintf("quell-e2e-%d", os.Getpid())}
	cmd := &cobra.Command{
		Use: "test", Short: "create a cluster, install the operator, run test/e2e, and delete the cluster",
		Long: `test creates a cluster of a name of its own, builds the operator's image and that of test/e2e/server and loads them into the nodes,
installs config/default, runs test/e2e, and deletes the cluster, also when it is interrupted. When something fails, the logs, events
and objects of the cluster are kept in a folder bin/e2e-TIME.`,
		Args: none, RunE: func(cmd *cobra.Command, _ []string) error { return test(cmd.Context(), o) },
	}
	cmd.Flags().StringVar(&o.name, "name", o.name, "name of the cluster")
	cmd.Flags().BoolVar(&o.keep, "keep", false, "leave the cluster there in the end, and say how to reach it and how to delete it")
	cmd.Flags().StringVar(&o.focus, "focus", "", "run only the specs whose names match this regular expression")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 30*time.Minute, "how long the specs may take")
	return cmd
}

func newUp() *cobra.Command {
	o := options{name: "quell-dev", keep: true}
	cmd := &cobra.Command{
		Use: "up", Short: "create a cluster with the operator in it, for people", Args: none,
		RunE: func(cmd *cobra.Command, _ []string) error { return up(cmd.Context(), o) },
	}
	cmd.Flags().StringVar(&o.name, "name", o.name, "name of the cluster")
	return cmd
}

func newDown() *cobra.Command {
	o := options{name: "quell-dev"}
	cmd := &cobra.Command{
		Use: "down", Short: "delete the cluster that up created", Args: none,
		RunE: func(cmd *cobra.Command, _ []string) error { return down(cmd.Context(), o) },
	}
	cmd.Flags().StringVar(&o.name, "name", o.name, "name of the cluster")
	return cmd
}

func none(cmd *cobra.Command, args []string) error {
	if err := cobra.NoArgs(cmd, args); err != nil {
		return usage{err}
	}
	return nil
}
