package storm_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/hduolab/quell/controller/fieldowners"
	"github.com/hduolab/quell/controller/storm"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// act has a random manager write something random, and gives who it was.
func act(s *stream, r *rand.Rand) fieldowners.Owner {
	manager := fmt.Sprint("m", r.IntN(3))
	bodies := []string{
		fmt.Sprintf(`"spec": {"replicas": %d}`, r.IntN(4)),
		fmt.Sprintf(`"metadata": {"annotations": {"a": "%d", "b": "%d"}}`, r.IntN(3), r.IntN(3)),
		status(condition("True", fmt.Sprint(r.IntN(3)), start)),
		fmt.Sprintf(`"status": {"replicas": %d, "readyReplicas": %d}`, r.IntN(3), r.IntN(3)),
	}
	body := bodies[r.IntN(len(bodies))]
	owner := fieldowners.Owner{Manager: manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "apps/v1"}
	switch r.IntN(5) {
	case 0, 1:
		s.apply(manager, body)
	case 2:
		owner.Operation = metav1.ManagedFieldsOperationUpdate
		s.update(manager, `"status": null`)
	default:
		owner.Operation = metav1.ManagedFieldsOperationUpdate
		s.update(manager, body)
	}
	return owner
}

// What is told for certain of a writer is never the work of another, at any pace: it is left unknown at worst. Counts of the
// writes are exact.
func TestNobodyIsBlamedForAnothersWrite(t *testing.T) {
	known, all := 0, 0
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 3))
		s := newStream(t, storm.New(storm.Options{}), "web")
		s.metadata = seed%4 == 3
		pause := time.Duration(1+r.IntN(2500)) * time.Millisecond
		s.apply("base", base)
		s.apply("base", `"spec": {"replicas": 9}`)
		truth := map[fieldowners.Owner]int{{Manager: "base", Operation: metav1.ManagedFieldsOperationApply, APIVersion: "apps/v1"}: 2}
		for range 40 {
			s.now = s.now.Add(pause)
			version := s.version
			if owner := act(s, r); s.version > version {
				truth[owner]++
			}
		}
		f := find(t, s.detector.Report(s.now), "web")
		if int(f.Writes) != s.version {
			t.Errorf("%d writes, want %d", f.Writes, s.version)
		}
		for _, w := range f.Writers {
			all += w.Writes
			if w.Manager == "" {
				continue
			}
			known += w.Writes
			if certain := w.Writes - w.Likely; certain > truth[w.Owner] {
				t.Errorf("seed %d, pause %s: %s is said to have made %d writes, and made %d", seed, pause, w.Owner, certain, truth[w.Owner])
			}
		}
	}
	t.Logf("%d of %d writes are attributed", known, all)
	if known*10 < all*7 {
		t.Errorf("only %d of %d writes are attributed", known, all)
	}
}
