package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	module = "github.com/hduolab/quell"
	// cleanUpTimeout bounds what is done after a failure or an interrupt.
	cleanUpTimeout = 5 * time.Minute
	// stopGrace is what a program gets to end after an interrupt.
	stopGrace = time.Minute
)

type options struct {
	name, focus string
	keep        bool
	timeout     time.Duration
}

// session is everything that one run works with.
type session struct {
	options
	root       string // of the checkout
	dir        string // temporary files
	kubeconfig string
	kind       []string // how a command line of kind begins
	kubectl    string
	isOurs     bool // whether this run has created the cluster, or has tried to
	isThere    bool // whether it has been created
	started    time.Time
	times      []string // what each step took
}

// begin finds what is needed. The caller removes session.dir.
func begin(ctx context.Context, o options) (*session, error) {
	s := &session{options: o, started: time.Now()}
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return nil, fmt.Errorf("find the checkout of %s, in which this has to be run: %w", module, err)
	}
	s.root = strings.TrimSpace(string(out))
	if err := s.findPrograms(ctx); err != nil {
		return nil, err
	}
	if s.dir, err = os.MkdirTemp("", "quell-e2e-"); err != nil {
		return nil, fmt.Errorf("make a temporary folder: %w", err)
	}
	s.kubeconfig = filepath.Join(s.dir, "kubeconfig")
	return s, nil
}

func (s *session) findPrograms(ctx context.Context) error {
	if _, err := exec.LookPath("docker"); err != nil {
		return missing{"docker is not in PATH", "install Docker, see https://docs.docker.com/engine/install"}
	}
	if !s.succeeds(ctx, "docker", "version") {
		return missing{"no Docker engine answers", "start it, or name another one with DOCKER_HOST"}
	}
	s.kubectl = cmp.Or(os.Getenv("KUBECTL"), "kubectl")
	if _, err := exec.LookPath(s.kubectl); err != nil {
		return missing{"kubectl is not in PATH", "install it, see https://kubernetes.io/docs/tasks/tools, or name it with KUBECTL"}
	}
	return s.findKind(ctx)
}

func (s *session) findKind(ctx context.Context) error {
	given := os.Getenv("KIND")
	switch found, err := exec.LookPath(cmp.Or(given, "kind")); {
	case err == nil:
		s.kind = []string{found}
	case given != "":
		return missing{"KIND names no program", err.Error()}
	default:
		s.say("building kind")
		s.kind = []string{"go", "-C", filepath.Join(s.root, "test/tools/kind"), "tool", "kind"}
		if s.kindProgram(ctx, "version").Run() != nil {
			return missing{"kind is not in PATH, and could not be built", "install it, see https://kind.sigs.k8s.io, or name it with KIND"}
		}
	}
	return nil
}

func (s *session) say(format string, args ...any) {
	fmt.Printf("[%5.0fs] %s\n", time.Since(s.started).Seconds(), fmt.Sprintf(format, args...))
}

// step is one of the steps of a run.
type step struct {
	name string
	work func(context.Context) error
}

// take takes a step, and keeps what it took. When ctx ended meanwhile, that is the error: what the step says only follows from it.
func (s *session) take(ctx context.Context, next step) error {
	s.say("%s", next.name)
	began := time.Now()
	err := next.work(ctx)
	s.times = append(s.times, fmt.Sprintf("%.0f s for %s", time.Since(began).Seconds(), next.name))
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%s: stopped by a signal", next.name)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", next.name, err)
	}
	return nil
}

// program is one to be run in the checkout, on the cluster. It is in a process group of its own, so that Ctrl-C in a terminal reaches
// this process alone, which passes it on to the whole group. Only Unix has process groups.
func (s *session) program(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = s.root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "KUBECONFIG="+s.kubeconfig)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = stopGrace
	return cmd
}

// show runs a program, shows what it prints, and returns that too.
func show(cmd *exec.Cmd) (string, error) {
	var printed bytes.Buffer
	cmd.Stdout, cmd.Stderr = io.MultiWriter(os.Stdout, &printed), io.MultiWriter(os.Stderr, &printed)
	if err := cmd.Run(); err != nil {
		return printed.String(), fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
	}
	return printed.String(), nil
}

func (s *session) run(ctx context.Context, name string, args ...string) error {
	_, err := show(s.program(ctx, name, args...))
	return err
}

// kindProgram is kind to be run.
func (s *session) kindProgram(ctx context.Context, args ...string) *exec.Cmd {
	return s.program(ctx, s.kind[0], slices.Concat(s.kind[1:], args)...)
}

func (s *session) runKind(ctx context.Context, args ...string) error {
	_, err := show(s.kindProgram(ctx, args...))
	return err
}

// succeeds runs a program and tells only whether it succeeded.
func (s *session) succeeds(ctx context.Context, name string, args ...string) bool {
	return s.program(ctx, name, args...).Run() == nil
}

// afterwards is a context for what is done whether or not the run was interrupted.
func afterwards(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), cleanUpTimeout)
}

func (s *session) removeFiles() error {
	if err := os.RemoveAll(s.dir); err != nil {
		return fmt.Errorf("remove the temporary files: %w", err)
	}
	return nil
}

// finish deletes the cluster and the temporary files, or says how to reach them where they are kept.
func (s *session) finish(ctx context.Context) error {
	if !s.isOurs {
		return s.removeFiles()
	}
	if s.keep {
		s.say("the cluster %s stays; to reach it and to delete it:\n  export KUBECONFIG=%s\n  %s delete cluster --name %[1]s", s.name, s.kubeconfig, strings.Join(s.kind, " "))
		return nil
	}
	ctx, cancel := afterwards(ctx)
	defer cancel()
	s.say("deleting the cluster %s", s.name)
	return errors.Join(s.deleteCluster(ctx), s.removeFiles())
}
