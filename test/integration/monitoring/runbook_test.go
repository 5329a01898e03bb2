package monitoring_test

import (
	"context"
	"os"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/hduolab/quell/controller/storm"
	"github.com/hduolab/quell/controller/storm/auditlog"
)

// runbookYAML is the only YAML block of docs/runbook.md that has a line, without the indentation of a list.
func runbookYAML(line string) string {
	GinkgoHelper()
	raw, err := os.ReadFile("../../../docs/runbook.md")
	Expect(err).NotTo(HaveOccurred())
	var found []string
	for _, part := range strings.Split(string(raw), "```yaml\n")[1:] {
		block, _, _ := strings.Cut(part, "```")
		indent := block[:len(block)-len(strings.TrimLeft(block, " "))]
		if block = strings.ReplaceAll("\n"+block, "\n"+indent, "\n"); strings.Contains(block, "\n"+line+"\n") {
			found = append(found, block)
		}
	}
	Expect(found).To(HaveLen(1), line)
	return found[0]
}

var _ = Describe("docs/runbook.md", func() {
	It("slows a writer down with what the API server accepts", func(ctx SpecContext) {
		out := kubectlWith(ctx, strings.NewReader(runbookYAML("kind: FlowSchema")), "create", "--dry-run=server", "--validate=strict", "-f", "-")
		Expect(out).To(And(ContainSubstring("prioritylevelconfiguration"), ContainSubstring("flowschema")))
	})

	It("has an audit policy with which a storm is found by object, manager and field", func(ctx SpecContext) {
		kubectlWith(ctx, strings.NewReader(objects), "apply", "--server-side", "-f", "-")
		stop := goOn(ctx, stamp)
		defer stop()
		Eventually(ctx, func(g Gomega) {
			report := analysed(ctx, g)
			var fields, managers []string
			for _, f := range report.Writes.Findings {
				if f.IsStorm && f.Object.Resource == "apps" {
					g.Expect(f.Verdict).To(BeElementOf(storm.MetadataChurn, storm.TimestampChurn))
					fields, managers = append(fields, f.Fields[0].Path), append(managers, f.Writers[0].Manager)
				}
			}
			g.Expect(fields).To(ConsistOf(`.metadata.annotations["example.com/seen"]`))
			g.Expect(managers).To(ConsistOf("storm"))
		}).Should(Succeed())
	})

	It("keeps the content of Secrets out of the audit log", func(ctx SpecContext) {
		kubectl(ctx, "create", "secret", "generic", "password", "--from-literal=word=xyzzy-in-the-clear")
		Eventually(ctx, auditLog).Should(ContainSubstring(`"name":"password"`))
		Expect(auditLog()).NotTo(Or(ContainSubstring("xyzzy-in-the-clear"), ContainSubstring("eHl6enktaW4tdGhlLWNsZWFy")))
	})
})

func auditLog() string {
	GinkgoHelper()
	raw, err := os.ReadFile(cluster.AuditLog())
	Expect(err).NotTo(HaveOccurred())
	return string(raw)
}

func analysed(ctx context.Context, g Gomega) auditlog.Report {
	analysis := auditlog.New(auditlog.Options{})
	g.Expect(analysis.Read(ctx, "audit.log", strings.NewReader(auditLog()))).To(Succeed())
	return analysis.Report()
}
