package localcluster

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
)

func TestVersionsAreThoseOfTheNestedModules(t *testing.T) {
	tests := map[string]string{
		"k8s.io/kubernetes v" + KubernetesVersion:   "binaries/kubernetes/go.mod",
		"go.etcd.io/etcd/server/v3 v" + EtcdVersion: "binaries/kubernetes/go.mod",
		"sigs.k8s.io/kwok v" + KwokVersion:          "binaries/kwok/go.mod",
	}
	for requirement, file := range tests {
		g := NewWithT(t)
		text, err := os.ReadFile(file)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(text)).To(MatchRegexp(`\s%s( // indirect)?\n`, requirement))
	}
}

func TestCacheKeyNamesAllVersions(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dir, err := binariesDir()
	g.Expect(err).NotTo(HaveOccurred())
	for _, version := range []string{KubernetesVersion, EtcdVersion, KwokVersion} {
		g.Expect(filepath.Base(dir)).To(ContainSubstring(version))
	}
}

func testBuilder(dir string) *builder {
	return &builder{dir: dir, log: new(bytes.Buffer), moduleDir: func(context.Context, string) (string, error) { return "", nil }}
}

func writing(text string, builds *atomic.Int32) artifact {
	return artifact{name: "tool", build: func(_ context.Context, _, target string) error {
		builds.Add(1)
		return os.WriteFile(target, []byte(text), 0o755)
	}}
}

func TestEnsureBuildsOnceAndSaysSo(t *testing.T) {
	g := NewWithT(t)
	var builds atomic.Int32
	b := testBuilder(filepath.Join(t.TempDir(), "cache"))
	for range 3 {
		g.Expect(b.ensure(t.Context(), []artifact{writing("content", &builds)})).To(Succeed())
	}
	g.Expect(builds.Load()).To(BeEquivalentTo(1))
	g.Expect(os.ReadFile(filepath.Join(b.dir, "tool"))).To(BeEquivalentTo("content"))
	g.Expect(b.log).To(HaveField("String()", MatchRegexp(`building tool \(1/1\)\n.*built tool \(1/1\) in `)))
}

func TestEnsureNeverUsesAHalfBuiltFile(t *testing.T) {
	g := NewWithT(t)
	b := testBuilder(t.TempDir())
	broken := artifact{name: "tool", build: func(_ context.Context, _, target string) error {
		return errors.Join(os.WriteFile(target, []byte("half"), 0o755), errors.New("disk full"))
	}}
	g.Expect(b.ensure(t.Context(), []artifact{broken})).To(MatchError(ContainSubstring("build tool: disk full")))
	g.Expect(filepath.Join(b.dir, "tool")).NotTo(BeAnExistingFile())

	var builds atomic.Int32
	g.Expect(b.ensure(t.Context(), []artifact{writing("whole", &builds)})).To(Succeed())
	g.Expect(os.ReadFile(filepath.Join(b.dir, "tool"))).To(BeEquivalentTo("whole"))
	g.Expect(filepath.Glob(filepath.Join(b.dir, buildingPrefix+"*"))).To(BeEmpty())
}

func TestEnsureBuildsOneAtATime(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	var builds atomic.Int32
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			g.Expect(testBuilder(dir).ensure(t.Context(), []artifact{writing("content", &builds)})).To(Succeed())
		})
	}
	group.Wait()
	g.Expect(builds.Load()).To(BeEquivalentTo(1))
}

func TestEnsureGivesUpWaitingWithItsContext(t *testing.T) {
	g := NewWithT(t)
	b := testBuilder(t.TempDir())
	lock, err := b.lock(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	defer lock.release()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	g.Expect(b.ensure(ctx, []artifact{writing("", new(atomic.Int32))})).To(MatchError(context.Canceled))
}

func TestBuildingOutsideACheckoutSaysWhatToDo(t *testing.T) {
	g := NewWithT(t)
	t.Chdir(t.TempDir())
	_, err := nestedModule(t.Context(), "kwok")
	g.Expect(err).To(MatchError(ContainSubstring("go run ./test/localcluster/cmd/localcluster build")))
}

func TestAssetsReplaceEtcdAndTheAPIServer(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	t.Setenv("KUBEBUILDER_ASSETS", dir)
	g.Expect(os.WriteFile(filepath.Join(dir, "etcd"), nil, 0o755)).To(Succeed())
	_, err := assets()
	g.Expect(err).To(MatchError(ContainSubstring("KUBEBUILDER_ASSETS is set, so it must hold kube-apiserver")))

	g.Expect(os.WriteFile(filepath.Join(dir, "kube-apiserver"), nil, 0o644)).To(Succeed())
	_, err = assets()
	g.Expect(err).To(MatchError(ContainSubstring("is not an executable file")))

	g.Expect(os.Chmod(filepath.Join(dir, "kube-apiserver"), 0o755)).To(Succeed())
	g.Expect(assets()).To(Equal(map[string]string{
		"etcd":           filepath.Join(dir, "etcd"),
		"kube-apiserver": filepath.Join(dir, "kube-apiserver"),
	}))

	g.Expect(os.WriteFile(filepath.Join(dir, "kubectl"), nil, 0o755)).To(Succeed())
	g.Expect(assets()).To(HaveKeyWithValue("kubectl", filepath.Join(dir, "kubectl")))
}

func TestControlPlaneNeedsNoControllers(t *testing.T) {
	g := NewWithT(t)
	controlPlane := Options{ControlPlaneOnly: true}.components()
	for name, needed := range map[string]bool{"etcd": true, "kubectl": true, "kube-scheduler": false, "kwok": false, kwokStages: false} {
		g.Expect(neededBy(name, controlPlane)).To(Equal(needed), name)
	}
	g.Expect(neededBy(kwokStages, Options{}.components())).To(BeTrue())
}
