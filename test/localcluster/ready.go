package localcluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

const (
	pollEvery    = 50 * time.Millisecond
	readyTimeout = 3 * time.Minute // generous: a busy machine must not fail a start
	portAttempts = 10
	// Ports are taken from below the range that Linux and macOS use for outgoing connections: no client can then take
	// the port of a component that is down, not even by connecting to itself.
	firstPort, lastPort = 20000, 32000
)

var errPortTaken = errors.New("the port was taken meanwhile")

func freePort() (int, error) {
	var err error
	for range portAttempts {
		port := firstPort + rand.IntN(lastPort-firstPort)
		var listener net.Listener
		if listener, err = net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(port))); err == nil {
			return port, listener.Close()
		}
	}
	return 0, fmt.Errorf("find a free port: %w", err)
}

// launchOnFreePort tries again when another process took the port between the look and the start.
func (c *Cluster) launchOnFreePort(ctx context.Context, name Component) (err error) {
	for range portAttempts {
		if c.ports[name], err = freePort(); err != nil {
			return err
		}
		if err = c.addressClients(); err != nil {
			return err
		}
		if err = c.launch(ctx, name); !errors.Is(err, errPortTaken) {
			return err
		}
	}
	return err
}

// addressClients points the package's own clients to the ports chosen so far.
func (c *Cluster) addressClients() (err error) {
	c.etcdClient.Host = c.etcdURL()
	c.admin, err = c.User("localcluster-admin", "system:masters")
	return err
}

func (c *Cluster) awaitReady(ctx context.Context, p *process) error {
	switch p.name {
	case Etcd:
		return c.await(ctx, "etcd to be ready", []*process{p}, probe(c.etcdClient, "/readyz"))
	case APIServer:
		return c.await(ctx, "kube-apiserver to be ready", []*process{p}, probe(c.admin, "/readyz"))
	default:
		return nil
	}
}

// await repeats check until it succeeds, ctx ends, three minutes passed, or one of the processes ended.
func (c *Cluster) await(ctx context.Context, what string, processes []*process, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("not within %s", readyTimeout))
	defer cancel()
	for {
		last := check(ctx)
		if last == nil {
			return nil
		}
		for _, p := range processes {
			if !p.running() {
				return startError(p)
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w (last answer: %w)\n%s", what, context.Cause(ctx), last, tails(processes))
		case <-time.After(pollEvery):
		}
	}
}

func startError(p *process) error {
	if strings.Contains(p.tail(), "address already in use") {
		return fmt.Errorf("%w: %w", errPortTaken, p.exitError())
	}
	return p.exitError()
}

func tails(processes []*process) string {
	var text strings.Builder
	for _, p := range processes {
		fmt.Fprintf(&text, "last lines of %s:\n%s\n", p.log, p.tail())
	}
	return text.String()
}

// probe returns a check that GETs path and wants 200, over verified TLS.
func probe(cfg *rest.Config, path string) func(context.Context) error {
	return func(ctx context.Context) error {
		client, err := rest.HTTPClientFor(cfg)
		if err != nil {
			return err
		}
		defer client.CloseIdleConnections() // a server that is asked to stop waits a second for each
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, cfg.Host+path, nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s answers %s", path, response.Status)
		}
		return nil
	}
}
