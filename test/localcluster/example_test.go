package localcluster_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/hduolab/quell/test/localcluster"
)

func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute) // the first start builds Kubernetes
	defer cancel()
	if err := countWrites(ctx); err != nil {
		fmt.Println(err)
	}
}

// countWrites counts what the operator "manager" wrote within a time.
func countWrites(ctx context.Context) (err error) {
	cluster, err := localcluster.Start(ctx, localcluster.Options{Log: os.Stderr})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()

	before, err := cluster.Mark()
	if err != nil {
		return err
	}
	// Run the operator with cluster.Config(), or cluster.User("manager"), here.
	writes, err := cluster.Requests(before,
		localcluster.ByUserAgent("manager/"), localcluster.Writes, localcluster.NotLeases)
	if err != nil {
		return err
	}
	fmt.Printf("%d writes\n%s", len(writes), localcluster.Summary(writes))
	return nil
}

// A kubeconfig for a ServiceAccount, so that a program run from a terminal has the rights it would have in the cluster.
func ExampleServiceAccountConfig() {
	ctx := context.Background()
	cluster, err := localcluster.Start(ctx, localcluster.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { fmt.Println(cluster.Stop()) }()
	cfg, expires, err := localcluster.ServiceAccountConfig(ctx, cluster.Config(), "default", "default")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("valid until", expires)
	fmt.Println(localcluster.WriteKubeconfig("manager.kubeconfig", cfg))
}

// A component that fails and comes back.
func ExampleCluster_Restart() {
	ctx := context.Background()
	cluster, err := localcluster.Start(ctx, localcluster.Options{ControlPlaneOnly: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { fmt.Println(cluster.Stop()) }()
	fmt.Println(cluster.Kill(localcluster.Etcd))
	fmt.Println(cluster.Restart(ctx, localcluster.Etcd))
}
