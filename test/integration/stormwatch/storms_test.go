package stormwatch_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/yaml"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/controller/stormwatch"
	"github.com/hduolab/quell/test/localcluster"
)

var widgets = schema.GroupVersionResource{Group: "test.quell.dev", Version: "v1", Resource: "widgets"}

// The specs tell one story, so that one storm serves them all.
var _ = Describe("StormWatch", Ordered, func() {
	var (
		begun localcluster.Mark
		start time.Time
		w     *writer
	)

	AfterAll(func() {
		if w != nil {
			w.stop()
		}
		if manager != nil {
			manager.stop()
		}
	})

	It("lets the manager say what is missing before it starts", func(ctx SpecContext) {
		d, err := discovery.NewDiscoveryClientForConfig(cluster.Config())
		Expect(err).NotTo(HaveOccurred())
		preflight := func() error { return stormwatch.Preflight(d) }
		Expect(preflight()).To(MatchError(And(ContainSubstring("does not serve quell.dev/v1alpha1"), ContainSubstring("kubectl apply -f config/crd"))))

		kubectl("apply", "-f", filepath.Join(configDir, "crd", "quell.dev_apps.yaml"))
		Eventually(ctx, preflight).Should(MatchError(And(ContainSubstring(`without "stormwatches"`), ContainSubstring("kubectl apply -f config/crd"))))

		path := filepath.Join(configDir, "crd", "quell.dev_stormwatches.yaml")
		kubectl("apply", "-f", withoutStatus(path))
		Eventually(ctx, preflight).Should(MatchError(And(ContainSubstring(`without "stormwatches/status"`), ContainSubstring("stormwatches.quell.dev"))))

		kubectl("apply", "-f", path)
		Eventually(ctx, preflight).Should(Succeed())
	})

	It("costs nothing but the watch of StormWatches while there is none", func(ctx SpecContext) {
		begun, start = mark(), time.Now()
		manager = newOperator(ctx)
		manager.start()
		Consistently(ctx, func() []localcluster.Request {
			return manager.requests(begun, func(r localcluster.Request) bool { return r.Resource != "" && r.Resource != "stormwatches" })
		}).WithTimeout(2 * time.Second).Should(BeEmpty())
		Expect(manager.requests(begun)).To(ContainElement(And(HaveField("Resource", "stormwatches"), HaveField("Verb", "watch"))))
	})

	It("tells which right is missing, and how to give it", func(ctx SpecContext) {
		create(ctx, "widgets", `{kinds: [{group: test.quell.dev, kind: Widget}, {group: quell.dev, kind: StormWatch}, {group: core, kind: Secret}, {group: nowhere.example.com, kind: Thing}, {group: authorization.k8s.io, kind: SubjectAccessReview}]}`)
		create(ctx, "confined", `{namespaces: [default], kinds: [{group: core, kind: Secret}, {group: core, kind: Node}]}`)
		status := eventuallyReady(ctx, "widgets", "False", "Forbidden")
		Expect(rows(status)).To(ConsistOf("core/secrets Forbidden", "test.quell.dev/widgets Forbidden", "nowhere.example.com/Thing NotFound", "authorization.k8s.io/SubjectAccessReview NotWatchable"))
		Expect(status.NotWatched[len(status.NotWatched)-1].Message).To(And(ContainSubstring("widgets"), ContainSubstring(`stormwatch.quell.dev/aggregate: "true"`), ContainSubstring("config/stormwatch")))
		Expect(*status.Watched).To(BeEquivalentTo(1))
		Expect(meta.IsStatusConditionTrue(status.Conditions, "Stalled")).To(BeTrue())
		Expect(meta.IsStatusConditionFalse(status.Conditions, quellv1alpha1.ConditionStormDetected)).To(BeTrue())

		status = eventuallyReady(ctx, "confined", "False", "Forbidden")
		Expect(rows(status)).To(ConsistOf("core/nodes ClusterScoped", "core/secrets Forbidden"))
		Expect(meta.FindStatusCondition(status.Conditions, quellv1alpha1.ConditionStormDetected)).To(And(
			HaveField("Status", metav1.ConditionUnknown), HaveField("Reason", "NothingWatched")))
		kubectl("delete", "stormwatch", "confined")
	})

	It("heals once a ClusterRole with the label gives the right", func(ctx SpecContext) {
		kubectl("apply", "-f", "testdata/role.yaml")
		kubectl("patch", "stormwatch", "widgets", "--type=merge", `-p={"spec":{"kinds":[{"group":"test.quell.dev","kind":"Widget"},{"group":"quell.dev","kind":"StormWatch"}]}}`)
		status := eventuallyReady(ctx, "widgets", "True", "Watching")
		Expect(status.NotWatched).To(BeEmpty())
		Expect(*status.Watched).To(BeEquivalentTo(2))
		Expect(status.Conditions).NotTo(ContainElement(HaveField("Type", BeElementOf("Stalled", "Reconciling"))))
		Expect(openWatches("widgets")).To(Equal(1))
	})

	It("finds a storm: object, field, manager and verdict", func(ctx SpecContext) {
		w = newWriter(ctx, "busy")
		Eventually(ctx, func(g Gomega) {
			status := statusOf(ctx, g, "widgets")
			g.Expect(status.Storms).To(HaveLen(1))
			s := status.Storms[0]
			g.Expect(s.Group + "/" + s.Resource + "/" + s.Namespace + "/" + s.Name).To(Equal("test.quell.dev/widgets/default/busy"))
			g.Expect(s.Managers).To(Equal([]string{"stormer"}))
			g.Expect(s.Fields).To(Equal([]string{".status.at"}))
			g.Expect(s.Verdict).To(Equal("TimestampChurn"))
			g.Expect(s.Rate).To(MatchRegexp(`^at least \d+/(s|min)$`))
			g.Expect(s.Remedy).NotTo(BeEmpty())
			g.Expect(s.Since).NotTo(BeNil())
			g.Expect(meta.IsStatusConditionTrue(status.Conditions, quellv1alpha1.ConditionStormDetected)).To(BeTrue())
		}).Should(Succeed())
		Expect(kubectl("get", "sw", "-o", "wide")).To(And(ContainSubstring("busy"), ContainSubstring("TimestampChurn"), ContainSubstring("stormer"), ContainSubstring(".status.at")))

		By("reading the events")
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(widgets.GroupVersion().WithKind("Widget"))
		Expect(admin.Get(ctx, client.ObjectKey{Namespace: "default", Name: "busy"}, object)).To(Succeed())
		Eventually(ctx, func(g Gomega) {
			found := eventsOn(ctx, g, "default", "Widget", "busy")
			g.Expect(found).To(HaveLen(1))
			g.Expect(found[0]).To(And(HaveField("Reason", "StormDetected"), HaveField("Type", "Warning"), HaveField("Note", ContainSubstring("stormer"))))
			g.Expect(found[0].Regarding).To(And(HaveField("UID", object.GetUID()), HaveField("APIVersion", "test.quell.dev/v1")))
			g.Expect(eventsOn(ctx, g, "default", "StormWatch", "widgets")).To(HaveLen(1))
		}).Should(Succeed())
		Expect(kubectl("describe", "widget", "busy")).To(ContainSubstring("write storm: TimestampChurn"))
	})

	It("serves metrics", func(ctx SpecContext) {
		object := `quell_storm_object_writes_per_second{group=test.quell.dev,manager=stormer,name=busy,namespace=default,resource=widgets,stormwatch=widgets,verdict=TimestampChurn}`
		Eventually(ctx, func(g Gomega) {
			samples := gather(g)
			g.Expect(samples).To(HaveKeyWithValue(object, BeNumerically(">", 1)))
			g.Expect(samples).To(HaveKeyWithValue(`quell_storm_writes_per_second{group=test.quell.dev,resource=widgets,stormwatch=widgets}`, BeNumerically(">", 1)))
			g.Expect(samples).To(HaveKeyWithValue(`quell_storm_storms{stormwatch=widgets}`, 1.0))
			g.Expect(samples).To(HaveKeyWithValue(`quell_storm_watches{state=Watching,stormwatch=widgets}`, 2.0))
			g.Expect(samples).To(HaveKeyWithValue(`quell_storm_watches{state=Forbidden,stormwatch=widgets}`, 0.0))
			g.Expect(samples).To(HaveKeyWithValue(`quell_storm_gaps_total{stormwatch=widgets}`, BeNumerically(">=", 0)))
			g.Expect(samples).To(HaveKeyWithValue(`quell_storm_changes_total{stormwatch=widgets}`, BeNumerically(">", 10)))
		}).Should(Succeed())
	})

	It("is no storm itself while the rate moves from step to step", func(ctx SpecContext) {
		since, from, before := mark(), time.Now(), w.count()
		allowed := func() int { return int(max(0, time.Since(from)-time.Second) / time.Minute) } // fewer than one a minute
		Consistently(ctx, func(g Gomega) {
			writes := manager.statusWrites(since)
			g.Expect(len(writes)).To(BeNumerically("<=", allowed()), localcluster.Summary(writes))
		}).WithTimeout(window()).Should(Succeed())
		AddReportEntry("writes of the storm", w.count()-before)
		AddReportEntry("writes of the status meanwhile", fmt.Sprintf("%d in %s", len(manager.statusWrites(since)), time.Since(from).Round(time.Second)))
	})

	It("writes nothing after a restart, while nothing changed", func(ctx SpecContext) {
		before := statusOf(ctx, Default, "widgets")
		since := mark()
		manager.restart()
		Eventually(ctx, func(g Gomega) {
			samples := gather(g)
			g.Expect(samples).To(HaveKeyWithValue(`quell_storm_watches{state=Watching,stormwatch=widgets}`, 2.0))
			g.Expect(samples).To(HaveKeyWithValue(ContainSubstring("name=busy"), BeNumerically(">", 1)))
		}).Should(Succeed())
		Consistently(ctx, func() []localcluster.Request { return manager.statusWrites(since) }).WithTimeout(4 * time.Second).Should(BeEmpty())
		Expect(statusOf(ctx, Default, "widgets")).To(Equal(before))
		Expect(manager.requests(since, func(r localcluster.Request) bool { return r.Resource == "events" })).To(BeEmpty())
	})

	It("sees a CustomResourceDefinition that is made later", func(ctx SpecContext) {
		create(ctx, "custom", `{customResources: All}`)
		Expect(*eventuallyReady(ctx, "custom", "True", "Watching").Watched).To(BeEquivalentTo(3)) // Apps, StormWatches and Widgets
		kubectl("apply", "-f", "testdata/gadgets.yaml")
		Eventually(ctx, func() int { return openWatches("gadgets") }).Should(Equal(1))
		Expect(openWatches("widgets")).To(Equal(2))
	})

	It("changes the set of kinds without starting anew, and starts anew for other thresholds", func(ctx SpecContext) {
		create(ctx, "changing", `{kinds: [{group: test.quell.dev, kind: Gadget}]}`)
		eventuallyReady(ctx, "changing", "True", "Watching")
		watches := func(resource string, since localcluster.Mark) int {
			return len(manager.requests(since, func(r localcluster.Request) bool { return r.Verb == "watch" && r.Resource == resource && r.Name == "" }))
		}
		since := mark()
		kubectl("patch", "stormwatch", "changing", "--type=merge", `-p={"spec":{"kinds":[{"group":"test.quell.dev","kind":"Gadget"},{"group":"test.quell.dev","kind":"Widget"}]}}`)
		Eventually(ctx, func() int { return watches("widgets", since) }).Should(Equal(1))
		Expect(watches("gadgets", since)).To(Equal(0))
		kubectl("patch", "stormwatch", "changing", "--type=merge", `-p={"spec":{"thresholds":{"writesPerMinute":600}}}`)
		Eventually(ctx, func() int { return watches("gadgets", since) }).Should(Equal(1))
		Expect(watches("widgets", since)).To(Equal(2))
		kubectl("delete", "stormwatch", "changing")
	})

	Describe("The CRD", validation)

	It("ends its watches when it is deleted", func(ctx SpecContext) {
		kubectl("delete", "stormwatch", "custom")
		Eventually(ctx, func(g Gomega) {
			g.Expect(openWatches("gadgets")).To(Equal(0))
			g.Expect(openWatches("widgets")).To(Equal(1))
			g.Expect(openWatches("customresourcedefinitions")).To(Equal(1))
			g.Expect(gather(g)).NotTo(HaveKey(ContainSubstring("stormwatch=custom")))
		}).Should(Succeed())
	})

	It("says that a storm has ended after a quiet minute", func(ctx SpecContext) {
		w.stop()
		Consistently(ctx, func(g Gomega) { g.Expect(statusOf(ctx, g, "widgets").Storms).To(HaveLen(1)) }).WithTimeout(5 * time.Second).Should(Succeed())
		manager.clock.offset.Store(int64(time.Minute)) // the rest of it
		Eventually(ctx, func(g Gomega) {
			status := statusOf(ctx, g, "widgets")
			g.Expect(meta.IsStatusConditionFalse(status.Conditions, quellv1alpha1.ConditionStormDetected)).To(BeTrue())
			g.Expect(status.Storms).To(BeEmpty())
			g.Expect(*status.StormCount).To(BeZero())
		}).Should(Succeed())
		Eventually(ctx, func(g Gomega) {
			g.Expect(eventsOn(ctx, g, "default", "StormWatch", "widgets")).To(ContainElement(And(HaveField("Reason", "StormEnded"), HaveField("Type", "Normal"))))
			g.Expect(gather(g)).NotTo(HaveKey(ContainSubstring("name=busy")))
		}).Should(Succeed())
		var notes []string
		for _, e := range eventsOn(ctx, Default, "default", "Widget", "busy") {
			if strings.Contains(e.Note, `StormWatch "widgets"`) {
				notes = append(notes, e.Note)
			}
		}
		Expect(notes).To(HaveLen(1))
		writes := manager.statusWrites(begun)
		AddReportEntry("writes of all statuses", fmt.Sprintf("%d in %s", len(writes), time.Since(start).Round(time.Second)))
		Expect(writes).To(HaveEach(HaveField("Code", BeNumerically("<", 300))))
	})
})

// withoutStatus is a file with a CustomResourceDefinition without its subresource.
func withoutStatus(path string) string {
	GinkgoHelper()
	raw, err := os.ReadFile(path)
	Expect(err).NotTo(HaveOccurred())
	crd := map[string]any{}
	Expect(yaml.Unmarshal(raw, &crd)).To(Succeed())
	versions, _, _ := unstructured.NestedSlice(crd, "spec", "versions")
	unstructured.RemoveNestedField(versions[0].(map[string]any), "subresources")
	Expect(unstructured.SetNestedSlice(crd, versions, "spec", "versions")).To(Succeed())
	raw, err = yaml.Marshal(crd)
	Expect(err).NotTo(HaveOccurred())
	out := filepath.Join(GinkgoT().TempDir(), "crd.yaml")
	Expect(os.WriteFile(out, raw, 0o600)).To(Succeed())
	return out
}

func newStormWatch(name, spec string) *unstructured.Unstructured {
	GinkgoHelper()
	u := &unstructured.Unstructured{Object: map[string]any{}}
	content := map[string]any{}
	Expect(yaml.Unmarshal([]byte(spec), &content)).To(Succeed(), spec)
	u.SetGroupVersionKind(quellv1alpha1.SchemeGroupVersion.WithKind("StormWatch"))
	u.SetName(name)
	u.Object["spec"] = content
	return u
}

// create makes a StormWatch that is deleted when the container ends, should it still be there.
func create(ctx context.Context, name, spec string) {
	GinkgoHelper()
	Expect(admin.Create(ctx, newStormWatch(name, spec), client.FieldValidation("Strict"))).To(Succeed())
}

func statusOf(ctx context.Context, g Gomega, name string) quellv1alpha1.StormWatchStatus {
	watch := &quellv1alpha1.StormWatch{}
	g.Expect(admin.Get(ctx, client.ObjectKey{Name: name}, watch)).To(Succeed())
	g.Expect(watch.Status.ObservedGeneration).To(HaveValue(Equal(watch.Generation)))
	return watch.Status
}

// eventuallyReady waits for what Ready says of the newest generation.
func eventuallyReady(ctx context.Context, name, is, reason string) (status quellv1alpha1.StormWatchStatus) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		status = statusOf(ctx, g, name)
		g.Expect(meta.FindStatusCondition(status.Conditions, "Ready")).To(And(
			HaveField("Status", metav1.ConditionStatus(is)), HaveField("Reason", reason), HaveField("ObservedGeneration", *status.ObservedGeneration)), "%+v", status)
	}).Should(Succeed())
	return status
}

func rows(status quellv1alpha1.StormWatchStatus) []string {
	var all []string
	for _, n := range status.NotWatched {
		all = append(all, n.Group+"/"+n.Resource+" "+n.Reason)
	}
	return all
}

func eventsOn(ctx context.Context, g Gomega, namespace, kind, name string) []eventsv1.Event {
	var all eventsv1.EventList
	g.Expect(admin.List(ctx, &all, client.InNamespace(namespace))).To(Succeed())
	var found []eventsv1.Event
	for _, e := range all.Items {
		if e.Regarding.Kind == kind && e.Regarding.Name == name {
			found = append(found, e)
		}
	}
	return found
}

// gather gives the samples of the storm metrics as the registry has them.
func gather(g Gomega) map[string]float64 {
	families, err := metrics.Registry.Gather()
	g.Expect(err).NotTo(HaveOccurred())
	samples := map[string]float64{}
	for _, family := range families {
		if !strings.HasPrefix(family.GetName(), "quell_storm_") {
			continue
		}
		for _, m := range family.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			samples[family.GetName()+"{"+strings.Join(labels, ",")+"}"] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return samples
}

// openWatches counts the operator's watches of a resource that the API server has begun and not ended, by its audit log.
func openWatches(resource string) int {
	GinkgoHelper()
	raw, err := os.ReadFile(cluster.AuditLog())
	Expect(err).NotTo(HaveOccurred())
	open := map[string]bool{}
	for line := range strings.Lines(string(raw)) {
		var e struct {
			AuditID, Stage, Verb, UserAgent string
			ObjectRef                       struct{ Resource, Name string }
		}
		if !strings.HasSuffix(line, "\n") || !strings.Contains(line, userAgent) || json.Unmarshal([]byte(line), &e) != nil ||
			e.Verb != "watch" || e.ObjectRef.Resource != resource || e.ObjectRef.Name != "" {
			continue
		}
		if e.Stage == "ResponseStarted" {
			open[e.AuditID] = true
		} else {
			delete(open, e.AuditID)
		}
	}
	return len(open)
}

// writer writes the time into a Widget's status, at a rate that moves between steps.
type writer struct {
	cancel context.CancelFunc
	ended  sync.WaitGroup
	mu     sync.Mutex
	n      int
}

func newWriter(ctx context.Context, name string) *writer {
	GinkgoHelper()
	cfg := rest.CopyConfig(cluster.Config())
	cfg.UserAgent, cfg.QPS = "stormer", -1
	clients, err := dynamic.NewForConfig(cfg)
	Expect(err).NotTo(HaveOccurred())
	objects := clients.Resource(widgets).Namespace("default")
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(widgets.GroupVersion().WithKind("Widget"))
	u.SetName(name)
	u.SetLabels(map[string]string{"made": "yes"}) // of an object that nobody ever owned a field of, the API server tracks no owners
	_, err = objects.Create(ctx, u, metav1.CreateOptions{FieldManager: "maker"})
	Expect(err).NotTo(HaveOccurred())
	w := &writer{}
	var running context.Context
	running, w.cancel = context.WithCancel(context.Background())
	w.ended.Go(func() {
		for i := 0; running.Err() == nil; i++ {
			patch := fmt.Sprintf(`{"status":{"at":%q}}`, time.Now().Format(time.RFC3339Nano))
			_, err := objects.Patch(running, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "stormer"}, "status")
			if err == nil {
				w.mu.Lock()
				w.n++
				w.mu.Unlock()
			}
			pause := 20 * time.Millisecond
			if time.Now().Unix()/5%2 == 0 {
				pause = 250 * time.Millisecond
			}
			select {
			case <-running.Done():
			case <-time.After(pause):
			}
		}
	})
	return w
}

func (w *writer) stop() {
	w.cancel()
	w.ended.Wait()
}

func (w *writer) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.n
}
