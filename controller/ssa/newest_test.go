package ssa

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestNewestIsTheAnswerWhileTheCacheIsBehindIt(t *testing.T) {
	g := NewWithT(t)
	version := func(uid types.UID, v string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid, ResourceVersion: v}}
	}
	m, err := newMemory(2)
	g.Expect(err).NotTo(HaveOccurred())
	w := &StatusWriter{applier: &Applier{memory: m}}
	answer := version("a", "20")
	m.answers.Add("a", answer)
	g.Expect(w.Newest(version("a", "9"))).To(BeIdenticalTo(answer))
	for _, live := range []*corev1.Pod{version("a", "20"), version("a", "100"), version("b", "9"), version("a", "x"), version("", "9")} {
		g.Expect(w.Newest(live)).To(BeIdenticalTo(live))
	}
}
