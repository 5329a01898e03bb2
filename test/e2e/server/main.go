// Command server is what Apps run in test/e2e where images can be loaded into the nodes: an HTTP server that says who it is, and
// tries connections from within its Pod.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

const (
	address     = ":8080"
	dialTimeout = 2 * time.Second
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	server := &http.Server{Addr: address, Handler: handler(), ReadHeaderTimeout: dialTimeout}
	context.AfterFunc(ctx, func() { _ = server.Close() }) // ListenAndServe tells that it was closed
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		fmt.Fprintf(os.Stderr, "server: %v\n", err)
		return 1
	}
	return 0
}

// handler answers / with the Pod's name, and /dial?address=HOST:PORT with 200, or 502 where no connection came about.
func handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, os.Getenv("HOSTNAME")) })
	mux.HandleFunc("GET /dial", func(w http.ResponseWriter, r *http.Request) {
		dialer := net.Dialer{Timeout: dialTimeout}
		connection, err := dialer.DialContext(r.Context(), "tcp", r.FormValue("address"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer connection.Close()
		fmt.Fprintln(w, "connected")
	})
	return mux
}
