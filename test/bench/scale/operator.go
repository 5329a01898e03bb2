package scale

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/hduolab/quell/test/bench/figures"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/procfs"
)

// tailBytes of the operator's log are shown when something went wrong.
const tailBytes = 4 << 10

// operator is a process of cmd/manager, with as many workers as it has by default.
type operator struct {
	cmd               *exec.Cmd
	profiler, metrics string
	log               string
	born              moment
	ended             chan struct{} // closed once the process is gone
}

func startOperator(r *run) (*operator, error) {
	o := &operator{log: filepath.Join(r.dir, "manager.log"), ended: make(chan struct{})}
	for _, address := range []*string{&o.profiler, &o.metrics} {
		var err error
		if *address, err = freeAddress(); err != nil {
			return nil, err
		}
	}
	file, err := os.Create(o.log)
	if err != nil {
		return nil, fmt.Errorf("make the operator's log: %w", err)
	}
	defer file.Close()
	o.cmd = exec.Command(r.program, "--kubeconfig="+r.cluster.Kubeconfig(), "--health-probe-bind-address=0",
		"--pprof-bind-address="+o.profiler, "--metrics-bind-address="+o.metrics, "--metrics-insecure")
	o.cmd.Stdout, o.cmd.Stderr = file, file
	if o.born, err = r.now(0); err != nil {
		return nil, err
	}
	if err := o.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the operator: %w", err)
	}
	go func() {
		_ = o.cmd.Wait() // it is killed
		close(o.ended)
	}()
	return o, nil
}

// kill ends the process as a crash would. A second time it does nothing.
func (o *operator) kill() {
	_ = o.cmd.Process.Kill() // fails only when it has ended
	<-o.ended
}

func (o *operator) tail() string {
	text, err := os.ReadFile(o.log)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-tailBytes):])
}

// freeAddress may be taken by another process before the operator does, which then ends with an error.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	return listener.Addr().String(), listener.Close()
}

func (o *operator) get(ctx context.Context, address, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET %s: %s", path, response.Status)
	}
	return io.ReadAll(response.Body)
}

// memory is the live heap and the resident memory, after garbage collections: what is pooled survives the first.
func (o *operator) memory(ctx context.Context) (figures.MemorySample, error) {
	var text []byte
	for range 2 {
		var err error
		if text, err = o.get(ctx, o.profiler, "/debug/pprof/heap?gc=1&debug=1"); err != nil {
			return figures.MemorySample{}, fmt.Errorf("read the heap: %w", err)
		}
	}
	heap, err := heapAlloc(text)
	if err != nil {
		return figures.MemorySample{}, err
	}
	process, err := procfs.NewProc(o.cmd.Process.Pid)
	if err != nil {
		return figures.MemorySample{}, err
	}
	stat, err := process.Stat()
	return figures.MemorySample{Heap: heap, Resident: int64(stat.ResidentMemory())}, err
}

// heapAlloc reads the allocator's figures at the end of a heap profile in text form.
func heapAlloc(text []byte) (int64, error) {
	_, rest, found := bytes.Cut(text, []byte("\n# HeapAlloc = "))
	if !found {
		return 0, errors.New("the heap profile does not tell HeapAlloc")
	}
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	return strconv.ParseInt(string(line), 10, 64)
}

// work is how far the App controller is.
type work struct{ reconciles, queued, active float64 }

func (o *operator) work(ctx context.Context) (work, error) {
	text, err := o.get(ctx, o.metrics, "/metrics")
	if err != nil {
		return work{}, err
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return work{}, fmt.Errorf("read the metrics: %w", err)
	}
	sum := func(name, label string) (total float64) {
		for _, m := range families[name].GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == label && l.GetValue() == "app" {
					total += m.GetCounter().GetValue() + m.GetGauge().GetValue()
				}
			}
		}
		return total
	}
	return work{
		sum("controller_runtime_reconcile_total", "controller"),
		sum("workqueue_depth", "name"),
		sum("controller_runtime_active_workers", "controller"),
	}, nil
}
