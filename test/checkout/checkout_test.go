package checkout

import (
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

func TestFind(t *testing.T) {
	g := NewWithT(t)
	want, err := filepath.Abs("../..")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(Find(t.Context())).To(Equal(want))
	t.Chdir(t.TempDir())
	_, err = Find(t.Context())
	g.Expect(err).To(MatchError(ContainSubstring("in which this has to be run")))
	g.Expect(Build(t.Context(), "manager", "manager")).To(MatchError(err.Error()))
}

func TestBuildTellsWhatTheCompilerSays(t *testing.T) {
	g := NewWithT(t)
	g.Expect(Build(t.Context(), "nothing", filepath.Join(t.TempDir(), "nothing"))).To(MatchError(MatchRegexp(`build nothing: exit status 1\n(.|\n)*/cmd/nothing`)))
}
