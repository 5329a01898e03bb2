package scale_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/hduolab/quell/test/bench/figures"
	"github.com/hduolab/quell/test/bench/scale"
)

// TestFewApps goes through all that is measured. It looks at counts only: times and memory depend on the machine.
func TestFewApps(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	g := NewWithT(t)
	ctrl.SetLogger(logr.Discard())
	var progress bytes.Buffer
	const apps = 20
	result, err := scale.Run(t.Context(), scale.Options{Sizes: []int{apps}, Rest: time.Second, Timeout: 3 * time.Minute}, &progress)
	g.Expect(err).NotTo(HaveOccurred(), progress.String())
	t.Log(progress.String())
	g.Expect(result.Machine.Cores).To(BeNumerically(">", 0))
	g.Expect(result.Machine.Memory).To(BeNumerically(">", 0))
	g.Expect(result.Runs).To(HaveLen(2))
	g.Expect(result.Runs[0].Apps).To(BeZero())
	r := result.Runs[1]
	g.Expect(r.Apps).To(Equal(apps))

	g.Expect(r.Create.Verbs).To(HaveKeyWithValue("patch deployments", apps), "one apply each")
	g.Expect(r.Create.Verbs).To(HaveKeyWithValue("patch services", apps), "one apply each")
	g.Expect(r.Create.Verbs["patch apps/status"]).To(And(BeNumerically(">=", apps), BeNumerically("<=", 3*apps)))
	g.Expect(r.Create.Writes).To(BeNumerically(">=", 3*apps))

	g.Expect(r.Restart.Writes).To(BeZero(), progress.String())
	for verb := range r.Restart.Verbs {
		g.Expect(verb).To(MatchRegexp("^(list|watch) |^get other$"), progress.String())
	}
	g.Expect(r.Restart.Verbs).To(HaveKeyWithValue("watch apps", 1), "which lists them too")
	g.Expect(r.Rest.Writes).To(BeZero(), progress.String())
	for _, l := range []figures.Load{r.Create, r.Restart, r.Rest} {
		g.Expect([]float64{l.Seconds, float64(l.Heap), float64(l.Resident)}).To(HaveEach(BeNumerically(">", 0)))
	}
	g.Expect([]float64{r.Create.CPU, r.Create.APIServer, r.Restart.CPU}).To(HaveEach(BeNumerically(">", 0)))
	g.Expect(len(r.Memory)).To(BeNumerically(">", 1))
	g.Expect(r.Memory).To(HaveEach(HaveField("Heap", BeNumerically(">", 0))))
}
