package differential_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// maxFaults ends a run: the first ones tell most.
const maxFaults = 8

// figures counts what a run saw, by group and name. It is safe for concurrent use.
type figures struct {
	mu     sync.Mutex
	counts map[string]map[string]int
	faults []string
}

var tally = &figures{counts: map[string]map[string]int{}}

func (f *figures) count(group, name string) { f.add(group, name, 1) }

func (f *figures) add(group, name string, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.counts[group] == nil {
		f.counts[group] = map[string]int{}
	}
	f.counts[group][name] += n
}

func (f *figures) of(group, name string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counts[group][name]
}

func (f *figures) total(group string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	sum := 0
	for _, n := range f.counts[group] {
		sum += n
	}
	return sum
}

// reset starts over and returns the faults so far.
func (f *figures) reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts, f.faults = map[string]map[string]int{}, nil
}

func (f *figures) found() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.faults)
}

func (f *figures) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var b strings.Builder
	for _, group := range slices.Sorted(maps.Keys(f.counts)) {
		fmt.Fprintf(&b, "%s:\n", group)
		for _, name := range slices.Sorted(maps.Keys(f.counts[group])) {
			fmt.Fprintf(&b, "  %7d  %s\n", f.counts[group][name], name)
		}
	}
	return b.String()
}

// report notes a fault with all that it takes to understand it.
func report(s *side, live *unstructured.Unstructured, format string, args ...any) {
	text := fmt.Sprintf(format, args...) + "\n  object " + s.Kind + " " + s.name + s.described(live)
	tally.mu.Lock()
	defer tally.mu.Unlock()
	tally.faults = append(tally.faults, text)
	fmt.Fprintf(GinkgoWriter, "fault: %s\n\n", text)
}

// traffic counts the writes of the client under test by object.
type traffic struct {
	next http.RoundTripper
	mu   sync.Mutex
	sent map[string]int
}

func (t *traffic) over(next http.RoundTripper) http.RoundTripper {
	t.next, t.sent = next, map[string]int{}
	return t
}

func (t *traffic) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet && !r.URL.Query().Has("dryRun") {
		parts := strings.Split(strings.TrimSuffix(r.URL.Path, "/status"), "/")
		t.mu.Lock()
		t.sent[parts[len(parts)-1]]++
		t.mu.Unlock()
	}
	return t.next.RoundTrip(r)
}

func (t *traffic) writes(name string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sent[name]
}
