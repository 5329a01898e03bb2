// Package program has what the programs under test/ have in common: how they wait and how they end.
package program

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Run runs a program and returns its exit code: 0, or 1 with the error on standard error. Ctrl-C, SIGTERM and what else is named
// end its context. A second one ends the process at once, and on Linux the kernel a cluster of its with it.
func Run(run func(context.Context) error, more ...os.Signal) int {
	ctx, stop := signal.NotifyContext(context.Background(), append(more, os.Interrupt, syscall.SIGTERM)...)
	defer stop()
	context.AfterFunc(ctx, stop)
	ctrl.SetLogger(logr.Discard()) // it would drown what the program tells
	klog.SetLogger(logr.Discard()) // as would client-go's complaints of requests that the end of ctx cuts off
	if err := run(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		return 1
	}
	return 0
}

// RunAttached is Run for a program that ends with its terminal too, and with its parent: go run dies of SIGTERM without a word to
// its child.
func RunAttached(run func(context.Context) error) int {
	return Run(func(ctx context.Context) error {
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		go func() {
			defer stop()
			for parent := os.Getppid(); os.Getppid() == parent; {
				if Pause(ctx, time.Second) != nil {
					return
				}
			}
		}()
		return run(ctx)
	}, syscall.SIGHUP)
}

// Refuse is the exit code of a program whose flags could not be read: 2 with the error on standard error, or 0 when that is the help
// that was asked for. The program is in the folder path.
func Refuse(err error, path string) int {
	if errors.Is(err, pflag.ErrHelp) {
		return 0
	}
	fmt.Fprintf(os.Stderr, "error: %v\nsee 'go run %s --help'\n", err, path)
	return 2
}

// Pause waits. When ctx ends before, it returns the cause.
func Pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
