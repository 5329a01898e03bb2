package storm_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hduolab/quell/controller/storm"
	"github.com/hduolab/quell/test/localcluster"
)

// cell is what requests have in common that the API server's own counter tells apart.
type cell struct {
	verb, group, resource, subresource string
	code                               int
}

// auditVerb is what the audit log calls the verbs of the metrics, which tell applies from other patches, and not the deletion of
// one object from that of many.
var auditVerb = map[string]string{
	"GET": "get", "LIST": "list", "WATCH": "watch", "POST": "create", "PUT": "update", "PATCH": "patch", "APPLY": "patch", "DELETE": "delete",
}

func countSpecs() {
	It("agrees with the API server's own counts", func(ctx SpecContext) {
		refused := sendRefused(ctx)
		var counted map[cell]int64
		var end localcluster.Mark
		Eventually(ctx, func() int { // until nobody else asks while the counts are read
			start, err := cluster.Mark()
			Expect(err).NotTo(HaveOccurred())
			counted = served(ctx)
			end, err = cluster.Mark()
			Expect(err).NotTo(HaveOccurred())
			between, err := cluster.Requests(start)
			Expect(err).NotTo(HaveOccurred())
			return len(between)
		}).Should(Equal(1), "the reading itself")
		report := newTail(0, storm.Options{}).readTo(ctx, end)
		logged := loggedTo(end)

		By("comparing verb, group, resource, subresource and code of each request for a resource")
		onlyLogged, onlyCounted := map[cell]int64{}, map[cell]int64{}
		cells := maps.Clone(logged)
		maps.Copy(cells, counted)
		for c := range cells {
			switch difference := logged[c] - counted[c]; {
			case c.verb == "watch": // which the counter and the analysis count at their end
			case difference > 0:
				onlyLogged[c] = difference
			case difference < 0:
				onlyCounted[c] = -difference
			}
		}
		Expect(onlyCounted).To(BeEmpty(), "counted and not in the audit log")
		for c, n := range refused {
			Expect(onlyLogged).To(HaveKeyWithValue(c, n), "what is refused before it reaches a resource is not counted")
		}
		for c := range onlyLogged {
			if c.resource != "" {
				Expect(refused).To(HaveKey(c), "in the audit log and not counted")
			}
		}

		By("comparing the report's verbs")
		requests, uncounted := int64(0), int64(0)
		for _, v := range report.Verbs {
			Expect(v.Error).To(BeZero())
			name := strings.Replace(v.Key, "deletecollection", "delete", 1)
			requests += v.Requests
			if name == "delete" {
				continue
			}
			rest := int64(0)
			for c, n := range onlyLogged {
				if c.verb == name {
					rest += n
				}
			}
			uncounted += rest
			Expect(v.Requests).To(Equal(sum(counted, name)+rest), name)
		}
		Expect(report.Requests).To(Equal(requests))
		Expect(requests).To(Equal(sum(counted, "") + uncounted))
		AddReportEntry("counts", fmt.Sprintf("%d requests, %d of them also in apiserver_request_total, in %d cells; only logged: %v", requests, sum(counted, ""), len(counted), onlyLogged))
	})
}

// sum adds up the cells of a verb, or all.
func sum(counts map[cell]int64, verb string) int64 {
	total := int64(0)
	for c, n := range counts {
		if verb == "" || c.verb == verb {
			total += n
		}
	}
	return total
}

// sendRefused sends requests that are answered before any resource is asked, and tells which.
func sendRefused(ctx context.Context) map[cell]int64 {
	GinkgoHelper()
	nobody, err := cluster.User("nobody")
	Expect(err).NotTo(HaveOccurred())
	stranger := rest.AnonymousClientConfig(cluster.Config())
	stranger.BearerToken = "not-a-token"
	secret := func() client.Object {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "counted"}}
	}
	for _, c := range []struct {
		config *rest.Config
		refuse func(error) bool
	}{{nobody, apierrors.IsForbidden}, {stranger, apierrors.IsUnauthorized}} {
		Expect(c.refuse(clients(c.config).CoreV1().RESTClient().Get().Namespace("default").Resource("secrets").Name("counted").Do(ctx).Error())).To(BeTrue())
	}
	core := clients(cluster.Config()).CoreV1().RESTClient()
	Expect(apierrors.IsNotFound(core.Get().Namespace("default").Resource("nothings").Name("counted").Do(ctx).Error())).To(BeTrue())
	Expect(apierrors.IsMethodNotSupported(core.Post().Namespace("default").Resource("secrets").Name("counted").Body([]byte("{}")).Do(ctx).Error())).To(BeTrue())
	Expect(admin.Create(ctx, secret(), client.DryRunAll)).To(Succeed()) // which is counted
	Expect(apierrors.IsNotFound(admin.Get(ctx, client.ObjectKeyFromObject(secret()), secret()))).To(BeTrue())
	return map[cell]int64{
		{"get", "", "secrets", "", 403}: 1, {"get", "", "secrets", "", 401}: 1,
		{"get", "", "nothings", "", 404}: 1, {"create", "", "secrets", "", 405}: 1,
	}
}

func clients(config *rest.Config) *kubernetes.Clientset {
	GinkgoHelper()
	c, err := kubernetes.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	return c
}

// loggedTo counts the audit log up to a mark. Requests for no resource are under the names that the counter gives them.
func loggedTo(end localcluster.Mark) map[cell]int64 {
	GinkgoHelper()
	requests, err := cluster.Requests(0)
	Expect(err).NotTo(HaveOccurred())
	later, err := cluster.Requests(end)
	Expect(err).NotTo(HaveOccurred())
	counts := map[cell]int64{}
	for _, r := range requests[:len(requests)-len(later)] {
		c := cell{r.Verb, r.Group, r.Resource, r.Subresource, r.Code}
		if c.verb == "deletecollection" {
			c.verb = "delete"
		}
		if c.resource == "" {
			c.subresource = countedAs(r.Path)
		}
		counts[c]++
	}
	return counts
}

// countedAs is the counter's name for a path. It has none for the discovery of one version, for /version and for /metrics.
func countedAs(path string) string {
	switch {
	case path == "/api" || path == "/apis" || path == "/openapi/v3":
		return path[1:]
	case strings.HasPrefix(path, "/openapi/v3/"):
		return "openapi/v3/"
	}
	return path
}

// served are the API server's own counts.
func served(ctx context.Context) map[cell]int64 {
	GinkgoHelper()
	raw, err := clients(cluster.Config()).RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	Expect(err).NotTo(HaveOccurred())
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(raw))
	Expect(err).NotTo(HaveOccurred())
	Expect(families).To(HaveKey("apiserver_request_total"))
	counts := map[cell]int64{}
	for _, m := range families["apiserver_request_total"].GetMetric() {
		label := map[string]string{}
		for _, l := range m.GetLabel() {
			label[l.GetName()] = l.GetValue()
		}
		code, err := strconv.Atoi(label["code"])
		Expect(err).NotTo(HaveOccurred(), fmt.Sprint(label))
		verb, known := auditVerb[label["verb"]]
		Expect(known).To(BeTrue(), fmt.Sprint(label))
		counts[cell{verb, label["group"], label["resource"], label["subresource"], code}] += int64(m.GetCounter().GetValue())
	}
	return counts
}
