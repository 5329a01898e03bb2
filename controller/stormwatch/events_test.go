package stormwatch

import (
	"strings"
	"testing"
	"time"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/controller/storm"
	"k8s.io/client-go/tools/events"
)

// The answer to a write was lost: what it said is in place at the next look, and nobody was told.
func TestAStormIsToldWhenItsWriteWasNotAnswered(t *testing.T) {
	recorder := events.NewFakeRecorder(10)
	r := &Reconciler{Options: Options{Events: recorder}, told: &told{at: map[storm.Key]time.Time{}}}
	watch := &quellv1alpha1.StormWatch{}
	w := &running{memory: recall(watch, time.Now())}
	status := &quellv1alpha1.StormWatchStatus{Storms: []quellv1alpha1.Storm{{Resource: "configmaps", Namespace: "a", Name: "c", Verdict: "Fight"}}}
	watch.Status = *status.DeepCopy()
	for range 3 {
		r.tell(t.Context(), w, observed{watch: watch, now: time.Now()}, status)
	}
	if got := drain(recorder); len(got) != 2 || !strings.Contains(got[0]+got[1], "StormDetected") {
		t.Errorf("events of a storm are %q", got)
	}
	watch.Status = quellv1alpha1.StormWatchStatus{}
	for range 3 {
		r.tell(t.Context(), w, observed{watch: watch, now: time.Now()}, &watch.Status)
	}
	if got := drain(recorder); len(got) != 1 || !strings.Contains(got[0], "StormEnded") {
		t.Errorf("events of its end are %q", got)
	}
}

func drain(recorder *events.FakeRecorder) []string {
	var got []string
	for len(recorder.Events) > 0 {
		got = append(got, <-recorder.Events)
	}
	return got
}
