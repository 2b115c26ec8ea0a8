package approval

import (
	"context"
	"io"
	"os"

	"golang.org/x/sys/windows"
)

// readLine reads bytes up to an end of a line. A console can't be waited for
// with an end: when ctx ends, the read stays, and takes the next line.
func readLine(ctx context.Context, f *os.File) (string, error) {
	type result struct {
		line string
		err  error
	}
	done := make(chan result, 1)
	go func() {
		var line []byte
		for {
			var b [1]byte
			n, err := f.Read(b[:])
			switch {
			case err != nil:
				done <- result{"", err}
				return
			case n == 0:
				done <- result{"", io.EOF}
				return
			case b[0] == '\n':
				done <- result{string(line), nil}
				return
			case len(line) < 256:
				line = append(line, b[0])
			}
		}
	}()
	select {
	case r := <-done:
		return r.line, r.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// flushInput throws away what was typed and isn't read.
func flushInput(f *os.File) error {
	return windows.FlushConsoleInputBuffer(windows.Handle(f.Fd()))
}
