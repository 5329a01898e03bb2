package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hduolab/quell/controller/app"
	"github.com/hduolab/quell/test/localcluster"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cluster is the one to work on.
type cluster struct {
	client.WithWatch
	config  *rest.Config
	dir     string   // temporary files: the manager, its log and its credentials
	kubectl []string // how a command line for this cluster begins
	// command is the same for a person, in a shell that has run export.
	command, export string
}

// reachCluster is the first step.
func (s *session) reachCluster(ctx context.Context) (err error) {
	reach := s.startLocal
	if s.options.cluster == current {
		reach = s.useCurrent
	}
	if s.cluster, err = reach(ctx); err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := app.AddToScheme(scheme); err != nil {
		return err
	}
	s.cluster.WithWatch, err = client.NewWithWatch(s.cluster.config, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("connect to the cluster: %w", err)
	}
	return nil
}

func (s *session) startLocal(ctx context.Context) (*cluster, error) {
	s.step("starting a local Kubernetes %s", localcluster.KubernetesVersion)
	c, err := localcluster.Start(ctx, localcluster.Options{Log: s.progress})
	if err != nil {
		return nil, err
	}
	s.stopAtEnd("the cluster", c.Stop)
	go func() {
		if err := c.Wait(ctx); err != nil {
			s.fail(fmt.Errorf("the cluster failed: %w", err))
		}
	}()
	return &cluster{
		config:  c.Config(),
		dir:     c.DataDir(), // which goes with the cluster, even when this process is killed
		kubectl: []string{c.Kubectl(), "--kubeconfig", c.Kubeconfig()},
		command: "kubectl",
		export:  fmt.Sprintf("export KUBECONFIG=%s\nalias kubectl=%s", c.Kubeconfig(), c.Kubectl()),
	}, nil
}

func (s *session) useCurrent(ctx context.Context) (*cluster, error) {
	files := clientcmd.NewDefaultClientConfigLoadingRules()
	name, config, err := currentContext(files)
	if err != nil {
		return nil, err
	}
	s.step("using kubectl's current context %q, server %s", name, config.Host)
	kubectl, err := s.findKubectl(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "quell-run-")
	if err != nil {
		return nil, fmt.Errorf("make a temporary folder: %w", err)
	}
	s.atEnd(func() error { return os.RemoveAll(dir) })
	return &cluster{
		config:  config,
		dir:     dir,
		kubectl: []string{kubectl, "--context", name},
		command: kubectl + " --context " + name,
		export:  "export KUBECONFIG=" + strings.Join(files.GetLoadingPrecedence(), string(filepath.ListSeparator)),
	}, nil
}

// currentContext also gives its name, for use from now on: somebody may switch to another context while this runs.
func currentContext(files *clientcmd.ClientConfigLoadingRules) (string, *rest.Config, error) {
	merged, err := files.Load()
	if err != nil {
		return "", nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	name := merged.CurrentContext
	if name == "" {
		return "", nil, fmt.Errorf("no current context in %s: choose one with 'kubectl config use-context', or leave out --cluster=current",
			strings.Join(files.GetLoadingPrecedence(), ", "))
	}
	config, err := clientcmd.NewNonInteractiveClientConfig(*merged, name, &clientcmd.ConfigOverrides{}, files).ClientConfig()
	if err != nil {
		return "", nil, fmt.Errorf("read context %q of the kubeconfig: %w", name, err)
	}
	return name, config, nil
}

func (s *session) findKubectl(ctx context.Context) (string, error) {
	if _, err := exec.LookPath("kubectl"); err == nil {
		return "kubectl", nil
	}
	dir, err := localcluster.Binaries(ctx, s.progress)
	return filepath.Join(dir, "kubectl"), err
}

func (s *session) tellRemains() {
	s.say("The CRD, the RBAC rules and the App stay. To remove them, and every other App of that cluster:\n"+
		"  %[1]s delete apps.quell.dev --all --all-namespaces\n"+
		"  %[1]s delete --ignore-not-found -k %[2]s", s.cluster.command, filepath.Join(s.root, "config/default"))
}

// install is the second step.
func (s *session) install(ctx context.Context) error {
	s.step("installing the CustomResourceDefinition and the RBAC rules")
	if err := s.standAlone(ctx); err != nil {
		return err
	}
	if s.options.cluster == current {
		s.atEnd(func() error { s.tellRemains(); return nil })
	}
	apply := []string{"apply", "--server-side"}
	for _, path := range []string{"manager/namespace.yaml", "crd", "rbac"} {
		apply = append(apply, "-f", filepath.Join(s.root, "config", path))
	}
	if err := s.run(ctx, apply...); err != nil {
		return err
	}
	return localcluster.WaitEstablished(ctx, s.cluster.config, "apps.quell.dev", "stormwatches.quell.dev")
}

// standAlone refuses to start beside an operator that leads already: ours would wait, and that one do the work.
func (s *session) standAlone(ctx context.Context) error {
	lease := &coordinationv1.Lease{}
	err := s.cluster.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "quell-manager"}, lease)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	holder, renewed := ptr.Deref(lease.Spec.HolderIdentity, ""), ptr.Deref(lease.Spec.RenewTime, metav1.MicroTime{})
	lapses := renewed.Add(time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)) * time.Second)
	if holder == "" || time.Now().After(lapses) {
		return nil
	}
	return fmt.Errorf("the operator runs in this cluster already: %s holds Lease %s/%s; stop it, or if it was killed try again in %s",
		holder, namespace, lease.Name, time.Until(lapses).Round(time.Second))
}

// run runs kubectl. Its output is shown only when it fails.
func (s *session) run(ctx context.Context, args ...string) error {
	out, err := s.kubectl(ctx, args...)
	if err != nil {
		return fmt.Errorf("kubectl %s: %w\n%s", args[0], err, strings.TrimSpace(out))
	}
	return nil
}

func (s *session) kubectl(ctx context.Context, args ...string) (string, error) {
	s.detail("kubectl %s", strings.Join(args, " "))
	line := slices.Concat(s.cluster.kubectl, args)
	out, err := exec.CommandContext(ctx, line[0], line[1:]...).CombinedOutput()
	return string(out), err
}
