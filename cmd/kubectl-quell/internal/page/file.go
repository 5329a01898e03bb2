package page

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Usage of the flag that names the file.
const Usage = "file to write a page to that shows what was found, with plots, in any browser; an older one is replaced"

// Check tells whether a page can be written to a file, before the work of which it is to tell. It leaves nothing behind.
func Check(path string) error {
	target, err := resolve(path)
	if err != nil {
		return err
	}
	existing, err := os.OpenFile(target, os.O_WRONLY, 0)
	switch {
	case err == nil:
		existing.Close()
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("the report cannot be written: %w", err)
	}
	beside, err := temporary(target)
	if err != nil {
		return err
	}
	beside.Close()
	return os.Remove(beside.Name())
}

// Write makes the page in a file, which never has a part of it only: an older one stays until the new one is whole.
func (p Page) Write(path string) error {
	target, err := resolve(path)
	if err != nil {
		return err
	}
	content, err := p.HTML()
	if err != nil {
		return err
	}
	beside, err := temporary(target)
	if err != nil {
		return err
	}
	const mode = 0o644 // as an editor would save it; the page has what kubectl showed its maker
	_, err = beside.Write(content)
	if err = errors.Join(err, beside.Chmod(mode), beside.Close()); err == nil {
		err = os.Rename(beside.Name(), target)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write the report: %w", err), os.Remove(beside.Name()))
	}
	return nil
}

// resolve follows links, so that it is the file they lead to that is written.
func resolve(path string) (string, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return path, nil
	}
	if err != nil {
		return "", fmt.Errorf("the report cannot be written: %w", err)
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("the report cannot be written: %s is no regular file", path)
	}
	return filepath.EvalSymlinks(path)
}

// temporary makes a file in the folder of another, where it can be renamed to it.
func temporary(target string) (*os.File, error) {
	f, err := os.CreateTemp(filepath.Dir(target), "."+filepath.Base(target)+".*")
	var cause *fs.PathError // whose path is the temporary one, which says nothing to anybody
	if errors.As(err, &cause) {
		err = cause.Err
	}
	if err != nil {
		return nil, fmt.Errorf("the report cannot be written: %s: %w", target, err)
	}
	return f, nil
}
