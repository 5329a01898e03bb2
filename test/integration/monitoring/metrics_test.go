package monitoring_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	_ "github.com/hduolab/quell/controller/app" // and with it the metrics of controller/ssa
)

// scrape reads the manager's metrics with a token; "" sends none.
func scrape(ctx context.Context, token string) (status int, body string) {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+endpoint+"/metrics", nil)
	Expect(err).NotTo(HaveOccurred())
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	// As in service_monitor.yaml: the manager makes its certificate itself.
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return 0, err.Error() // it has not started yet
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	return response.StatusCode, string(content)
}

var described = regexp.MustCompile(`fqName: "([^"]+)".*variableLabels: \{([^}]*)\}`)

// registered are the metrics that the packages of the manager register, whether or not they have a value, in Prometheus's text
// format. Their types are not known.
func registered() string {
	GinkgoHelper()
	collector, isCollector := metrics.Registry.(prometheus.Collector)
	Expect(isCollector).To(BeTrue())
	descriptions := make(chan *prometheus.Desc)
	go func() { defer close(descriptions); collector.Describe(descriptions) }()
	var text strings.Builder
	for d := range descriptions {
		parts := described.FindStringSubmatch(d.String())
		Expect(parts).NotTo(BeNil(), d.String())
		labels := strings.FieldsFunc(parts[2], func(r rune) bool { return r == ',' })
		for i, label := range labels {
			labels[i] = label + `=""`
		}
		fmt.Fprintf(&text, "%s{%s} 0\n", parts[1], strings.Join(labels, ","))
	}
	return text.String()
}

// ofAPIServer are those that the API server has a value for.
func ofAPIServer(ctx context.Context) string {
	GinkgoHelper()
	clients, err := kubernetes.NewForConfig(cluster.Config())
	Expect(err).NotTo(HaveOccurred())
	text, err := clients.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}
