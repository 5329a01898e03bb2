package frame

import (
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/hduolab/quell/cmd/kubectl-quell/internal/show"
)

// warnings tells each warning of the API server once.
type warnings struct {
	out  io.Writer
	mu   sync.Mutex
	told map[string]bool
}

// HandleWarningHeaderWithContext prints a warning. 299 is the only code that the API server uses.
func (w *warnings) HandleWarningHeaderWithContext(_ context.Context, code int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if code == 299 && text != "" && !w.told[text] {
		w.told[text] = true
		fmt.Fprintln(w.out, "warning: "+show.Escape(text))
	}
}
