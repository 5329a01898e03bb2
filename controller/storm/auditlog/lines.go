package auditlog

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"
)

// bufferSize is what is read at a time.
const bufferSize = 1 << 20

// lines reads JSON lines and calls each with the number of the line, from 1 on. A line longer than the limit is given as nil. The
// bytes are valid during the call only. Empty lines are counted and left out.
func lines(ctx context.Context, r io.Reader, limit int, each func(number int, line []byte) error) error {
	plain, err := decompress(bufio.NewReaderSize(r, bufferSize))
	if err != nil {
		return err
	}
	var line []byte
	isLong := false
	for number := 1; ; {
		part, err := plain.ReadSlice('\n')
		if isLong = isLong || len(line)+len(part) > limit; isLong {
			line = line[:0]
		} else {
			line = append(line, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if failed := deliver(number, line, isLong, each); failed != nil {
			return failed
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("after line %d: %w", number-1, err)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		number, isLong, line = number+1, false, line[:0]
	}
}

// byteOrderMark is what some editors and shells write in front of UTF-8. It is no JSON.
const byteOrderMark = "\ufeff"

func deliver(number int, line []byte, isLong bool, each func(int, []byte) error) error {
	line = bytes.TrimSpace(bytes.TrimPrefix(line, []byte(byteOrderMark))) // of any line, as files are put together
	switch {
	case isLong:
		return each(number, nil)
	case len(line) > 0:
		return each(number, line)
	}
	return nil
}

// decompress recognises gzip by its first bytes, whatever the file is called.
func decompress(r *bufio.Reader) (*bufio.Reader, error) {
	magic, err := r.Peek(2)
	if err != nil || !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return r, nil // an empty file has no magic, and reading it tells what else is wrong
	}
	z, err := gzip.NewReader(r)
	if err != nil {
		return nil, fmt.Errorf("decompress: %w", err)
	}
	return bufio.NewReaderSize(z, bufferSize), nil
}

// Sort orders log files by the time of their first event, as rotation makes them; files without an event come first. It fails
// when a file cannot be opened.
func Sort(ctx context.Context, files []string) ([]string, error) {
	begin := map[string]time.Time{}
	for _, name := range files {
		first, err := firstTime(ctx, name)
		if err != nil {
			return nil, err
		}
		begin[name] = first
	}
	sorted := slices.Clone(files)
	slices.SortStableFunc(sorted, func(a, b string) int { return begin[a].Compare(begin[b]) })
	return sorted, nil
}

var errFound = errors.New("found")

// firstLines is how many broken lines at the beginning of a file do not hinder finding its first event.
const firstLines = 100

func firstTime(ctx context.Context, name string) (first time.Time, err error) {
	f, err := os.Open(name)
	if err != nil {
		return first, fmt.Errorf("open the audit log: %w", err)
	}
	defer f.Close()
	// What is broken here is told when the file is read for good.
	_ = lines(ctx, f, DefaultMaxLine, func(number int, line []byte) error {
		if e, err := parse(line); err == nil {
			first = e.when()
			return errFound
		}
		if number >= firstLines {
			return errFound
		}
		return nil
	})
	return first, nil
}
