package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/hduolab/quell/test/storms"
	. "github.com/onsi/gomega"
)

func TestListNamesEachStorm(t *testing.T) {
	g := NewWithT(t)
	root := newRoot()
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetArgs([]string{"list"})
	g.Expect(root.Execute()).To(Succeed())
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	g.Expect(lines).To(HaveLen(1 + len(storms.All())))
	for i, s := range storms.All() {
		g.Expect(lines[i+1]).To(And(HavePrefix(s.Name+" "), ContainSubstring(string(s.Found.Verdict))))
	}
}

func TestWrongUse(t *testing.T) {
	for text, args := range map[string][]string{
		"unknown command":      {"no-such-storm"},
		"unknown flag":         {"counter", "--nope"},
		"must not be negative": {"counter", "--rate=-1"},
		"find a cluster":       {"counter", "--kubeconfig=no-such-file"},
	} {
		root := newRoot()
		root.SetArgs(args)
		NewWithT(t).Expect(root.Execute()).To(MatchError(ContainSubstring(text)))
	}
}
