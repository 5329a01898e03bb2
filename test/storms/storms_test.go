package storms_test

import (
	"testing"

	"github.com/hduolab/quell/controller/fieldowners"
	"github.com/hduolab/quell/test/storms"
	. "github.com/onsi/gomega"
)

func TestEachStormCanBeTold(t *testing.T) {
	g := NewWithT(t)
	seen := map[string]bool{}
	for _, s := range storms.All() {
		for _, name := range append([]string{s.Name}, s.Found.Managers...) {
			g.Expect(seen[name]).To(BeFalse(), "%s is there twice", name)
			seen[name] = true
		}
		g.Expect(s.Found.Managers).NotTo(BeEmpty(), s.Name)
		g.Expect(s.Found.Verdict.Remedy()).NotTo(BeEmpty(), "%s has a verdict that is no storm", s.Name)
		g.Expect(s.Found.Resource.Empty()).To(BeFalse(), s.Name)
		g.Expect(s.Rate).To(BeNumerically(">", 0), s.Name)
		if s.Found.Field != "" {
			path, err := fieldowners.ParsePath(s.Found.Field)
			g.Expect(err).NotTo(HaveOccurred(), s.Name)
			g.Expect(fieldowners.FormatPath(path)).To(Equal(s.Found.Field))
		}
		found, err := storms.Find(s.Name)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(found.Mistake).To(Equal(s.Mistake))
	}
	_, err := storms.Find("calm")
	g.Expect(err).To(MatchError(ContainSubstring(`"calm"`)))
}
