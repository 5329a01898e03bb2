package requests

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/hduolab/quell/test/bench/figures"
	"github.com/hduolab/quell/test/bench/rivals"
	"github.com/hduolab/quell/test/localcluster"
	. "github.com/onsi/gomega"
	ctrl "sigs.k8s.io/controller-runtime"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

func TestRun(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	g := NewWithT(t)
	result, err := Run(t.Context(), Options{
		Contestants: []rivals.Rival{named(t, "update-subsecond"), named(t, "deep-equal"), rivals.Quell()},
		Flaps:       4, FlapEvery: 50 * time.Millisecond, Step: 100 * time.Millisecond,
		Quiet: 500 * time.Millisecond, Limit: 1500 * time.Millisecond, Patience: 5 * time.Second,
	}, t.Output())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(result.Phases).To(HaveLen(10))
	g.Expect(result.Rows).To(HaveLen(3 * len(result.Phases)))
	rows := map[string]figures.RequestRow{}
	for _, r := range result.Rows {
		rows[r.Contestant+", "+r.Phase] = r
	}

	g.Expect(rows["update-subsecond, at rest"].Endless).To(BeTrue())
	g.Expect(rows["deep-equal, foreign status"].Missed).To(Equal("status.phase is Failed"))
	g.Expect(rows["quell, foreign status"].Changes).To(Equal(1))
	for _, phase := range []string{"at rest", "restart"} {
		g.Expect(rows["quell, "+phase].Writes).To(BeZero(), phase)
	}
	g.Expect(rows["quell, restart"].Verbs).To(HaveKey("watch apps"))
	for _, p := range result.Phases {
		ours := rows["quell, "+p.Name]
		g.Expect(ours.Missed).To(BeEmpty(), p.Name)
		g.Expect(ours.Endless).To(BeFalse(), p.Name)
		g.Expect(ours.Changes).To(BeNumerically("<=", ours.Writes), p.Name)
		for _, r := range result.Rows {
			if r.Phase == p.Name && r.Missed == "" {
				g.Expect(ours.Writes).To(BeNumerically("<=", r.Writes), fmt.Sprintf("%s, beside %s", p.Name, r.Contestant))
			}
		}
	}
}

func named(t *testing.T, name string) rivals.Rival {
	t.Helper()
	for _, r := range rivals.All() {
		if r.Name == name {
			return r
		}
	}
	t.Fatalf("there is no rival %q", name)
	return rivals.Rival{}
}

// Of the writes that answer with one version of an object, the first has made it; the benchmark's own are known before.
func TestChanges(t *testing.T) {
	g := NewWithT(t)
	l := &life{contestant: rivals.Rival{Name: "some"}, known: map[version]bool{}}
	request := func(agent, verb, version string, code int) localcluster.Request {
		return localcluster.Request{UserAgent: agent, Verb: verb, Group: "quell.dev", Resource: "apps", UID: "a", ResourceVersion: version, Code: code}
	}
	l.sent = []localcluster.Request{
		request(l.agent(), "patch", "1", 200), // answered before the write that made the version was logged
		request(benchmarkAgent, "update", "1", 200),
		request(l.agent(), "patch", "2", 200),
		request(l.agent(), "patch", "2", 200),
		request(l.agent(), "update", "", 409),
		request(l.agent(), "get", "2", 200),
		{UserAgent: l.agent(), Verb: "create", Resource: "events", Code: 201},
		{UserAgent: l.agent(), Verb: "get", Path: "/api", Code: 200},
	}
	row := l.count()
	g.Expect(row).To(Equal(figures.RequestRow{
		Verbs:  map[string]int{"patch apps": 3, "update apps": 1, "get apps": 1, "create events": 1, "get discovery": 1},
		Writes: 4, Changes: 1, Refused: 1,
	}))
	l.sent = []localcluster.Request{request(l.agent(), "patch", "2", 200), request(l.agent(), "patch", "3", 200)}
	g.Expect(l.count().Changes).To(Equal(1))
}
