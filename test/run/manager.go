package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/hduolab/quell/test/checkout"
	"github.com/hduolab/quell/test/localcluster"
	"k8s.io/client-go/rest"
)

const (
	namespace      = "quell-system"
	serviceAccount = "quell-manager"

	readyTimeout = time.Minute
	pollEvery    = 50 * time.Millisecond
	stopGrace    = 20 * time.Second // the manager gives its reconciles and its Lease 15
	retryToken   = time.Minute
	portAttempts = 5
	tailLines    = 20
)

var errPortTaken = errors.New("another process took the port meanwhile")

// manager is the operator as a child process.
type manager struct {
	cmd   *exec.Cmd
	log   string
	ended chan struct{} // closed after the child was reaped
}

// startManager is the third step.
func (s *session) startManager(ctx context.Context) error {
	s.step("building the operator and starting it as ServiceAccount %s/%s", namespace, serviceAccount)
	program := filepath.Join(s.cluster.dir, "manager")
	if err := s.during("building", func() error { return checkout.Build(ctx, "manager", program) }); err != nil {
		return err
	}
	kubeconfig, err := s.identify(ctx)
	if err != nil {
		return err
	}
	for range portAttempts {
		if err = s.launch(ctx, program, kubeconfig); !errors.Is(err, errPortTaken) {
			return err
		}
	}
	return err
}

// identify writes a kubeconfig with the manager's own rights. Its token is in a file of its own, which clients read again
// each minute, and is renewed there before it expires.
func (s *session) identify(ctx context.Context) (string, error) {
	token, kubeconfig := filepath.Join(s.cluster.dir, "manager.token"), filepath.Join(s.cluster.dir, "manager.kubeconfig")
	expires, err := s.renew(ctx, token)
	if err != nil {
		return "", err
	}
	config := rest.AnonymousClientConfig(s.cluster.config)
	config.BearerTokenFile = token
	go s.keepRenewing(ctx, token, expires)
	return kubeconfig, localcluster.WriteKubeconfig(kubeconfig, config)
}

// renew replaces the token in the file at once, so that nobody reads half of it.
func (s *session) renew(ctx context.Context, file string) (time.Time, error) {
	config, expires, err := localcluster.ServiceAccountConfig(ctx, s.cluster.config, namespace, serviceAccount)
	if err != nil {
		return time.Time{}, err
	}
	if err := os.WriteFile(file+".new", []byte(config.BearerToken), 0o600); err != nil {
		return time.Time{}, fmt.Errorf("keep the manager's token: %w", err)
	}
	return expires, os.Rename(file+".new", file)
}

func (s *session) keepRenewing(ctx context.Context, file string, expires time.Time) {
	wait := renewIn(time.Until(expires))
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		expires, err := s.renew(ctx, file)
		if wait = renewIn(time.Until(expires)); err != nil {
			s.say("the manager's token is not renewed: %v", err)
			wait = retryToken
		}
	}
}

// renewIn leaves a fifth of a token's life for attempts that fail.
func renewIn(life time.Duration) time.Duration { return life * 4 / 5 }

// launch starts the manager on a free port and waits until it is ready.
func (s *session) launch(ctx context.Context, program, kubeconfig string) error {
	address, err := freeAddress()
	if err != nil {
		return err
	}
	m, err := startChild(filepath.Join(s.cluster.dir, "manager.log"), program, "--kubeconfig="+kubeconfig,
		"--health-probe-bind-address="+address, "--leader-elect", "--leader-election-namespace="+namespace, "--zap-devel")
	if err != nil {
		return err
	}
	if err := m.awaitReady(ctx, "http://"+address+"/readyz"); err != nil {
		return errors.Join(err, m.stop())
	}
	s.detail("process %d is ready, its log is %s", m.cmd.Process.Pid, m.log)
	s.manager = m
	s.stopAtEnd("the operator", m.stop)
	go func() { <-m.ended; s.fail(m.exitError()) }()
	return nil
}

// freeAddress may be taken by another process before the manager does; launch then fails with errPortTaken.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	return listener.Addr().String(), listener.Close()
}

// startChild starts a program with its output in the file log, out of the reach of a terminal's Ctrl-C.
func startChild(log, program string, args ...string) (*manager, error) {
	file, err := os.Create(log)
	if err != nil {
		return nil, fmt.Errorf("make the manager's log: %w", err)
	}
	defer file.Close()
	m := &manager{cmd: exec.Command(program, args...), log: log, ended: make(chan struct{})}
	m.cmd.Stdout, m.cmd.Stderr = file, file
	m.cmd.SysProcAttr = childAttributes()
	if err := m.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the manager: %w", err)
	}
	go func() {
		_ = m.cmd.Wait() // exitError tells the same from ProcessState
		close(m.ended)
	}()
	return m, nil
}

func (m *manager) awaitReady(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("not ready after %s", readyTimeout))
	defer cancel()
	for !answers(ctx, url) {
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the manager: %w; its last words:\n%s", context.Cause(ctx), m.tail())
		case <-m.ended:
			return m.exitError()
		case <-time.After(pollEvery):
		}
	}
	return nil
}

func answers(ctx context.Context, url string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// stop asks the manager to end, and kills it if it does not within 20 seconds, which is an error.
func (m *manager) stop() error {
	_ = m.cmd.Process.Signal(syscall.SIGTERM) // fails only when it has ended already
	select {
	case <-m.ended:
		return nil
	case <-time.After(stopGrace):
	}
	_ = m.cmd.Process.Kill()
	<-m.ended
	return fmt.Errorf("the manager did not stop within %s and was killed", stopGrace)
}

// exitError says how the manager ended. It may be called only after it has.
func (m *manager) exitError() error {
	tail := m.tail()
	err := fmt.Errorf("the manager ended by itself (%s); its last words:\n%s", m.cmd.ProcessState, tail)
	if strings.Contains(tail, "address already in use") {
		return fmt.Errorf("%w: %w", errPortTaken, err)
	}
	return err
}

func (m *manager) tail() string {
	text, err := os.ReadFile(m.log)
	if err != nil {
		return err.Error()
	}
	return lastLines(string(text))
}

func lastLines(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-tailLines):], "\n")
}
