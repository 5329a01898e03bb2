package localcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const lockEvery = 200 * time.Millisecond

// fileLock is an advisory lock that the kernel drops when its holder dies.
type fileLock struct{ file *os.File }

// waitLock takes the lock on path, which is created when absent, as soon as nobody else holds it.
func waitLock(ctx context.Context, path string) (*fileLock, error) {
	for {
		lock, err := tryLock(path, os.O_CREATE)
		if err != nil || lock != nil {
			return lock, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the lock %s: %w", path, ctx.Err())
		case <-time.After(lockEvery):
		}
	}
}

// tryLock opens path with these flags and locks it; nil without an error means that someone else holds the lock.
func tryLock(path string, flags int) (*fileLock, error) {
	file, err := os.OpenFile(path, flags|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock file: %w", err)
	}
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return &fileLock{file}, nil
	}
	file.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, nil
	}
	return nil, fmt.Errorf("lock %s: %w", path, err)
}

// release drops the lock; the file stays, because removing it would let two holders lock two files of one name.
func (l *fileLock) release() { l.file.Close() }
