package naive

import (
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/hduolab/quell/controller/ssa"
	"github.com/hduolab/quell/test/localcluster"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	testingclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const eventually = 2 * time.Minute // a limit against hanging, not a measure

func TestForms(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	g := NewWithT(t)
	ctrl.SetLogger(logr.Discard())
	c, err := localcluster.Start(t.Context(), localcluster.Options{ControlPlaneOnly: true, Log: t.Output()})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(c.Stop()).To(Succeed()) })
	g.Expect(Install(t.Context(), c.Config())).To(Succeed())
	g.Expect(Install(t.Context(), c.Config())).To(Succeed(), "a second time")

	t.Run("a sub-second stamp storms", func(t *testing.T) { subSecondStampStorms(t, c) })
	t.Run("a second stamp is braked by its resolution alone", func(t *testing.T) { secondStampIsBraked(t, c) })
	t.Run("on the StatusWriter it cannot storm", func(t *testing.T) { cannotStorm(t, c) })
	t.Run("on the StatusWriter nothing is lost", func(t *testing.T) { nothingIsLost(t, c) })
	t.Run("mended, it writes what is new", func(t *testing.T) { mendedWritesWhatIsNew(t, c) })
	t.Run("an unknown form is refused", func(t *testing.T) {
		_, err := NewManager(c.Config(), Options{Form: "third stamp"})
		NewWithT(t).Expect(err).To(MatchError(`there is no form "third stamp"`))
	})
}

// subSecondStampStorms runs the operator on one Widget that nobody else touches.
func subSecondStampStorms(t *testing.T, c *localcluster.Cluster) {
	g := NewWithT(t)
	config := agent(c, "storm/")
	mgr, err := NewManager(config, Options{Form: SubSecondStamp})
	g.Expect(err).NotTo(HaveOccurred())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(t.Context()) }()
	t.Cleanup(func() { g.Expect(<-ended).To(Succeed()) }) // after t.Context has ended

	user := newClient(t, c.Config())
	widget := NewWidget("default", "storm")
	g.Expect(user.Create(t.Context(), widget)).To(Succeed())
	g.Eventually(func() int { return len(writes(t, c, "storm/")) }, eventually).Should(BeNumerically(">=", 20))
	g.Expect(user.Get(t.Context(), client.ObjectKeyFromObject(widget), widget)).To(Succeed())
	g.Expect(widget.Generation).To(BeEquivalentTo(1), "nobody asked for anything else")
}

// secondStampIsBraked moves the clock by itself: the same second again changes nothing, the next one does.
func secondStampIsBraked(t *testing.T, c *localcluster.Cluster) {
	g := NewWithT(t)
	d := newDrive(t, c, "second", SecondStamp)
	d.reconcile(1, 0)
	first := d.live().ResourceVersion
	d.reconcile(10, 0)
	g.Expect(d.live().ResourceVersion).To(Equal(first))
	d.reconcile(10, time.Second)
	g.Expect(d.live().ResourceVersion).NotTo(Equal(first))
	g.Expect(writes(t, c, d.agent)).To(HaveLen(21))
}

func cannotStorm(t *testing.T, c *localcluster.Cluster) {
	g := NewWithT(t)
	d := newDrive(t, c, "fast", OnStatusWriter)
	const reconciles = 200
	d.reconcile(reconciles, time.Millisecond)
	budget := ssa.DefaultChurnPace.Free + 1 // the object's first status is no churn
	g.Expect(len(writes(t, c, d.agent))).To(And(BeNumerically(">", 0), BeNumerically("<=", budget)))

	result, err := d.reconciler.write(t.Context(), d.live())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(result.Outcome).To(Equal(ssa.SelfChurn))
	g.Expect(result.Paths()).To(Equal([]string{".status.lastUpdateTime"}))
	g.Expect(result.RetryAfter).To(And(BeNumerically(">", 0), BeNumerically("<=", ssa.DefaultChurnPace.Pause)))

	slow := newDrive(t, c, "slow", OnStatusWriter)
	slow.reconcile(1000, time.Second)
	g.Expect(len(writes(t, c, slow.agent))).To(BeNumerically("<", 60), "of 1000 reconciles, a second apart")
}

// nothingIsLost wants what was held back to be written at the end of the pause.
func nothingIsLost(t *testing.T, c *localcluster.Cluster) {
	g := NewWithT(t)
	d := newDrive(t, c, "held", OnStatusWriter)
	var wait time.Duration
	for wait == 0 {
		wait = d.reconcile(1, time.Millisecond)
	}
	before := d.live().Status.LastUpdateTime
	d.clock.SetTime(d.clock.Now().Add(wait))
	d.reconcile(1, 0)
	g.Expect(d.live().Status.LastUpdateTime).NotTo(Equal(before))
}

func mendedWritesWhatIsNew(t *testing.T, c *localcluster.Cluster) {
	g := NewWithT(t)
	d := newDrive(t, c, "mended", Mended)
	d.reconcile(50, time.Second)
	g.Expect(writes(t, c, d.agent)).To(HaveLen(1))
	widget := d.live()
	widget.Spec.Size = 2
	g.Expect(newClient(t, c.Config()).Update(t.Context(), widget)).To(Succeed())
	d.reconcile(50, time.Second)
	g.Expect(writes(t, c, d.agent)).To(HaveLen(2))
	g.Expect(*d.live().Status.Size).To(BeEquivalentTo(2))
}

// drive calls the operator for one Widget by hand, with a clock of its own and without a cache.
type drive struct {
	t          *testing.T
	reconciler *Reconciler
	clock      *testingclock.FakePassiveClock
	request    ctrl.Request
	agent      string
}

func newDrive(t *testing.T, c *localcluster.Cluster, name string, form Form) *drive {
	g := NewWithT(t)
	d := &drive{t: t, clock: testingclock.NewFakePassiveClock(time.Now()), agent: name + "/"}
	config := agent(c, d.agent)
	var err error
	d.reconciler, err = NewReconciler(newClient(t, config), config, Options{Form: form, Clock: d.clock})
	g.Expect(err).NotTo(HaveOccurred())
	widget := NewWidget(metav1.NamespaceDefault, name)
	g.Expect(newClient(t, c.Config()).Create(t.Context(), widget)).To(Succeed())
	d.request.NamespacedName = client.ObjectKeyFromObject(widget)
	return d
}

// reconcile reconciles n times, and moves the clock before each. It returns when the last one wants to be called again.
func (d *drive) reconcile(n int, tick time.Duration) time.Duration {
	var result ctrl.Result
	for range n {
		d.clock.SetTime(d.clock.Now().Add(tick))
		var err error
		result, err = d.reconciler.Reconcile(d.t.Context(), d.request)
		NewWithT(d.t).Expect(err).NotTo(HaveOccurred())
	}
	return result.RequeueAfter
}

func (d *drive) live() *Widget {
	var widget Widget
	NewWithT(d.t).Expect(d.reconciler.client.Get(d.t.Context(), d.request.NamespacedName, &widget)).To(Succeed())
	return &widget
}

func agent(c *localcluster.Cluster, name string) *rest.Config {
	config := c.Config()
	config.UserAgent = name
	return config
}

func newClient(t *testing.T, config *rest.Config) client.Client {
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(AddToScheme(scheme)).To(Succeed())
	c, err := client.New(config, client.Options{Scheme: scheme})
	g.Expect(err).NotTo(HaveOccurred())
	return c
}

func writes(t *testing.T, c *localcluster.Cluster, agent string) []localcluster.Request {
	requests, err := c.Requests(0, localcluster.ByUserAgent(agent), localcluster.Writes)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return requests
}
