package monitoring_test

import (
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

var (
	// metricRow is a metric in a table: its name, labels and type.
	metricRow = regexp.MustCompile("(?m)^\\| `([a-z_]+)(?:\\{([a-z_,]*)\\})?` \\| (counter|gauge|histogram) \\| \\S")
	// ofRuntime are the metrics of the Go runtime and of the process, which one line stands for.
	ofRuntime = regexp.MustCompile(`^(go|process)_`)
)

// metric is what it takes to query one.
type metric struct {
	labels string // sorted
	kind   string // counter, gauge or histogram; untyped where that is not known
}

var _ = Describe("docs/operations.md", func() {
	It("has each metric that the manager serves, with its type and labels, and no other", func(ctx SpecContext) {
		kubectlWith(ctx, strings.NewReader(objects), "apply", "--server-side", "-f", "-")
		kubectl(ctx, "create", "serviceaccount", "reader")
		kubectl(ctx, "create", "clusterrolebinding", "reader", "--clusterrole=quell-metrics-reader", "--serviceaccount=default:reader")
		token := strings.TrimSpace(kubectl(ctx, "create", "token", "reader"))
		stop := goOn(ctx, stamp, takeImage)
		defer stop()
		rows, known := metricRows(), metricsIn(Default, registered())
		Eventually(ctx, func(g Gomega) {
			status, text := scrape(ctx, token)
			g.Expect(status).To(Equal(http.StatusOK), text)
			served := metricsIn(g, text)
			g.Expect(served).To(And(HaveKey("quell_storm_object_writes_per_second"), HaveKey("quell_ssa_held_total")))
			for name, m := range served {
				g.Expect(rows).To(HaveKeyWithValue(name, m))
			}
			for name, m := range rows {
				if _, isServed := served[name]; !isServed { // what it takes a fault to have a value is registered all the same
					g.Expect(known).To(HaveKeyWithValue(name, metric{m.labels, "untyped"}))
				}
			}
		}).Should(Succeed())
	})
})

// metricRows are the metrics of the tables.
func metricRows() map[string]metric {
	GinkgoHelper()
	raw, err := os.ReadFile("../../../docs/operations.md")
	Expect(err).NotTo(HaveOccurred())
	rows := map[string]metric{}
	for _, m := range metricRow.FindAllStringSubmatch(string(raw), -1) {
		labels := strings.FieldsFunc(m[2], func(r rune) bool { return r == ',' })
		slices.Sort(labels)
		rows[m[1]] = metric{strings.Join(labels, ","), m[3]}
	}
	Expect(rows).NotTo(BeEmpty())
	return rows
}

// metricsIn are those of a text in Prometheus's format, but for those of the runtime.
func metricsIn(g Gomega, text string) map[string]metric {
	GinkgoHelper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	g.Expect(err).NotTo(HaveOccurred())
	found := map[string]metric{}
	for name, family := range families {
		labels := map[string]bool{}
		for _, series := range family.Metric {
			for _, label := range series.Label {
				labels[label.GetName()] = true
			}
		}
		if !ofRuntime.MatchString(name) {
			found[name] = metric{strings.Join(slices.Sorted(maps.Keys(labels)), ","), strings.ToLower(family.GetType().String())}
		}
	}
	return found
}
