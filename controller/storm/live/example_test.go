package live_test

import (
	"context"
	"fmt"
	"time"

	"github.com/hduolab/quell/controller/storm"
	"github.com/hduolab/quell/controller/storm/live"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// Watch all custom resources and Deployments for half a minute and print the storms.
func Example() {
	watch := func(ctx context.Context, config *rest.Config) error {
		d, err := discovery.NewDiscoveryClientForConfig(config)
		if err != nil {
			return err
		}
		var o live.Options
		if o.Metadata, err = metadata.NewForConfig(config); err != nil {
			return err
		}
		if o.Dynamic, err = dynamic.NewForConfig(config); err != nil {
			return err
		}
		selector := live.Selector{CustomResources: true, Kinds: []schema.GroupKind{{Group: "apps", Kind: "Deployment"}}}
		resources, missing, err := live.Discover(ctx, d, o.Metadata, selector)
		if len(resources) == 0 {
			return err
		}
		for _, m := range missing {
			fmt.Println("cannot be watched:", m.GroupKind)
		}
		source := live.New(o)
		source.Watch(resources)
		ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		source.Run(ctx)
		print(source.Report())
		return nil
	}
	_ = watch // takes a cluster
}

func print(r storm.Report) {
	for _, f := range r.Findings {
		if f.IsStorm {
			fmt.Printf("%s: %.0f writes/s by %v: %s\n", f.Object, f.Rate, f.Writers, f.Verdict)
		}
	}
}
