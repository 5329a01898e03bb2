package localcluster

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

const patchLine = `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"1","stage":"ResponseComplete",` +
	`"requestURI":"/apis/quell.dev/v1alpha1/namespaces/ns/apps/web/status?fieldManager=quell-status&force=true","verb":"patch",` +
	`"user":{"username":"system:serviceaccount:quell:manager","groups":["system:authenticated"]},"sourceIPs":["127.0.0.1"],` +
	`"userAgent":"manager/v1","objectRef":{"resource":"apps","namespace":"ns","name":"web","apiGroup":"quell.dev","apiVersion":"v1alpha1",` +
	`"subresource":"status"},"responseStatus":{"metadata":{},"code":200},"requestReceivedTimestamp":"2026-01-02T03:04:05.000006Z",` +
	`"stageTimestamp":"2026-01-02T03:04:05.000007Z"}` + "\n"

func TestParseAuditLine(t *testing.T) {
	g := NewWithT(t)
	request, counts, err := parseAuditLine([]byte(patchLine))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(counts).To(BeTrue())
	g.Expect(request).To(Equal(Request{
		Time:         time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC),
		Verb:         "patch",
		Group:        "quell.dev",
		Resource:     "apps",
		Subresource:  "status",
		Namespace:    "ns",
		Name:         "web",
		Path:         "/apis/quell.dev/v1alpha1/namespaces/ns/apps/web/status",
		User:         "system:serviceaccount:quell:manager",
		UserAgent:    "manager/v1",
		FieldManager: "quell-status",
		Code:         200,
	}))
}

func TestOneLinePerRequestCounts(t *testing.T) {
	tests := map[string]struct {
		line   string
		counts bool
	}{
		"received":              {`{"stage":"RequestReceived","verb":"get","requestURI":"/a"}`, false},
		"complete":              {`{"stage":"ResponseComplete","verb":"get","requestURI":"/a"}`, true},
		"panic":                 {`{"stage":"Panic","verb":"update","requestURI":"/a"}`, true},
		"watch begins":          {`{"stage":"ResponseStarted","verb":"watch","requestURI":"/a"}`, true},
		"watch ends":            {`{"stage":"ResponseComplete","verb":"watch","requestURI":"/a"}`, false},
		"watch panics":          {`{"stage":"Panic","verb":"watch","requestURI":"/a"}`, false},
		"log ends":              {`{"stage":"ResponseComplete","verb":"get","requestURI":"/a","objectRef":{"subresource":"log"}}`, false},
		"status complete":       {`{"stage":"ResponseComplete","verb":"get","requestURI":"/a","objectRef":{"subresource":"status"}}`, true},
		"refused, without user": {`{"stage":"ResponseStarted","verb":"get","requestURI":"/a","responseStatus":{"code":401}}`, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			_, counts, err := parseAuditLine([]byte(test.line))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(counts).To(Equal(test.counts))
		})
	}
}

func TestReadRequestsLeavesOutAPartialLastLine(t *testing.T) {
	g := NewWithT(t)
	requests, _, err := readRequests(bufio.NewReader(strings.NewReader(patchLine+patchLine[:40])), nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(requests).To(HaveLen(1))
}

func TestReadRequestsTakesLinesOfSeveralMiB(t *testing.T) {
	g := NewWithT(t)
	long := strings.Replace(patchLine, "manager/v1", "manager/"+strings.Repeat("x", 5<<20), 1)
	requests, _, err := readRequests(bufio.NewReader(strings.NewReader(long+patchLine)), nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(requests).To(HaveLen(2))
	g.Expect(len(requests[0].UserAgent)).To(BeNumerically(">", 5<<20))
}

func TestReadRequestsNamesAnUnreadableLine(t *testing.T) {
	g := NewWithT(t)
	_, _, err := readRequests(bufio.NewReader(strings.NewReader(patchLine+"{broken\n")), nil)
	g.Expect(err).To(MatchError(ContainSubstring("{broken")))
}

func TestRequestsSinceAMark(t *testing.T) {
	lines := patchLine + patchLine + patchLine
	tests := map[string]struct {
		mark Mark
		want int
	}{
		"beginning":         {0, 3},
		"inside a line":     {1, 2},
		"at a line's end":   {Mark(len(patchLine)), 2},
		"at the file's end": {Mark(len(lines)), 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			requests, err := clusterWithLog(t, lines).Requests(test.mark)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(requests).To(HaveLen(test.want))
		})
	}
}

func TestNextReturnsEachRequestOnce(t *testing.T) {
	g := NewWithT(t)
	c := clusterWithLog(t, patchLine+patchLine[:40])
	first, mark, err := c.Next(1) // inside the first line
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(first).To(BeEmpty())
	g.Expect(mark).To(BeEquivalentTo(len(patchLine)))
	g.Expect(os.WriteFile(c.auditLog, []byte(patchLine+patchLine+patchLine), 0o600)).To(Succeed())
	rest, mark, err := c.Next(mark)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(rest).To(HaveLen(2))
	none, _, err := c.Next(mark)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(none).To(BeEmpty())
}

func clusterWithLog(t *testing.T, text string) *Cluster {
	path := filepath.Join(t.TempDir(), "audit.log")
	NewWithT(t).Expect(os.WriteFile(path, []byte(text), 0o600)).To(Succeed())
	return &Cluster{auditLog: path}
}

func TestFilters(t *testing.T) {
	g := NewWithT(t)
	update := Request{Verb: "update", Resource: "pods", User: "alice", UserAgent: "tool/v1 (linux)"}
	g.Expect(kept(update, []Filter{Writes, NotLeases, ByUser("alice"), ByUserAgent("tool/")})).To(BeTrue())
	g.Expect(kept(update, []Filter{Writes, ByUser("ali")})).To(BeFalse())
	g.Expect(kept(update, []Filter{ByUserAgent("too/")})).To(BeFalse())
	g.Expect(Writes(Request{Verb: "list", Resource: "pods"})).To(BeFalse())
	g.Expect(Writes(Request{Verb: "create", Resource: "serviceaccounts", Subresource: "token"})).To(BeFalse())
	g.Expect(Writes(Request{Verb: "create", Group: "authorization.k8s.io", Resource: "subjectaccessreviews"})).To(BeFalse())
	g.Expect(NotLeases(Request{Verb: "update", Group: "coordination.k8s.io", Resource: "leases"})).To(BeFalse())
}

func TestTrimPartialLine(t *testing.T) {
	tests := map[string]struct{ before, after string }{
		"whole lines":          {"a\nb\n", "a\nb\n"},
		"partial last line":    {"a\nb\npart", "a\nb\n"},
		"only a partial line":  {"part", ""},
		"empty":                {"", ""},
		"partial beyond 64 Ki": {"a\n" + strings.Repeat("x", 200<<10), "a\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c := clusterWithLog(t, test.before)
			g.Expect(trimPartialLine(c.auditLog)).To(Succeed())
			g.Expect(os.ReadFile(c.auditLog)).To(BeEquivalentTo(test.after))
		})
	}
	NewWithT(t).Expect(trimPartialLine(filepath.Join(t.TempDir(), "absent"))).To(Succeed())
}

func TestSummary(t *testing.T) {
	g := NewWithT(t)
	status := Request{Verb: "patch", Group: "quell.dev", Resource: "apps", Subresource: "status", UserAgent: "manager", User: "sa"}
	probe := Request{Verb: "get", Path: "/readyz", UserAgent: "probe", User: "admin"}
	lines := strings.Split(Summary([]Request{probe, status, status}), "\n")
	g.Expect(strings.Fields(lines[1])).To(Equal([]string{"2", "patch", "apps/status.quell.dev", "manager", "sa"}))
	g.Expect(strings.Fields(lines[2])).To(Equal([]string{"1", "get", "/readyz", "probe", "admin"}))
}
