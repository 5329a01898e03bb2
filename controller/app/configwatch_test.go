package app

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
)

// metadataCache is a cache whose objects are set by a test.
type metadataCache struct {
	*informertest.FakeInformers
	version string
	failed  toolscache.WatchErrorHandlerWithContext
	ended   chan struct{}
}

func (m *metadataCache) Get(_ context.Context, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	o.SetUID("1")
	o.SetResourceVersion(m.version)
	return nil
}

func (m *metadataCache) Start(ctx context.Context) error {
	<-ctx.Done()
	close(m.ended)
	return nil
}

// following is a configs on a cluster that a test rules.
type following struct {
	*configs
	cache          *metadataCache
	allowed        atomic.Bool
	reviews, reads atomic.Int32
	answer         error
	clock          *clocktesting.FakeClock
	ctx            context.Context
	queue          workqueue.TypedRateLimitingInterface[reconcile.Request]
}

func follow(t *testing.T) *following {
	t.Helper()
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(AddToScheme(scheme)).To(Succeed())
	f := &following{clock: clocktesting.NewFakeClock(time.Unix(1000, 0))}
	user := configFiles(quellv1alpha1.AppConfigFiles{Name: "a", ConfigMap: "settings", OnChange: quellv1alpha1.ConfigRoll})
	c := fake.NewClientBuilder().WithScheme(scheme).WithIndex(&quellv1alpha1.App{}, indexConfig, configKeys).WithObjects(user).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
			f.reviews.Add(1)
			o.(*authorizationv1.SelfSubjectAccessReview).Status.Allowed = f.allowed.Load()
			return nil
		},
		Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
			f.reads.Add(1)
			o.SetUID("1")
			o.SetResourceVersion(f.cache.version)
			o.(*corev1.ConfigMap).Data = map[string]string{"a": "b"}
			return f.answer
		},
	}).Build()
	var err error
	f.configs, err = newConfigs(Options{Client: c, Reader: c, Clock: f.clock})
	g.Expect(err).NotTo(HaveOccurred())
	newCache := func(failed toolscache.WatchErrorHandlerWithContext) (cache.Cache, error) {
		synced := true
		f.cache = &metadataCache{FakeInformers: &informertest.FakeInformers{Scheme: scheme, Synced: &synced}, version: "5", failed: failed, ended: make(chan struct{})}
		return f.cache, nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	f.ctx = ctx
	f.queue = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	for _, w := range f.watches {
		w.newCache = newCache
		g.Expect(w.Start(f.ctx, f.queue)).To(Succeed())
	}
	return f
}

func (f *following) look() error {
	_, err := f.sum(f.ctx, kindConfigMap, client.ObjectKey{Namespace: "team-a", Name: "settings"})
	return err
}

func TestWithoutRightsNothingIsWatchedAndTheQuestionIsNotRepeatedHotly(t *testing.T) {
	g, f := NewWithT(t), follow(t)
	for range 5 {
		g.Expect(f.look()).To(MatchError(errConfigDenied))
	}
	g.Expect(f.reviews.Load()).To(BeEquivalentTo(1))
	g.Expect(f.cache).To(BeNil())
	f.clock.Step(askAgain)
	g.Expect(f.look()).To(MatchError(errConfigDenied))
	g.Expect(f.reviews.Load()).To(BeEquivalentTo(2))

	f.allowed.Store(true)
	f.clock.Step(askAgain)
	g.Expect(f.look()).To(Succeed())
	g.Expect(f.reviews.Load()).To(BeEquivalentTo(5)) // get, list and watch
}

func TestEachVersionIsReadOnce(t *testing.T) {
	g, f := NewWithT(t), follow(t)
	f.allowed.Store(true)
	for range 3 {
		g.Expect(f.look()).To(Succeed())
	}
	g.Expect(f.reads.Load()).To(BeEquivalentTo(1))
	f.cache.version = "6"
	g.Expect(f.look()).To(Succeed())
	g.Expect(f.reads.Load()).To(BeEquivalentTo(2))
	f.cache.version = "5" // older than what was read
	g.Expect(f.look()).To(Succeed())
	g.Expect(f.reads.Load()).To(BeEquivalentTo(2))
}

func TestAWatchEndsWithTheRightsToIt(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", errors.New("no"))
	for name, lose := range map[string]func(*following){
		"the watch is refused": func(f *following) { f.cache.failed(f.ctx, nil, forbidden) },
		"a read is refused":    func(f *following) { f.cache.version, f.answer = "6", forbidden },
	} {
		t.Run(name, func(t *testing.T) {
			g, f := NewWithT(t), follow(t)
			f.allowed.Store(true)
			g.Expect(f.look()).To(Succeed())
			ended := f.cache.ended
			lose(f)
			g.Expect(f.look()).To(MatchError(errConfigDenied))
			g.Eventually(ended).Should(BeClosed())

			f.answer = nil
			f.clock.Step(askAgain)
			g.Expect(f.look()).To(Succeed())
			g.Expect(f.cache.ended).NotTo(BeClosed())
		})
	}
}

func TestAppsAreWokenWhenTheirWatchIsRefused(t *testing.T) {
	g, f := NewWithT(t), follow(t)
	f.allowed.Store(true)
	g.Expect(f.look()).To(Succeed())
	f.cache.failed(f.ctx, nil, apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no")))
	g.Expect(f.queue.Len()).To(Equal(1))
	g.Expect(f.users(f.ctx, kindSecret)).To(BeEmpty())
	g.Expect(f.users(f.ctx, "ConfigMap/settings", client.InNamespace("elsewhere"))).To(BeEmpty())
}

func TestTheCacheHoldsNothingButIdentities(t *testing.T) {
	g := NewWithT(t)
	m := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: "a", Name: "b", UID: "1", ResourceVersion: "5", Labels: map[string]string{"a": "b"},
		Annotations:   map[string]string{corev1.LastAppliedConfigAnnotation: `{"stringData":{"password":"x"}}`},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "a"}},
	}}
	kept, err := identity(m)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(kept).To(Equal(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b", UID: "1", ResourceVersion: "5"}}))
}
