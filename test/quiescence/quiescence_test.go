package quiescence_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/controller/app"
	"github.com/hduolab/quell/controller/storm"
	"github.com/hduolab/quell/test/checkout"
	"github.com/hduolab/quell/test/localcluster"
	"github.com/hduolab/quell/test/naive"
	"github.com/hduolab/quell/test/quiescence"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const eventually = 2 * time.Minute // a limit against hanging, not a measure

var (
	configMaps = []schema.GroupKind{{Kind: "ConfigMap"}}
	widgets    = []schema.GroupKind{{Group: naive.GroupVersion.Group, Kind: "Widget"}}
)

func TestCheck(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	g := NewWithT(t)
	ctrl.SetLogger(logr.Discard())
	c, err := localcluster.Start(t.Context(), localcluster.Options{ControlPlaneOnly: true, Log: t.Output()})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(c.Stop()).To(Succeed()) })
	g.Expect(naive.Install(t.Context(), c.Config())).To(Succeed())
	g.Expect(checkout.InstallDefinitions(t.Context(), c.Config())).To(Succeed())

	f := fixture{c, newClient(t, c)}
	t.Run("the naive operator is never quiet", f.naiveIsNeverQuiet)
	t.Run("Quell is quiet", f.quellIsQuiet)
	t.Run("a write after a while of quiet", f.writeAfterQuiet)
	t.Run("creations and deletions count", f.creationsAndDeletionsCount)
	t.Run("other namespaces do not count", f.otherNamespacesDoNotCount)
	t.Run("ignored writes do not count", f.ignoredWritesDoNotCount)
	t.Run("a missing right is an error", f.missingRight)
	t.Run("a kind that is not there is an error", f.missingKind)
	t.Run("the end of the context is an error", f.cancelled)
	t.Run("nothing is left running", f.nothingLeft)
	t.Run("an API server that goes away is an error", f.serverGoesAway) // the last: it does not come back
}

func TestCheckRefusesOptions(t *testing.T) {
	g := NewWithT(t)
	check := func(o quiescence.Options) error { return quiescence.Check(t.Context(), nil, o) }
	g.Expect(check(quiescence.Options{})).To(MatchError(ContainSubstring("Options.Kinds is empty")))
	g.Expect(check(quiescence.Options{Kinds: widgets, Hold: -time.Second})).To(MatchError(ContainSubstring("Options.Hold is -1s")))
	g.Expect(check(quiescence.Options{Kinds: widgets, Settle: time.Hour})).To(MatchError(ContainSubstring("shorter than Options.Settle, 1h0m0s")))
}

type fixture struct {
	cluster *localcluster.Cluster
	client  client.Client
}

func newClient(t *testing.T, c *localcluster.Cluster) client.Client {
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, naive.AddToScheme, quellv1alpha1.AddToScheme} {
		g.Expect(add(scheme)).To(Succeed())
	}
	made, err := client.New(c.Config(), client.Options{Scheme: scheme})
	g.Expect(err).NotTo(HaveOccurred())
	return made
}

// start runs a manager until the test ends.
func start(t *testing.T, mgr ctrl.Manager) {
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(t.Context()) }()
	t.Cleanup(func() { NewWithT(t).Expect(<-ended).To(Succeed()) }) // after t.Context has ended
}

// create makes an object and deletes it when the test ends.
func (f fixture) create(t *testing.T, o client.Object) {
	g := NewWithT(t)
	g.Expect(f.client.Create(t.Context(), o)).To(Succeed())
	t.Cleanup(func() { g.Expect(client.IgnoreNotFound(f.client.Delete(context.Background(), o))).To(Succeed()) })
}

// notQuiet checks and wants the error that tells of writes.
func (f fixture) notQuiet(t *testing.T, o quiescence.Options) *quiescence.NotQuiet {
	t.Helper()
	g := NewWithT(t)
	err := quiescence.Check(t.Context(), f.cluster.Config(), o)
	var found *quiescence.NotQuiet
	g.Expect(errors.As(err, &found)).To(BeTrue(), "%v", err)
	t.Log(err)
	return found
}

func (f fixture) naiveIsNeverQuiet(t *testing.T) {
	g := NewWithT(t)
	config := f.cluster.Config()
	config.UserAgent = "widget-operator/"
	mgr, err := naive.NewManager(config, naive.Options{Form: naive.SubSecondStamp})
	g.Expect(err).NotTo(HaveOccurred())
	start(t, mgr)
	f.create(t, naive.NewWidget("default", "w"))

	found := f.notQuiet(t, quiescence.Options{Kinds: widgets, Patience: 8 * time.Second})
	g.Expect(found.Reason).To(Equal("never quiet for 3s within 8s"))
	g.Expect(found.Count).To(BeNumerically(">", len(found.Writes)))
	w := found.Writes[len(found.Writes)-1]
	g.Expect(w.Object.String()).To(Equal("widgets.example.com/default/w"))
	g.Expect(w.Writer.String()).To(Equal(`"widget-operator" (Update, status)`))
	g.Expect(w.Fields).To(HaveLen(1))
	g.Expect(w.Fields[0].Path).To(Equal(".status.lastUpdateTime"))
	g.Expect(w.Fields[0].Before).To(And(HavePrefix(`"20`), Not(Equal(w.Fields[0].After))))
	g.Expect(found.Findings).To(ConsistOf(HaveField("Verdict", storm.TimestampChurn)))
	g.Expect(found.Error()).To(And(
		ContainSubstring(`widgets.example.com/default/w changed by "widget-operator" (Update, status)`),
		ContainSubstring(`      .status.lastUpdateTime: "20`),
		ContainSubstring("verdict on widgets.example.com/default/w: TimestampChurn\n"),
		ContainSubstring("      remedy: "),
	))
}

func (f fixture) quellIsQuiet(t *testing.T) {
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(app.AddToScheme(scheme)).To(Succeed())
	mgr, err := ctrl.NewManager(f.cluster.Config(), ctrl.Options{
		Scheme: scheme, Cache: app.CacheOptions(), Metrics: metricsserver.Options{BindAddress: "0"},
	})
	g.Expect(err).NotTo(HaveOccurred())
	r, err := app.New(app.Options{Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Events: mgr.GetEventRecorder("quell")})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(r.SetupWithManager(t.Context(), mgr, 1)).To(Succeed())
	start(t, mgr)
	made := &quellv1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: quellv1alpha1.AppSpec{Image: "web"}}
	f.create(t, made)
	g.Eventually(func(g Gomega) { // or Check would look at an operator that has not begun
		g.Expect(f.client.Get(t.Context(), client.ObjectKeyFromObject(made), made)).To(Succeed())
		g.Expect(meta.FindStatusCondition(made.Status.Conditions, quellv1alpha1.ConditionReady)).NotTo(BeNil())
	}, eventually).Should(Succeed())
	g.Expect(quiescence.Check(t.Context(), f.cluster.Config(), quiescence.Options{
		Kinds: []schema.GroupKind{{Group: "quell.dev", Kind: quiescence.Any}, {Group: "apps", Kind: "Deployment"}}, Hold: 4 * time.Second,
	})).To(Succeed())
}

// every writes at an interval until the test ends.
func every(t *testing.T, interval time.Duration, write func(ctx context.Context, n int)) {
	ticker := time.NewTicker(interval)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := 0; ; n++ {
			select {
			case <-t.Context().Done():
				return
			case <-ticker.C:
				write(context.WithoutCancel(t.Context()), n)
			}
		}
	}()
	t.Cleanup(func() { ticker.Stop(); <-done })
}

// writeAfterQuiet has a writer who comes more rarely than an operator takes to settle.
func (f fixture) writeAfterQuiet(t *testing.T) {
	g := NewWithT(t)
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "rare"}, Data: map[string]string{"n": "a"}}
	f.create(t, o)
	every(t, 3*time.Second, func(ctx context.Context, n int) {
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"data":{"n":"`+string(rune('b'+n%20))+`"}}`))
		g.Expect(f.client.Patch(ctx, o.DeepCopy(), patch, client.FieldOwner("rare-writer"))).To(Succeed())
	})
	found := f.notQuiet(t, quiescence.Options{Kinds: configMaps, Settle: time.Second, Hold: eventually})
	g.Expect(found.Reason).To(MatchRegexp(`^quiet for [0-9.]+m?s, then written again$`))
	g.Expect(found.Count).To(BeNumerically(">=", 1))
	g.Expect(found.Writes[0].Writer.Manager).To(Equal("rare-writer"))
	g.Expect(found.Writes[0].Fields).To(HaveLen(1))
	g.Expect(found.Writes[0].Fields[0].Path).To(Equal(".data.n"))
}

func (f fixture) creationsAndDeletionsCount(t *testing.T) {
	g := NewWithT(t)
	every(t, 200*time.Millisecond, func(ctx context.Context, _ int) {
		o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "again"}, Data: map[string]string{"a": "b"}}
		g.Expect(f.client.Create(ctx, o, client.FieldOwner("maker"))).To(Succeed())
		g.Expect(f.client.Delete(ctx, o)).To(Succeed())
	})
	found := f.notQuiet(t, quiescence.Options{Kinds: configMaps, Patience: 6 * time.Second})
	g.Expect(found.Writes).To(ContainElement(And(HaveField("Action", quiescence.Created), HaveField("Writer.Manager", "maker"))))
	g.Expect(found.Writes).To(ContainElement(HaveField("Action", quiescence.Deleted)))
	g.Expect(found.Findings).To(ConsistOf(HaveField("Verdict", storm.DeleteRecreate)))
}

func (f fixture) stamp(t *testing.T) {
	// With nothing in it, it would have no managedFields, and the API server then keeps none for later writers either.
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "stamped"}, Data: map[string]string{"at": ""}}
	f.create(t, o)
	every(t, 100*time.Millisecond, func(ctx context.Context, _ int) {
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"data":{"at":"`+time.Now().Format(time.RFC3339Nano)+`"}}`))
		NewWithT(t).Expect(f.client.Patch(ctx, o.DeepCopy(), patch, client.FieldOwner("stamper"))).To(Succeed())
	})
}

func (f fixture) otherNamespacesDoNotCount(t *testing.T) {
	f.stamp(t)
	o := quiescence.Options{Kinds: configMaps, Namespaces: []string{"kube-public"}, Settle: time.Second, Hold: time.Second}
	NewWithT(t).Expect(quiescence.Check(t.Context(), f.cluster.Config(), o)).To(Succeed())
}

func (f fixture) ignoredWritesDoNotCount(t *testing.T) {
	f.stamp(t)
	o := quiescence.Options{Kinds: configMaps, Settle: time.Second, Hold: time.Second, Ignore: func(w quiescence.Write) bool {
		return w.Writer.Manager == "stamper"
	}}
	NewWithT(t).Expect(quiescence.Check(t.Context(), f.cluster.Config(), o)).To(Succeed())
}

func (f fixture) missingRight(t *testing.T) {
	g := NewWithT(t)
	config, err := f.cluster.User("nobody")
	g.Expect(err).NotTo(HaveOccurred())
	err = quiescence.Check(t.Context(), config, quiescence.Options{Kinds: configMaps})
	g.Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
	g.Expect(err).To(MatchError(ContainSubstring("configmaps is forbidden")))
}

func (f fixture) missingKind(t *testing.T) {
	o := quiescence.Options{Kinds: append([]schema.GroupKind{{Group: "example.com", Kind: "Gadget"}}, widgets...)}
	NewWithT(t).Expect(quiescence.Check(t.Context(), f.cluster.Config(), o)).To(MatchError(ContainSubstring("no resource of kind Gadget.example.com")))
}

func (f fixture) cancelled(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	err := quiescence.Check(ctx, f.cluster.Config(), quiescence.Options{Kinds: configMaps, Hold: time.Hour})
	NewWithT(t).Expect(err).To(MatchError(context.DeadlineExceeded))
}

// nothingLeft has a check of each outcome. Connections are not the check's own: clients of one cluster share them.
func (f fixture) nothingLeft(t *testing.T) {
	g, config := NewWithT(t), f.cluster.Config()
	before := gleak.Goroutines()
	quiet := quiescence.Options{Kinds: configMaps, Settle: time.Millisecond, Hold: time.Second}
	g.Expect(quiescence.Check(t.Context(), config, quiet)).To(Succeed())
	g.Expect(quiescence.Check(t.Context(), config, quiescence.Options{Kinds: []schema.GroupKind{{Kind: "Gadget"}}})).NotTo(Succeed())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- quiescence.Check(ctx, config, quiescence.Options{Kinds: configMaps, Hold: time.Hour}) }()
	cancel()
	g.Expect(<-ended).To(MatchError(context.Canceled))
	g.Eventually(gleak.Goroutines, eventually).ShouldNot(gleak.HaveLeaked(before, gleak.IgnoringInBacktrace("net/http."), gleak.IgnoringInBacktrace("net/http2.")))
}

// serverGoesAway takes the API server away while nothing is written, which looks the same to a watch.
func (f fixture) serverGoesAway(t *testing.T) {
	g := NewWithT(t)
	ended := make(chan error, 1)
	go func() {
		ended <- quiescence.Check(t.Context(), f.cluster.Config(), quiescence.Options{Kinds: configMaps, Settle: 4 * time.Second, Hold: time.Second})
	}()
	g.Consistently(ended, 2*time.Second).ShouldNot(Receive()) // it has listed by then, or fails all the same
	g.Expect(f.cluster.Kill(localcluster.APIServer)).To(Succeed())
	var err error
	g.Eventually(ended, eventually).Should(Receive(&err))
	g.Expect(err).To(MatchError(HavePrefix("quiescence: ")))
}
