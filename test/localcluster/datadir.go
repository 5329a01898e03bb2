package localcluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

const temporaryPrefix = "quell-localcluster-"

// dataDir is the folder of one cluster, locked against a second one.
type dataDir struct {
	dir       string
	temporary bool
	lock      *fileLock
}

// openDataDir takes the folder at path, or a temporary one when path is empty.
func openDataDir(ctx context.Context, path string) (*dataDir, error) {
	if path == "" {
		return temporaryDataDir(ctx)
	}
	dir, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	return lockDataDir(dir, false)
}

func lockDataDir(dir string, temporary bool) (*dataDir, error) {
	for _, folder := range []string{"", "pki", "logs", "etcd"} { // etcd insists on 0700
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o700); err != nil {
			return nil, fmt.Errorf("make the data directory: %w", err)
		}
	}
	lock, err := tryLock(filepath.Join(dir, "lock"), os.O_CREATE)
	if err != nil {
		return nil, err
	}
	if lock == nil {
		return nil, fmt.Errorf("another local cluster is running on the data directory %s", dir)
	}
	return &dataDir{dir, temporary, lock}, nil
}

// temporaryDataDir also removes the folders of clusters whose process was killed. One lock for all makes sure that
// nobody takes a folder that is not locked yet for one that is not locked any more.
func temporaryDataDir(ctx context.Context) (*dataDir, error) {
	cache, err := cacheDir()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return nil, fmt.Errorf("make the cache folder: %w", err)
	}
	lock, err := waitLock(ctx, filepath.Join(cache, "temporary.lock"))
	if err != nil {
		return nil, err
	}
	defer lock.release()
	if err := removeStale(os.TempDir()); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", temporaryPrefix)
	if err != nil {
		return nil, fmt.Errorf("make a temporary data directory: %w", err)
	}
	return lockDataDir(dir, true)
}

func removeStale(parent string) error {
	dirs, err := filepath.Glob(filepath.Join(parent, temporaryPrefix+"*"))
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		lock, err := tryLock(filepath.Join(dir, "lock"), 0)
		if err != nil || lock == nil {
			continue // another user's, about to go, or in use
		}
		err = os.RemoveAll(dir)
		lock.release()
		if err != nil {
			return fmt.Errorf("remove what a killed local cluster left: %w", err)
		}
	}
	return nil
}

// close drops temporary data and the lock.
func (d *dataDir) close() error {
	defer d.lock.release()
	if !d.temporary {
		return nil
	}
	if err := os.RemoveAll(d.dir); err != nil {
		return fmt.Errorf("remove the temporary data directory: %w", err)
	}
	return nil
}
