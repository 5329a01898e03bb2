package auditlog_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/hduolab/quell/controller/storm/auditlog"
)

func ExampleAnalysis() {
	const event = `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","stage":"ResponseComplete","verb":"update",
"user":{"username":"op"},"userAgent":"op/v1","objectRef":{"apiGroup":"example.com","resource":"widgets","namespace":"n","name":"w"},
"responseStatus":{"code":409},"stageTimestamp":"2026-01-01T00:00:%02d.%d00000Z"}`
	var log strings.Builder
	for i := range 100 {
		log.WriteString(strings.ReplaceAll(fmt.Sprintf(event, i/10, i%10), "\n", "") + "\n")
	}
	analysis := auditlog.New(auditlog.Options{})
	if err := analysis.Read(context.Background(), "audit.log", strings.NewReader(log.String())); err != nil {
		fmt.Println(err)
		return
	}
	f := analysis.Report().Findings[0]
	fmt.Printf("%s: %s of %s by %s, %.0f/s: %s\n", f.Verdict, f.Key.Verb, f.Key.Object, f.Key.User, f.Peak, f.Evidence)
	// Output: RejectedRetries: update of widgets.example.com/n/w by op, 10/s: 100 times rejected with 409
}
