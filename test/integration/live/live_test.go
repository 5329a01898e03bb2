package live_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/hduolab/quell/controller/storm"
	"github.com/hduolab/quell/controller/storm/live"
	"github.com/hduolab/quell/test/localcluster"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gleak"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var _ = Describe("A source", func() {
	It("begins now, and reads one object at most for it", func(ctx SpecContext) {
		namespace := makeNamespace(ctx)
		for i := range 30 {
			makeObject(ctx, widgets, namespace, fmt.Sprint("old-", i))
		}
		r := run(ctx, live.Options{}, widgets)
		r.watches(widgets, live.Watching)
		makeObject(ctx, widgets, namespace, "new")
		Eventually(func() int64 { return r.writes(widgets) }).Should(BeEquivalentTo(1))
		for _, e := range r.wire.sent {
			Expect(e.isWatch() || e.query.Get("limit") == "1" && e.query.Get("resourceVersion") == "").To(BeTrue(), "%v", e.query)
			Expect(e.size).To(BeNumerically("<", 2000), "%v", e.query)
		}
		Expect(r.wire.sent).To(HaveLen(2))
	})

	It("names object, manager and field of a storm, counts each write once, and looks no longer than it takes", func(ctx SpecContext) {
		r := run(ctx, live.Options{}, widgets, configMaps)
		r.watches(widgets, live.Watching)
		w := makeObject(ctx, widgets, makeNamespace(ctx), "stamped")
		writes := int64(1)
		write := func() {
			Expect(stamp(ctx, w)).To(Succeed())
			writes++
		}
		var f storm.Finding
		Eventually(func() bool {
			write()
			f = r.finding("stamped")
			return f.IsStorm
		}).Should(BeTrue())
		Expect(f.Verdict).To(Equal(storm.TimestampChurn))
		Expect(f.Fields).To(HaveExactElements(HaveField("Path", ".status.at")))
		Expect(f.Writers).To(HaveExactElements(And(HaveField("Manager", "widget-operator"), HaveField("Subresource", "status"))))

		By("ending the look while the storm goes on")
		Eventually(func() int {
			write()
			_, open := r.wire.count((*exchange).isFull)
			return open
		}).Should(BeZero())
		for range 30 {
			write()
		}
		Eventually(func() int64 { return r.finding("stamped").Writes }).Should(Equal(writes))
		looks, _ := r.wire.count((*exchange).isFull)
		Expect(looks).To(Equal(1))
		f = r.finding("stamped")
		Expect(f.Verdict).To(Equal(storm.TimestampChurn))
		Expect(f.Valued).To(BeNumerically("<", 25), "writes that are seen in full")
	})

	It("names a storm of one write per second on each of many objects", func(ctx SpecContext) {
		r := run(ctx, live.Options{}, widgets)
		r.watches(widgets, live.Watching)
		namespace := makeNamespace(ctx)
		var all []*unstructured.Unstructured
		for i := range 30 {
			all = append(all, makeObject(ctx, widgets, namespace, fmt.Sprint("slow-", i)))
		}
		begin := time.Now()
		next := begin
		for r.Report().Findings == nil || !r.Report().Findings[0].IsStorm {
			Expect(time.Since(begin)).To(BeNumerically("<", time.Minute), "%+v", r.Report().Findings)
			for _, w := range all {
				Expect(stamp(ctx, w)).To(Succeed())
			}
			next = next.Add(time.Second)
			Expect(pause(ctx, time.Until(next))).To(Succeed())
		}
		AddReportEntry("named after", time.Since(begin).String())
		_, open := r.wire.count((*exchange).isFull)
		Expect(open).To(BeNumerically("<=", 8))
		Expect(r.Report().Findings[0].Verdict).To(Equal(storm.TimestampChurn))
	})

	It("sees a loop of deletions and creations", func(ctx SpecContext) {
		r := run(ctx, live.Options{}, widgets)
		r.watches(widgets, live.Watching)
		namespace := makeNamespace(ctx)
		Eventually(func() storm.Finding {
			w := makeObject(ctx, widgets, namespace, "again")
			Expect(admin.Delete(ctx, w)).To(Succeed())
			return r.finding("again")
		}).Should(And(HaveField("IsStorm", true), HaveField("Verdict", storm.DeleteRecreate)))
	})

	It("survives a restart of the API server", func(ctx SpecContext) {
		r := run(ctx, live.Options{}, widgets)
		r.watches(widgets, live.Watching)
		w := makeObject(ctx, widgets, makeNamespace(ctx), "restarted")
		Expect(cluster.Kill(localcluster.APIServer)).To(Succeed())
		Expect(r.watches(widgets, live.Failing).Err).To(MatchError(ContainSubstring("refused")))
		Expect(cluster.Restart(ctx, localcluster.APIServer)).To(Succeed())
		Eventually(func() error { return stamp(ctx, w) }).Should(Succeed())
		Eventually(func(g Gomega) {
			found := r.watches(widgets, live.Watching)
			if found.Gaps == 0 { // unless the API server has forgotten the version, and says so, perhaps once the watch is open
				g.Expect(r.writes(widgets)).To(BeEquivalentTo(2))
			}
		}).Should(Succeed())
	})

	It("takes up a watch whose version is forgotten, and tells of the gap", func(ctx SpecContext) {
		r := run(ctx, live.Options{}, widgets)
		r.watches(widgets, live.Watching)
		w := makeObject(ctx, widgets, makeNamespace(ctx), "gapped")
		for range 5 {
			Expect(stamp(ctx, w)).To(Succeed())
		}
		Eventually(func() int64 { return r.writes(widgets) }).Should(BeEquivalentTo(6))
		isTold := false
		r.wire.replace(func(q *http.Request) *http.Response {
			if q.URL.Query().Get("watch") == "" || q.URL.Query().Get("fieldSelector") != "" || isTold {
				return nil
			}
			isTold = true
			return answer(q, http.StatusGone, metav1.StatusReasonExpired, "")
		})
		r.wire.cut()
		Eventually(func() []live.Watch { return r.Watches() }).Should(HaveExactElements(
			And(HaveField("Gaps", 1), HaveField("State", live.Watching))))
		Expect(stamp(ctx, w)).To(Succeed())
		Eventually(func() int64 { return r.writes(widgets) }).Should(BeEquivalentTo(7))
		Expect(r.finding("gapped").Evidence).To(ContainElement(ContainSubstring("interrupted")))
	})

	It("waits as long as the API server asks for", func(ctx SpecContext) {
		r := run(ctx, live.Options{}, widgets)
		r.watches(widgets, live.Watching)
		var asked []time.Time
		r.wire.replace(func(q *http.Request) *http.Response {
			if q.URL.Query().Get("watch") == "" || len(asked) == 2 {
				return nil
			}
			asked = append(asked, time.Now())
			return answer(q, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "2")
		})
		r.wire.cut()
		Eventually(func() int { _, open := r.wire.count((*exchange).isWatch); return open }).Should(Equal(1))
		Eventually(func() int { all, _ := r.wire.count((*exchange).isWatch); return all }).Should(Equal(2))
		Expect(asked).To(HaveLen(2))
		Expect(asked[1].Sub(asked[0])).To(BeNumerically(">=", 2*time.Second))
		Expect(r.watches(widgets, live.Watching).Gaps).To(BeZero())
	})

	It("shows what it may not watch, and sees it once it may", func(ctx SpecContext) {
		secrets := resource("", "secrets", "Secret", true)
		r := run(ctx, live.Options{}, secrets, widgets)
		Expect(r.watches(secrets, live.Forbidden).Err).To(MatchError(ContainSubstring("cannot list resource")))
		r.watches(widgets, live.Watching)
		grant(ctx, "reads-secrets", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"list", "watch"}})
		Expect(r.watches(secrets, live.Watching).Err).NotTo(HaveOccurred())
	})

	It("goes on with a resource that is gone for a while", func(ctx SpecContext) {
		r := run(ctx, live.Options{}, gears, widgets)
		r.watches(gears, live.Watching)
		crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "gears.live.quell.dev"}}
		Expect(admin.Delete(ctx, crd)).To(Succeed())
		Eventually(func() error { return client.IgnoreNotFound(admin.Get(ctx, client.ObjectKeyFromObject(crd), crd)) }).Should(Succeed())
		r.watches(gears, live.NotFound)
		install(ctx, "gears")
		r.watches(gears, live.Watching)
		before := r.writes(gears)
		Eventually(func() int64 {
			makeObject(ctx, gears, "", fmt.Sprintf("g-%d", time.Now().UnixNano()))
			return r.writes(gears)
		}).Should(BeNumerically(">", before))
	})

	It("sees chosen namespaces only", func(ctx SpecContext) {
		one, two, other := makeNamespace(ctx), makeNamespace(ctx), makeNamespace(ctx)
		r := run(ctx, live.Options{Namespaces: []string{one, two}}, widgets, gears)
		r.watches(widgets, live.Watching)
		Expect(r.Watches()).To(HaveExactElements(HaveField("Resource", widgets)))
		makeObject(ctx, widgets, other, "w")
		makeObject(ctx, widgets, one, "w")
		makeObject(ctx, widgets, two, "w")
		Eventually(func() int64 { return r.writes(widgets) }).Should(BeEquivalentTo(2))
		lists, _ := r.wire.count(func(e *exchange) bool { return !strings.Contains(e.path, "/namespaces/") })
		Expect(lists).To(BeZero(), "requests outside the namespaces")
	})

	It("changes what it watches while it runs", func(ctx SpecContext) {
		r := run(ctx, live.Options{}, widgets)
		r.watches(widgets, live.Watching)
		r.Watch([]live.Resource{configMaps})
		r.watches(configMaps, live.Watching)
		isOfWidgets := func(e *exchange) bool { return e.isWatch() && strings.HasSuffix(e.path, "/widgets") }
		Eventually(func() int { _, open := r.wire.count(isOfWidgets); return open }).Should(BeZero())
		Expect(r.Watches()).To(HaveExactElements(HaveField("Resource", configMaps)))
	})

	It("leaves nothing behind", func(ctx SpecContext) {
		before := gleak.Goroutines()
		r := run(ctx, live.Options{}, widgets, gears, configMaps, resource("", "pods", "Pod", true))
		r.watches(widgets, live.Watching)
		w := makeObject(ctx, widgets, makeNamespace(ctx), "left")
		Eventually(func() int {
			Expect(stamp(ctx, w)).To(Succeed())
			all, _ := r.wire.count((*exchange).isFull)
			return all
		}).Should(Equal(1))
		r.stop()
		Expect(r.Watches()).To(HaveEach(HaveField("State", live.Starting)))
		utilnet.CloseIdleConnectionsFor(r.transport.Transport)
		// A connection that a request was begun on as the source ended may be idle only after that; it is the client's.
		Eventually(gleak.Goroutines).ShouldNot(gleak.HaveLeaked(before, gleak.IgnoringInBacktrace("net/http."), gleak.IgnoringInBacktrace("net/http2.")))
		_, open := r.wire.count((*exchange).isWatch)
		Expect(open).To(BeZero())
	})
})

func answer(q *http.Request, code int, reason metav1.StatusReason, retryAfter string) *http.Response {
	body := fmt.Sprintf(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": %q, "code": %d, "message": "made for a test"}`, reason, code)
	r := &http.Response{StatusCode: code, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: q}
	r.Header.Set("Content-Type", "application/json")
	if retryAfter != "" {
		r.Header.Set("Retry-After", retryAfter)
	}
	return r
}

// pause is the pace of a slow writer; nothing is waited for.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
