package localcluster

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

func TestOneClusterPerDataDirectory(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "data")
	first, err := openDataDir(t.Context(), path)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = openDataDir(t.Context(), path)
	g.Expect(err).To(MatchError(ContainSubstring("another local cluster is running on the data directory")))

	g.Expect(first.close()).To(Succeed())
	again, err := openDataDir(t.Context(), path)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again.close()).To(Succeed())
	g.Expect(path).To(BeADirectory())
}

func TestTemporaryDataIsDropped(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("TMPDIR", t.TempDir())
	dir, err := openDataDir(t.Context(), "")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(dir.dir).To(BeADirectory())
	g.Expect(dir.close()).To(Succeed())
	g.Expect(dir.dir).NotTo(BeAnExistingFile())
}

func TestDataOfKilledClustersIsRemovedByTheNextOne(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("TMPDIR", t.TempDir())
	running, err := openDataDir(t.Context(), "")
	g.Expect(err).NotTo(HaveOccurred())
	killed, err := openDataDir(t.Context(), "")
	g.Expect(err).NotTo(HaveOccurred())
	killed.lock.release() // as the kernel does

	g.Expect(removeStale(os.TempDir())).To(Succeed())
	g.Expect(killed.dir).NotTo(BeAnExistingFile())
	g.Expect(running.dir).To(BeADirectory())
	g.Expect(running.close()).To(Succeed())
}

func TestWaitLockEndsWithItsContext(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "lock")
	held, err := waitLock(t.Context(), path)
	g.Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = waitLock(ctx, path)
	g.Expect(err).To(MatchError(context.Canceled))
	held.release()
	free, err := waitLock(t.Context(), path)
	g.Expect(err).NotTo(HaveOccurred())
	free.release()
}
