package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/hduolab/quell/controller/storm"
	"github.com/hduolab/quell/controller/storm/live"
	"github.com/hduolab/quell/test/program"
	"github.com/spf13/cobra"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	// lookEvery is how often a report is made, as by a live table.
	lookEvery = time.Second
	pollEvery = 50 * time.Millisecond
)

// newDetect is the process that is measured. It says on its standard output when everything is watched, and in the end, which
// comes with the end of its standard input, how many objects it found storms on.
func newDetect() *cobra.Command {
	var kubeconfig string
	cmd := &cobra.Command{
		Use: "detect", Short: "the detector that is measured", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
			if err != nil {
				return fmt.Errorf("read the kubeconfig: %w", err)
			}
			ctx, stop := context.WithCancel(cmd.Context())
			defer stop()
			go func() {
				_, _ = io.Copy(io.Discard, cmd.InOrStdin())
				stop()
			}()
			return detect(ctx, config, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "`file` with the cluster")
	return cmd
}

func detect(ctx context.Context, config *rest.Config, out io.Writer) error {
	config.UserAgent, config.QPS, config.WarningHandler = "stormcost-detector", -1, rest.NoWarnings{}
	source, err := watchAll(ctx, config)
	if err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		source.Run(ctx)
	}()
	if err := await(ctx, source); err != nil {
		return err
	}
	fmt.Fprintf(out, "watching %d resources\n", len(source.Watches()))
	found := map[storm.Key]bool{}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		for _, f := range source.Report().Findings {
			if f.IsStorm {
				found[f.Object] = true
			}
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	<-ended
	fmt.Fprintf(out, "storms on %d objects\n", len(found))
	return nil
}

func watchAll(ctx context.Context, config *rest.Config) (*live.Source, error) {
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	m, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	full, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	resources, _, err := live.Discover(ctx, d, m, live.Selector{All: true})
	if err != nil {
		return nil, fmt.Errorf("discover what can be watched: %w", err)
	}
	source := live.New(live.Options{Metadata: m, Dynamic: full})
	source.Watch(resources)
	return source, nil
}

// await returns when everything is watched.
func await(ctx context.Context, source *live.Source) error {
	for !isWatching(source) {
		if err := program.Pause(ctx, pollEvery); err != nil {
			return errors.New("ended before everything was watched")
		}
	}
	return nil
}

func isWatching(source *live.Source) bool {
	for _, w := range source.Watches() {
		if w.State != live.Watching {
			return false
		}
	}
	return true
}
