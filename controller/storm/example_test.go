package storm_test

import (
	"fmt"
	"time"

	"github.com/hduolab/quell/controller/storm"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func ExampleDetector() {
	detector := storm.New(storm.Options{})
	widgets := schema.GroupResource{Group: "apps.example.com", Resource: "widgets"}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	fields := &metav1.FieldsV1{}
	fields.SetRawString(`{"f:status":{"f:lastUpdateTime":{}}}`)
	for i := range 50 {
		now = now.Add(100 * time.Millisecond)
		when := metav1.NewTime(now.Truncate(time.Second))
		detector.Observe(storm.Change{
			Key: storm.Key{GroupResource: widgets, Namespace: "team-a", Name: "w1"}, Time: now, ResourceVersion: fmt.Sprint(i),
			ManagedFields: []metav1.ManagedFieldsEntry{{
				Manager: "widget-operator", Operation: "Apply", Subresource: "status", APIVersion: "apps.example.com/v1", FieldsV1: fields, Time: &when,
			}},
			Object: map[string]any{"status": map[string]any{"lastUpdateTime": now.Format(time.RFC3339Nano)}},
		})
	}
	f := detector.Report(now).Findings[0]
	fmt.Printf("%s: %.0f writes/s by %s: %s, %s\n", f.Object, f.Rate, f.Writers[0].Owner, f.Verdict, f.Evidence[0])
	fmt.Println(f.Remedy)
	// Output:
	// widgets.apps.example.com/team-a/w1: 10 writes/s by "widget-operator" (Apply, status): TimestampChurn, 100 % of the writes change only .status.lastUpdateTime
	// renew a time only when what it dates has changed
}

func ExampleSketch() {
	sketch := storm.NewSketch[string, struct{}](2, 0, nil)
	for _, word := range []string{"a", "b", "a", "c", "a"} {
		sketch.Add(word, time.Time{})
	}
	for _, top := range sketch.Top(1) {
		fmt.Println(top.Key, top.Weight, top.Error, sketch.Bound())
	}
	// Output: a 3 0 2.5
}
