package app_test

import (
	"context"
	"net/http"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/hduolab/quell/controller/app"
	"github.com/hduolab/quell/test/localcluster"
)

const (
	userAgent       = "operator-under-test"
	operatorVersion = "v0.0.0-test"
)

// operator runs the controller in this process as cmd/manager does, so that a test can stop and start it.
type operator struct {
	config  *rest.Config
	version string
	cancel  context.CancelFunc
	ended   chan error
}

func newOperator(ctx context.Context) *operator {
	GinkgoHelper()
	cfg, _, err := localcluster.ServiceAccountConfig(ctx, cluster.Config(), "quell-system", "quell-manager")
	Expect(err).NotTo(HaveOccurred())
	cfg.UserAgent = userAgent
	return &operator{config: cfg, version: operatorVersion}
}

func (o *operator) start() {
	GinkgoHelper()
	skipNames := true // controller names must be unique in a process otherwise
	mgr, err := ctrl.NewManager(o.config, ctrl.Options{
		Scheme:     scheme,
		Cache:      app.CacheOptions(),
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: &skipNames},
	})
	Expect(err).NotTo(HaveOccurred())
	apps, err := app.New(app.Options{Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Events: mgr.GetEventRecorder("quell"), Version: o.version})
	Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(context.Background())
	Expect(apps.SetupWithManager(ctx, mgr, 4)).To(Succeed())

	o.cancel, o.ended = cancel, make(chan error, 1)
	go func() { o.ended <- mgr.Start(ctx) }()
	Expect(mgr.GetCache().WaitForCacheSync(ctx)).To(BeTrue())
}

func (o *operator) stop() {
	GinkgoHelper()
	o.cancel()
	Expect(<-o.ended).NotTo(HaveOccurred())
}

func (o *operator) restart() {
	GinkgoHelper()
	o.stop()
	o.start()
}

// requests are those that the operator sent since a mark.
func (o *operator) requests(since localcluster.Mark, keep ...localcluster.Filter) []localcluster.Request {
	GinkgoHelper()
	requests, err := cluster.Requests(since, append(keep, localcluster.ByUserAgent(userAgent))...)
	Expect(err).NotTo(HaveOccurred())
	return requests
}

// writes are the operator's requests that ask to change something in a namespace.
func (o *operator) writes(since localcluster.Mark, namespace string) []localcluster.Request {
	GinkgoHelper()
	return o.requests(since, localcluster.Writes, localcluster.NotLeases, func(r localcluster.Request) bool { return r.Namespace == namespace })
}

// accepted are those requests that were not refused. An apply of a Deployment is refused, and tried again at once, when another
// controller was faster.
func accepted(requests []localcluster.Request) []localcluster.Request {
	return slices.DeleteFunc(slices.Clone(requests), func(r localcluster.Request) bool { return r.Code >= http.StatusBadRequest })
}

// reconciles is the number of reconciles that this process has done.
func reconciles() int {
	GinkgoHelper()
	families, err := metrics.Registry.Gather()
	Expect(err).NotTo(HaveOccurred())
	var n float64
	for _, family := range families {
		if family.GetName() == "controller_runtime_reconcile_total" {
			for _, m := range family.GetMetric() {
				n += m.GetCounter().GetValue()
			}
		}
	}
	return int(n)
}

func mark() localcluster.Mark {
	GinkgoHelper()
	m, err := cluster.Mark()
	Expect(err).NotTo(HaveOccurred())
	return m
}

// to keeps the requests for one resource, written as resource or resource/subresource.
func to(resource string) localcluster.Filter {
	name, sub, _ := strings.Cut(resource, "/")
	return func(r localcluster.Request) bool { return r.Resource == name && r.Subresource == sub }
}

func count(requests []localcluster.Request, keep localcluster.Filter) int {
	n := 0
	for _, r := range requests {
		if keep(r) {
			n++
		}
	}
	return n
}

// unused lists the rights in rules that none of the requests needed. Those to StormWatches are held to their use by
// test/integration/stormwatch.
func unused(rules []rbacv1.PolicyRule, requests []localcluster.Request) []string {
	var rights []string
	for _, rule := range rules {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				if strings.HasPrefix(resource, "stormwatches") {
					continue
				}
				used := slices.ContainsFunc(requests, func(r localcluster.Request) bool {
					return slices.Contains(rule.APIGroups, r.Group) && to(resource)(r) && needs(r, verb)
				})
				if !used {
					rights = append(rights, verb+" "+resource)
				}
			}
		}
	}
	return rights
}

// needs reports whether a request needs the right to a verb.
func needs(r localcluster.Request, verb string) bool {
	switch verb {
	case "create": // also of an apply that made the object
		return r.Verb == verb || r.Verb == "patch" && r.Code == http.StatusCreated
	case "list": // watches bring the first list along; API servers before 1.34 are asked for it
		return r.Verb == verb || r.Verb == "watch"
	}
	return r.Verb == verb
}

// unseen are rights that leave no request: where owner references are policed, admission asks for the first two before one
// is set (specs show it), and the event recorder patches an event that comes again for the same version of an App, which
// no spec can bring about at will.
var unseen = []string{"update apps/finalizers", "delete deployments", "patch events"}
