package v1alpha1_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

// kubectl apply without --server-side keeps a copy of what it applied, as compact JSON, in an annotation, and all annotations of
// an object together may have 256 KiB.
func TestCRDsCanBeAppliedByTheClient(t *testing.T) {
	const limit = 200 << 10
	g := NewWithT(t)
	files, err := filepath.Glob("../../../config/crd/*.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(files).NotTo(BeEmpty())
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			g := NewWithT(t)
			raw, err := os.ReadFile(file)
			g.Expect(err).NotTo(HaveOccurred())
			var crd any
			g.Expect(yaml.Unmarshal(raw, &crd)).To(Succeed())
			compact, err := json.Marshal(crd)
			g.Expect(err).NotTo(HaveOccurred())
			t.Logf("%d bytes of %d", len(compact), limit)
			g.Expect(len(compact)).To(BeNumerically("<", limit), "shorten descriptions, or use types that need less schema")
		})
	}
}
