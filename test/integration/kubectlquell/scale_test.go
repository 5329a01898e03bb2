package kubectlquell_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// objects is how many the specification below makes; more than two pages of what kubectl quell reads at a time.
func objects() int {
	GinkgoHelper()
	n, err := strconv.Atoi(os.Getenv("QUELL_OBJECTS"))
	if os.Getenv("QUELL_OBJECTS") == "" {
		return 1100
	}
	Expect(err).NotTo(HaveOccurred())
	return n
}

var _ = It("reads a large selection in pages", func(ctx SpecContext) {
	ns, n := namespace(ctx), objects()
	fill(ctx, ns, n)
	mark, err := cluster.Mark()
	Expect(err).NotTo(HaveOccurred())
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "kubectl-quell"), "managers", "configmaps", "-A", "-l", "filled="+ns)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig(), "HOME="+bin)
	started := time.Now()
	out, err := cmd.Output()
	Expect(err).NotTo(HaveOccurred())
	Expect(string(out)).To(MatchRegexp(`(?m)^filler +Apply +%d `, n))
	AddReportEntry("managers -A", fmt.Sprintf("%d objects in %s, %d MiB", n, time.Since(started).Round(time.Millisecond), maxMemory(cmd)>>20))
	requests, err := cluster.Requests(mark)
	Expect(err).NotTo(HaveOccurred())
	pages := 0
	for _, r := range requests {
		if r.Verb == "list" && r.Resource == "configmaps" {
			pages++
		}
	}
	Expect(pages).To(BeNumerically(">=", (n+499)/500))
}, NodeTimeout(10*time.Minute))

// fill makes objects, several at a time.
func fill(ctx context.Context, ns string, n int) {
	GinkgoHelper()
	var workers sync.WaitGroup
	for w := range 8 {
		workers.Go(func() {
			defer GinkgoRecover()
			for i := w; i < n; i += 8 {
				mustApply(ctx, "filler", ns, fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: cm-%d, labels: {filled: %s}}, data: {a: b, c: d}}`, i, ns))
			}
		})
	}
	workers.Wait()
}
