package faults_test

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/test/localcluster"
)

// dieAt lets a process die at the k-th call of its reconciles from now on, before it is sent or after the API server did it.
func (o *operator) dieAt(k int, after bool) {
	var n atomic.Int64
	o.breakWith(func(c call, r *http.Request, send http.RoundTripper) (*http.Response, error) {
		if !ofLoop(c) || n.Add(1) != int64(k) {
			return nil, nil
		}
		if after {
			_ = commit(r, send)
		}
		o.crash()
		return nil, errDead
	})
}

// stage is a part of an App's life.
type stage struct {
	name string
	// begin asks for something, done waits until the cluster has it.
	begin, done func(context.Context, *quellv1alpha1.App)
	// over tells the same without waiting.
	over func(context.Context, *quellv1alpha1.App) bool
}

var stages = []stage{
	{"creation", func(ctx context.Context, a *quellv1alpha1.App) { create(ctx, a) }, func(ctx context.Context, a *quellv1alpha1.App) { converge(ctx, a) }, isAsAsked},
	{"change", func(ctx context.Context, a *quellv1alpha1.App) { ask(ctx, a, otherSpec) }, func(ctx context.Context, a *quellv1alpha1.App) { converge(ctx, a) }, isAsAsked},
	{"deletion", deleteInForeground, awaitGone, isGone},
}

// otherSpec asks for another image, more Pods, one child less and one more.
func otherSpec(s *quellv1alpha1.AppSpec) {
	s.Image, s.Replicas = imageNo(2), ptr.To[int32](3)
	s.ServiceAccount = nil
	withBudget(s)
}

func isAsAsked(ctx context.Context, a *quellv1alpha1.App) bool { return asAsked(ctx, a) == nil }

func deleteInForeground(ctx context.Context, a *quellv1alpha1.App) {
	GinkgoHelper()
	Expect(admin.Delete(ctx, a, client.PropagationPolicy(metav1.DeletePropagationForeground))).To(Succeed())
}

func isGone(ctx context.Context, a *quellv1alpha1.App) bool {
	return apierrors.IsNotFound(admin.Get(ctx, client.ObjectKeyFromObject(a), a.DeepCopy())) && left(ctx, a) == ""
}

// awaitGone wants nothing of an App to be left.
func awaitGone(ctx context.Context, a *quellv1alpha1.App) {
	GinkgoHelper()
	Eventually(ctx, func() bool { return isGone(ctx, a) }).Should(BeTrue(), func() string { return left(ctx, a) })
}

// left names a child that an App has left behind, "" when there is none.
func left(ctx context.Context, a *quellv1alpha1.App) string {
	for _, k := range childKinds {
		if err := admin.Get(ctx, client.ObjectKeyFromObject(a), k.empty()); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("%s %s: %v", k.name, a.Name, err)
		}
	}
	return ""
}

// usage counts calls.
type usage struct{ all, children int }

// undisturbed is how many calls each stage takes without a fault.
func undisturbed(ctx context.Context, a *quellv1alpha1.App) []usage {
	GinkgoHelper()
	o := startOperator(a.Namespace)
	var counts []usage
	for _, s := range stages {
		o.forget()
		s.begin(ctx, a)
		s.done(ctx, a)
		o.idle(ctx)
		counts = append(counts, usage{o.count(ofLoop), o.count(aboutChildren)})
		fmt.Fprintf(GinkgoWriter, "%s undisturbed:\n%s\n", s.name, words(o.sent(ofLoop)))
	}
	o.stop()
	return counts
}

// crashing is one App whose operator dies at the k-th call of each stage.
type crashing struct {
	k     int
	after bool
	app   *quellv1alpha1.App
}

var _ = Describe("A process that dies", func() {
	DescribeTable("at any call to the API server, before it or with its answer lost, leaves nothing half done: every child is made "+
		"once, and the next process asks and writes as much about children as an undisturbed one, and 2 calls more at "+
		"most",
		func(ctx SpecContext, long bool, spec func(*quellv1alpha1.AppSpec)) {
			takesLong(long)
			usual := undisturbed(ctx, newApp(newNamespace(ctx), "shop", spec))
			cases := crashes(ctx, usual, spec)
			start := mark()
			var died, worst, statuses atomic.Int64
			inParallel(16, cases, func(c crashing) {
				for i, s := range stages {
					o := c.suffer(ctx, s, &died)
					about := o.count(aboutChildren)
					worst.Store(max(worst.Load(), int64(about-usual[i].children)))
					statuses.Store(max(statuses.Load(), int64(o.count(isStatusApply))))
					Expect(about).To(BeNumerically("<=", usual[i].children+2), "%s, call %d, answer lost: %t:\n%s", s.name, c.k, c.after, words(o.sent(ofLoop)))
				}
				expectMadeOnce(start, c.app.Namespace)
			})
			tell("calls of an undisturbed creation, change and deletion: %+v; %d Apps, %d crashes; the next process sent at most %+d calls about children beside those (bound +2), and %d of status",
				usual, len(cases), died.Load(), worst.Load(), statuses.Load())
			Expect(int(died.Load())).To(BeNumerically(">=", 2*(usual[0].all+usual[1].all)-4), "most of the calls were reached")
		},
		Entry("with a Deployment, a Service and a ServiceAccount", false, withAccount),
		Entry("with every kind of child", true, func(s *quellv1alpha1.AppSpec) { withAll(s); s.Autoscaling = nil }),
	)
})

// crashes are an App for each call that a stage takes, before it and after it.
func crashes(ctx context.Context, usual []usage, spec func(*quellv1alpha1.AppSpec)) []crashing {
	GinkgoHelper()
	var cases []crashing
	for k := 1; k <= max(usual[0].all, usual[1].all, usual[2].all); k++ {
		for _, after := range []bool{false, true} {
			cases = append(cases, crashing{k, after, newApp(newNamespace(ctx), "shop", spec)})
		}
	}
	return cases
}

// suffer goes through a stage with a process that dies at the k-th call, and then with a fresh one, which it returns.
func (c crashing) suffer(ctx context.Context, s stage, died *atomic.Int64) *operator {
	GinkgoHelper()
	a, o := c.app, newOperator(c.app.Namespace)
	o.start()
	defer func() { o.stop() }()
	o.dieAt(c.k, c.after)
	s.begin(ctx, a)
	Eventually(ctx, func() bool { return o.isDead() || s.over(ctx, a) }).Should(BeTrue())
	if !o.isDead() {
		o.idle(ctx) // the last calls come when all is in place already
	}
	if o.isDead() {
		died.Add(1)
	}
	o.restart()
	s.done(ctx, a)
	o.idle(ctx)
	return o
}

// expectMadeOnce wants no object to have been made twice by the operator in a namespace.
func expectMadeOnce(since localcluster.Mark, namespace string) {
	GinkgoHelper()
	made, err := cluster.Requests(since, localcluster.ByUserAgent("operator-under-test"), localcluster.Writes, func(r localcluster.Request) bool {
		return r.Namespace == namespace && r.Resource != "events" && r.Code == http.StatusCreated
	})
	Expect(err).NotTo(HaveOccurred())
	counts := map[string]int{}
	for _, r := range made {
		counts[r.Resource+"/"+r.Name]++
	}
	Expect(counts).NotTo(BeEmpty())
	Expect(counts).To(HaveEach(1))
}

func mark() localcluster.Mark {
	GinkgoHelper()
	m, err := cluster.Mark()
	Expect(err).NotTo(HaveOccurred())
	return m
}
