package ssa_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hduolab/quell/controller/ssa"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// me is the field manager under test, they its rival.
const (
	me   = "quell-test"
	they = "rival"
)

const namespace = metav1.NamespaceDefault

// traffic counts the requests for objects (discovery is left out) and lets a test stand between client and server.
type traffic struct {
	next  http.RoundTripper
	mu    sync.Mutex
	sent  []string
	fault fault
}

// fault answers a request in place of the API server, or passes it on.
type fault func(r *http.Request, next http.RoundTripper) (*http.Response, error)

func (t *traffic) over(next http.RoundTripper) http.RoundTripper {
	t.next = next
	return t
}

func (t *traffic) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.Contains(r.URL.Path, "/namespaces/") {
		return t.next.RoundTrip(r)
	}
	t.mu.Lock()
	t.sent = append(t.sent, r.Method+" "+r.URL.Path)
	fault := t.fault
	t.mu.Unlock()
	if fault == nil {
		return t.next.RoundTrip(r)
	}
	return fault(r, t.next)
}

// requests returns what was sent since the last call.
func (t *traffic) requests() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	sent := t.sent
	t.sent = nil
	return sent
}

// breakWith lets a fault answer until the spec ends or heal is called.
func (t *traffic) breakWith(f fault) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fault = f
}

func (t *traffic) heal() { t.breakWith(nil) }

var _ = BeforeEach(func() {
	wire.requests()
	DeferCleanup(wire.heal)
})

// config is an apply configuration as plain content.
type config map[string]any

func (config) IsApplyConfiguration() {}

var _ runtime.ApplyConfiguration = config{}

type content = map[string]any

// copied is a copy that a client may fill with the API server's answer.
func (c config) copied() runtime.ApplyConfiguration {
	GinkgoHelper()
	raw, err := json.Marshal(c)
	Expect(err).NotTo(HaveOccurred())
	u := &unstructured.Unstructured{}
	Expect(u.UnmarshalJSON(raw)).To(Succeed())
	return client.ApplyConfigurationFromUnstructured(u)
}

func with[M ~map[string]any](c M, key string, value any) M {
	c = maps.Clone(c)
	c[key] = value
	return c
}

func object(kind, name string, parts content) config {
	c := config{"apiVersion": "test.quell.dev/v1", "kind": kind, "metadata": content{"name": name, "namespace": namespace}}
	for field, value := range parts {
		c[field] = value
	}
	return c
}

// status is the apply configuration of a Thing's status.
func status(name string, status content) config {
	return object("Thing", name, content{"status": status})
}

func condition(kind, status, reason, message string) content {
	return content{"type": kind, "status": status, "reason": reason, "message": message}
}

// rich is a status with a value of every sort, zeros and empty lists among them.
func rich() content {
	return content{
		"s": "text", "i": 0, "l": 1 << 40, "b": false, "ratio": 1.0, "at": "2026-01-02T03:04:05+02:00", "quantity": "1000m",
		"nullable": nil, "port": "http", "free": content{"any": []any{content{"x": 1}}},
		"nested": content{"count": 0}, "labels": content{}, "tags": []any{}, "steps": []any{},
		"ports":      []any{content{"port": 80}, content{"port": 80, "protocol": "UDP"}},
		"conditions": []any{condition("Ready", "True", "Works", ""), condition("Available", "False", "Down", "no replicas")},
	}
}

var serial atomic.Int64

func newName() string { return fmt.Sprintf("object-%d", serial.Add(1)) }

// newObject creates an object without status and returns its name.
func newObject(ctx context.Context, kind string) string {
	GinkgoHelper()
	name := newName()
	recreate(ctx, kind, name)
	return name
}

func newThing(ctx context.Context) string {
	GinkgoHelper()
	return newObject(ctx, "Thing")
}

func recreate(ctx context.Context, kind, name string) {
	GinkgoHelper()
	u := &unstructured.Unstructured{Object: object(kind, name, content{"spec": content{"size": 1}})}
	if kind != "Thing" {
		delete(u.Object, "spec")
	}
	Expect(admin.Create(ctx, u, client.FieldOwner("creator"))).To(Succeed())
}

func remove(ctx context.Context, kind, name string) {
	GinkgoHelper()
	Expect(admin.Delete(ctx, &unstructured.Unstructured{Object: object(kind, name, nil)})).To(Succeed())
}

// fetch reads an object past the client under test.
func fetch(ctx context.Context, kind, name string) *unstructured.Unstructured {
	GinkgoHelper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: "test.quell.dev", Version: "v1", Kind: kind})
	Expect(admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, u)).To(Succeed())
	return u
}

func fetchThing(ctx context.Context, name string) *unstructured.Unstructured {
	GinkgoHelper()
	return fetch(ctx, "Thing", name)
}

// field is a field of an object, nil when it is not set.
func field(u *unstructured.Unstructured, path ...string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(u.Object, path...)
	return value
}

func conditionOf(u *unstructured.Unstructured, kind string) content {
	list, _ := field(u, "status", "conditions").([]any)
	for _, item := range list {
		if c, _ := item.(content); c["type"] == kind {
			return c
		}
	}
	return nil
}

// managers lists the entries of managedFields as manager/operation/subresource.
func managers(u *unstructured.Unstructured) []string {
	var names []string
	for _, e := range u.GetManagedFields() {
		names = append(names, fmt.Sprintf("%s/%s/%s", e.Manager, e.Operation, e.Subresource))
	}
	return names
}

func newClock() *testclock.FakeClock {
	return testclock.NewFakeClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
}

// options are those of an applier under test.
func options(clock *testclock.FakeClock) ssa.Options {
	return ssa.Options{Client: subject, Reader: subject, Types: converter, FieldManager: me, Clock: clock}
}

func newWriter(clock *testclock.FakeClock, change ...func(*ssa.StatusOptions)) *ssa.StatusWriter {
	GinkgoHelper()
	o := ssa.StatusOptions{Options: options(clock)}
	for _, c := range change {
		c(&o)
	}
	w, err := ssa.NewStatusWriter(o)
	Expect(err).NotTo(HaveOccurred())
	return w
}

func newApplier(clock *testclock.FakeClock, change ...func(*ssa.Options)) *ssa.Applier {
	GinkgoHelper()
	o := options(clock)
	for _, c := range change {
		c(&o)
	}
	a, err := ssa.NewApplier(o)
	Expect(err).NotTo(HaveOccurred())
	return a
}

// write writes a status onto a live object; it must not fail.
func write(ctx context.Context, w *ssa.StatusWriter, desired runtime.ApplyConfiguration, live client.Object, inputs ...string) ssa.Result {
	GinkgoHelper()
	result, err := w.Write(ctx, ssa.Intent{Desired: desired, Live: live, Inputs: strings.Join(inputs, "")})
	Expect(err).NotTo(HaveOccurred())
	return result
}

// written writes a status for the first time and returns the object as the server has it then.
func written(ctx context.Context, w *ssa.StatusWriter, name string, s content) *unstructured.Unstructured {
	GinkgoHelper()
	Expect(write(ctx, w, status(name, s), fetchThing(ctx, name))).To(HaveField("Outcome", ssa.Applied))
	Expect(wire.requests()).To(HaveLen(1))
	return fetchThing(ctx, name)
}

func apply(ctx context.Context, a *ssa.Applier, desired runtime.ApplyConfiguration, live client.Object, inputs ...string) ssa.Result {
	GinkgoHelper()
	result, err := a.Apply(ctx, ssa.Intent{Desired: desired, Live: live, Inputs: strings.Join(inputs, "")})
	Expect(err).NotTo(HaveOccurred())
	return result
}

// forceStatus lets another manager apply a status with force.
func forceStatus(ctx context.Context, manager string, c config) {
	GinkgoHelper()
	Expect(admin.Status().Apply(ctx, c.copied(), client.FieldOwner(manager), client.ForceOwnership)).To(Succeed())
}

// updateStatus lets another manager change a status by update.
func updateStatus(ctx context.Context, manager, name string, change func(status content)) {
	GinkgoHelper()
	u := fetchThing(ctx, name)
	s, _ := field(u, "status").(content)
	if s == nil {
		s = content{}
	}
	change(s)
	u.Object["status"] = s
	Expect(admin.Status().Update(ctx, u, client.FieldOwner(manager))).To(Succeed())
}

// nextSecond waits until the real clock has passed the resolution of managedFields since start.
func nextSecond(start time.Time) {
	GinkgoHelper()
	Eventually(time.Now).Should(BeTemporally(">", start.Add(1100*time.Millisecond)))
}

// quiet expects that nothing was sent and that the server still has this version.
func quiet(ctx context.Context, version *unstructured.Unstructured) {
	GinkgoHelper()
	Expect(wire.requests()).To(BeEmpty())
	Expect(fetch(ctx, version.GetKind(), version.GetName()).GetResourceVersion()).To(Equal(version.GetResourceVersion()))
}

func read(path string) []byte {
	GinkgoHelper()
	raw, err := os.ReadFile(path)
	Expect(err).NotTo(HaveOccurred())
	return raw
}
