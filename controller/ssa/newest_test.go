package ssa

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
)

func TestNewestIsTheAnswerWhileTheCacheIsBehindIt(t *testing.T) {
	g := NewWithT(t)
	version := func(uid types.UID, v string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid, ResourceVersion: v}}
	}
	m, err := newMemory(2)
	g.Expect(err).NotTo(HaveOccurred())
	clock := testclock.NewFakeClock(time.Now())
	w := &StatusWriter{applier: &Applier{opts: Options{Clock: clock}, memory: m}}
	newest := version("a", "20")
	m.answers.Add("a", answer{newest, clock.Now()})
	g.Expect(w.Newest(version("a", "9"))).To(BeIdenticalTo(newest))
	for _, live := range []*corev1.Pod{version("a", "20"), version("a", "100"), version("b", "9"), version("a", "x"), version("", "9")} {
		g.Expect(w.Newest(live)).To(BeIdenticalTo(live))
	}
	old := version("a", "9")
	clock.Step(trustAnswers)
	g.Expect(w.Newest(old)).To(BeIdenticalTo(newest))
	clock.Step(1)
	g.Expect(w.Newest(old)).To(BeIdenticalTo(old), "no cache is that late")
	clock.Step(-time.Hour)
	g.Expect(w.Newest(old)).To(BeIdenticalTo(old), "the clock was set back")
}
