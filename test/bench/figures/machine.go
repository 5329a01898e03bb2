package figures

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/prometheus/procfs"
)

// compared are the modules whose versions a page names.
var compared = []string{
	"k8s.io/client-go", "sigs.k8s.io/controller-runtime", "github.com/fluxcd/pkg/runtime", "sigs.k8s.io/cluster-api", "github.com/awslabs/operatorpkg",
}

// Here is the machine that this runs on, a Linux, and the versions of the modules that the program was built from.
func Here() (Machine, error) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return Machine{}, err
	}
	processors, err := fs.CPUInfo()
	if err == nil && len(processors) == 0 {
		err = errors.New("there is none")
	}
	if err != nil {
		return Machine{}, fmt.Errorf("read the processor's model: %w", err)
	}
	memory, err := fs.Meminfo()
	if err != nil {
		return Machine{}, fmt.Errorf("read the memory's size: %w", err)
	}
	m := Machine{
		Date: time.Now().Format(time.DateOnly), Processor: processors[0].ModelName, Cores: runtime.NumCPU(), Memory: int64(*memory.MemTotalBytes),
		OS: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(), Modules: map[string]string{},
	}
	built, ok := debug.ReadBuildInfo()
	if !ok {
		return m, nil
	}
	for _, path := range compared {
		for _, d := range built.Deps {
			if d.Path == path {
				m.Modules[path] = d.Version
			}
		}
	}
	return m, nil
}
