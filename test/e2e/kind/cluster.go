package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	managerImage = "quell-manager:e2e"
	// The image that Apps run has two tags, so that one can be rolled out over the other.
	serverImage, nextServerImage = "quell-e2e-server:1", "quell-e2e-server:2"

	getANodeImage = "pull one on a machine that can, or build one with 'kind build node-image', and name it with KIND_NODE_IMAGE"
)

// checkNodeImage wants the image of the nodes that the environment names.
func (s *session) checkNodeImage(ctx context.Context) error {
	image := os.Getenv("KIND_NODE_IMAGE")
	if image == "" || s.succeeds(ctx, "docker", "image", "inspect", image) || s.succeeds(ctx, "docker", "pull", image) {
		return nil
	}
	return missing{"the nodes' image " + image + " is not there, and cannot be pulled", getANodeImage}
}

// checkName refuses to take, and in the end to delete, a cluster that is there already.
func (s *session) checkName(ctx context.Context) error {
	there, err := s.kindProgram(ctx, "get", "clusters").Output()
	if err == nil && slices.Contains(strings.Fields(string(there)), s.name) {
		err = errors.New("there is a cluster of that name already; to delete it: " + strings.Join(s.kind, " ") + " delete cluster --name " + s.name)
	}
	return err
}

func (s *session) createCluster(ctx context.Context) error {
	if err := errors.Join(s.checkName(ctx), s.checkNodeImage(ctx)); err != nil {
		return err
	}
	s.isOurs = true
	args := []string{"create", "cluster", "--name", s.name, "--kubeconfig", s.kubeconfig, "--wait", "3m"}
	for flag, name := range map[string]string{"--image": "KIND_NODE_IMAGE", "--config": "KIND_CONFIG"} {
		if value := os.Getenv(name); value != "" {
			args = append(args, flag, value)
		}
	}
	printed, err := show(s.kindProgram(ctx, args...))
	s.isThere = err == nil
	if err != nil && strings.Contains(printed, "failed to pull image") {
		return missing{"the nodes' image is not there, and cannot be pulled", getANodeImage}
	}
	return err
}

func (s *session) deleteCluster(ctx context.Context) error {
	return s.runKind(ctx, "delete", "cluster", "--name", s.name, "--kubeconfig", s.kubeconfig)
}

func (s *session) buildManager(ctx context.Context) error {
	return s.run(ctx, "make", "--no-print-directory", "image", "IMAGE="+managerImage)
}

// buildServer builds what Apps run.
func (s *session) buildServer(ctx context.Context) error {
	dir := filepath.Join(s.dir, "server")
	build := s.program(ctx, "go", "build", "-ldflags", "-s -w", "-o", filepath.Join(dir, "server"), "./test/e2e/server")
	build.Env = append(build.Env, "GOOS=linux")
	if _, err := show(build); err != nil {
		return err
	}
	return s.run(ctx, "docker", "build", "-q", "-f", "test/e2e/server/Dockerfile", "-t", serverImage, "-t", nextServerImage, dir)
}

func (s *session) load(ctx context.Context, images ...string) error {
	return s.runKind(ctx, append([]string{"load", "docker-image", "--name", s.name}, images...)...)
}

// install installs config/default with the image that was loaded, and waits until the operator is ready.
func (s *session) install(ctx context.Context) error {
	if err := s.run(ctx, "make", "--no-print-directory", "install", "IMAGE="+managerImage, "KUBECTL="+s.kubectl); err != nil {
		return err
	}
	return s.run(ctx, s.kubectl, "-n", "quell-system", "rollout", "status", "deployment/quell-manager", "--timeout=3m")
}

// runSuite runs test/e2e on the cluster.
func (s *session) runSuite(ctx context.Context) error {
	suite := s.program(ctx, "go", "test", "-count", "1", "-v", "-timeout", s.timeout.String(), "./test/e2e",
		"-ginkgo.v", "-ginkgo.no-color", "-ginkgo.focus", s.focus)
	suite.Env = append(suite.Env, "QUELL_E2E_KUBECONFIG="+s.kubeconfig, "QUELL_E2E_IMAGES="+serverImage+","+nextServerImage)
	_, err := show(suite)
	return err
}

// collect keeps what may tell why something failed, once there is a cluster. It goes on where a part cannot be had.
func (s *session) collect(ctx context.Context) {
	if !s.isThere {
		return
	}
	ctx, cancel := afterwards(ctx)
	defer cancel()
	dir := filepath.Join(s.root, "bin", "e2e-"+s.started.Format("20060102-150405"))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		s.say("logs, events and objects are lost: %v", err)
		return
	}
	s.say("keeping logs, events and objects in %s", dir)
	for file, args := range map[string][]string{
		"events.txt":  {"get", "events", "-A", "--sort-by=.lastTimestamp"},
		"objects.txt": {"get", "all,apps.quell.dev,stormwatches,leases,networkpolicies,nodes", "-A", "-o", "wide"},
		"quell.yaml":  {"get", "apps.quell.dev,stormwatches,deployments,pods,services", "-A", "-o", "yaml", "--show-managed-fields"},
		"manager.log": {"logs", "-n", "quell-system", "deployment/quell-manager", "--all-pods", "--prefix", "--tail=-1"},
	} {
		out, err := s.program(ctx, s.kubectl, args...).CombinedOutput()
		if err := os.WriteFile(filepath.Join(dir, file), out, 0o644); err != nil {
			s.say("%s is lost: %v", file, err)
		}
		if err != nil {
			s.say("kubectl %s: %v", strings.Join(args, " "), err)
		}
	}
	if err := s.runKind(ctx, "export", "logs", "--name", s.name, filepath.Join(dir, "nodes")); err != nil {
		s.say("the nodes' logs are lost: %v", err)
	}
}
