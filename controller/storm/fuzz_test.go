package storm_test

import (
	"strings"
	"testing"
	"time"

	"github.com/hduolab/quell/controller/storm"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"
)

// FuzzDetector shows versions of any shape, one to a line, with their managedFields where they have some that can be read.
func FuzzDetector(f *testing.F) {
	f.Add(`{"metadata":{"managedFields":[{"manager":"m","operation":"Update","fieldsType":"FieldsV1","fieldsV1":{"f:status":{"f:at":{}}}}]},"status":{"at":"2026-01-01T00:00:00Z"}}
{"metadata":{"managedFields":[{"manager":"m","operation":"Update","fieldsType":"FieldsV1","fieldsV1":{"f:status":{"f:at":{}}}}]},"status":{"at":"2026-01-01T00:00:01Z"}}`)
	f.Add("{\"a\":[1,{\"b\":null}]}\n{\"a\":{\"b\":[]}}\nnull\n{\"metadata\":[]}")
	f.Add("{\"spec\":{\"l\":[{\"name\":\"a\"},{\"name\":\"a\"}]}}\n{\"spec\":{\"l\":[{\"name\":\"a\"}]}}")
	f.Add("{\"metadata\":{\"managedFields\":[{\"fieldsV1\":{\"k:{\":{}}},{\"manager\":\"m\",\"fieldsV1\":{\"i:0\":{}}}]},\"l\":[0]}\n{\"l\":[1]}")
	f.Fuzz(func(t *testing.T, versions string) {
		d := storm.New(storm.Options{MinSamples: 2, Window: 8, Hot: 2, Counters: 2})
		now, writes := start, int64(0)
		lines := strings.Split(versions, "\n")
		for round := range 3 {
			for i, line := range lines {
				change := storm.Change{Key: storm.Key{Name: "x"}, Time: now, UID: "1", Generation: int64(i)}
				if change.Object = decoded(line); change.Object != nil {
					change.ManagedFields = managedFieldsOf(line)
				}
				if round == 1 && i == 0 {
					change.Type = storm.Listed
				} else {
					writes++
				}
				d.Observe(change)
				now = now.Add(time.Second)
			}
		}
		r := d.Report(now)
		if r.Writes != writes {
			t.Errorf("%d writes of %d are counted", r.Writes, writes)
		}
		for _, finding := range r.Findings {
			if finding.Verdict == "" || len(finding.Evidence) == 0 || finding.Confidence < 0 || finding.Confidence > 1 {
				t.Errorf("%+v", finding)
			}
		}
	})
}

// decoded is nil for what is no object.
func decoded(line string) map[string]any {
	var object map[string]any
	if json.Unmarshal([]byte(line), &object) != nil {
		return nil
	}
	return object
}

func managedFieldsOf(line string) []metav1.ManagedFieldsEntry {
	var object metav1.PartialObjectMetadata
	if json.Unmarshal([]byte(line), &object) != nil {
		return nil
	}
	return object.ManagedFields
}
