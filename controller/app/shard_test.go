package app

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
)

func TestShardName(t *testing.T) {
	g := NewWithT(t)
	for _, name := range []string{"", "a", "eu-1", strings.Repeat("a", 63)} {
		g.Expect(Shard(name).Validate()).To(Succeed(), name)
	}
	for _, name := range []string{"A", "a_b", "a.b", "-a", " ", strings.Repeat("a", 64)} {
		g.Expect(Shard(name).Validate()).To(MatchError(ContainSubstring(name)), "%q", name)
	}
}

// TestShardsAreDisjoint wants every App with a label that a shard may have to be of exactly one shard, and its children with it.
func TestShardsAreDisjoint(t *testing.T) {
	g := NewWithT(t)
	shards := []Shard{"", "a", "b"}
	for _, name := range shards {
		app := &quellv1alpha1.App{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
		if name != "" {
			app.Labels = map[string]string{LabelShard: string(name)}
		}
		for _, s := range shards {
			g.Expect(s.has(app)).To(Equal(s == name), "App of %q, shard %q", name, s)
			g.Expect(s.children().Matches(labels.Set(objectLabels(app)))).To(Equal(s == name), "child of %q, shard %q", name, s)
		}
		g.Expect(podLabels(app)).NotTo(HaveKey(LabelShard), "a move would replace the Pods")
	}
}

func TestCommonLabelsMoveNoChildren(t *testing.T) {
	g := NewWithT(t)
	app := &quellv1alpha1.App{Spec: quellv1alpha1.AppSpec{CommonLabels: map[string]string{LabelShard: "b", "team": "x"}}}
	g.Expect(objectLabels(app)).NotTo(HaveKey(LabelShard))
	g.Expect(objectLabels(app)).To(HaveKeyWithValue("team", "x"))
	app.Labels = map[string]string{LabelShard: "a"}
	g.Expect(objectLabels(app)).To(HaveKeyWithValue(LabelShard, "a"))
}

// TestArrivals goes through what is looked for, and when, after an App came from another shard.
func TestArrivals(t *testing.T) {
	g := NewWithT(t)
	a, key, start := newArrivals(), types.NamespacedName{Name: "shop"}, time.Now()
	look := func(elsewhere bool, after time.Duration) (bool, time.Duration) {
		return a.search(key, elsewhere, start.Add(after))
	}

	do, again := look(false, 0)
	g.Expect([]any{do, again, len(a.at)}).To(Equal([]any{false, time.Duration(0), 0}), "at home")
	do, again = look(true, 0)
	g.Expect([]any{do, again}).To(Equal([]any{true, handover}), "on arrival")
	do, again = look(true, time.Second)
	g.Expect([]any{do, again}).To(Equal([]any{true, handover - time.Second}), "when the first try failed")
	do, again = look(false, 2*time.Second)
	g.Expect([]any{do, again}).To(Equal([]any{false, handover - 2*time.Second}), "once all is here")
	do, again = look(true, handover)
	g.Expect([]any{do, again}).To(Equal([]any{true, time.Duration(0)}), "what the other shard did late")
	do, again = look(true, time.Hour)
	g.Expect([]any{do, again}).To(Equal([]any{false, time.Duration(0)}), "a child that stays elsewhere is no reason to look for ever")
	look(false, time.Hour)
	g.Expect(a.at).To(BeEmpty())
}
