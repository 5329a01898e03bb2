package main

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/hduolab/quell/test/localcluster"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
)

func TestParse(t *testing.T) {
	g := NewWithT(t)
	o, err := parse([]string{"--control-plane-only", "--data-dir", "d", "--audit-log=a", "--nodes=3", "build"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(o.buildOnly).To(BeTrue())
	g.Expect(o.cluster.ControlPlaneOnly).To(BeTrue())
	g.Expect(o.cluster.DataDir).To(Equal("d"))
	g.Expect(o.cluster.AuditLog).To(Equal("a"))
	g.Expect(o.cluster.Nodes).To(Equal(3))
}

func TestParseRefuses(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"another argument": {[]string{"start"}, `unexpected argument "start"`},
		"two arguments":    {[]string{"build", "now"}, `unexpected argument`},
		"no nodes":         {[]string{"--nodes=0"}, "use --control-plane-only"},
		"an unknown flag":  {[]string{"--nope"}, "not defined"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := parse(test.args)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(test.want)))
		})
	}
}

func TestHelpIsNoError(t *testing.T) {
	_, err := parse([]string{"--help"})
	NewWithT(t).Expect(errors.Is(err, flag.ErrHelp)).To(BeTrue())
}

func TestAKubeconfigOfTheUsersOwnIsNotReplaced(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "config")
	g.Expect(replaceable(path)).To(Succeed())
	g.Expect(localcluster.WriteKubeconfig(path, &rest.Config{Host: "https://127.0.0.1:1"})).To(Succeed())
	g.Expect(replaceable(path)).To(Succeed())
	g.Expect(os.WriteFile(path, []byte("apiVersion: v1\nkind: Config\ncurrent-context: mine\n"), 0o600)).To(Succeed())
	g.Expect(replaceable(path)).To(MatchError(ContainSubstring("name another")))
}
