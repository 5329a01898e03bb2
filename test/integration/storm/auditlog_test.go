package storm_test

import (
	"bytes"
	"context"
	"io"
	"os"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/hduolab/quell/controller/storm"
	"github.com/hduolab/quell/controller/storm/auditlog"
	"github.com/hduolab/quell/test/localcluster"
)

// tail analyses the audit log while it is written.
type tail struct {
	analysis *auditlog.Analysis
	offset   int64
}

// newTail begins at a mark.
func newTail(since localcluster.Mark, thresholds storm.Options) *tail {
	GinkgoHelper()
	t := &tail{auditlog.New(auditlog.Options{Storm: thresholds}), int64(since)}
	if since > 0 { // which may be within a line
		t.offset--
		t.offset += int64(bytes.IndexByte(t.rest(0), '\n') + 1)
	}
	return t
}

// read goes on to the last whole line. No line may be broken.
func (t *tail) read(ctx context.Context) auditlog.Report {
	GinkgoHelper()
	return t.readTo(ctx, 0)
}

// readTo goes on to a mark.
func (t *tail) readTo(ctx context.Context, until localcluster.Mark) auditlog.Report {
	GinkgoHelper()
	raw := t.rest(until)
	t.offset += int64(len(raw))
	Expect(t.analysis.Read(ctx, cluster.AuditLog(), bytes.NewReader(raw))).To(Succeed())
	report := t.analysis.Report()
	Expect(report.Examples).To(BeEmpty())
	return report
}

// rest are the lines that were not read yet, up to a mark, or to the end with 0.
func (t *tail) rest(until localcluster.Mark) []byte {
	GinkgoHelper()
	file, err := os.Open(cluster.AuditLog())
	Expect(err).NotTo(HaveOccurred())
	defer file.Close()
	_, err = file.Seek(t.offset, io.SeekStart)
	Expect(err).NotTo(HaveOccurred())
	var source io.Reader = file
	if until > 0 {
		source = io.LimitReader(file, int64(until)-t.offset)
	}
	raw, err := io.ReadAll(source)
	Expect(err).NotTo(HaveOccurred())
	return raw[:bytes.LastIndexByte(raw, '\n')+1]
}
