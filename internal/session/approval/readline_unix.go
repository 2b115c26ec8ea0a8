//go:build unix

package approval

import (
	"context"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// pollMillis is how often a waiting read looks whether it is still wanted.
const pollMillis = 100

// readLine reads bytes up to an end of a line. It reads only when there is
// something to read, so that nobody's next input is taken when ctx ends.
func readLine(ctx context.Context, f *os.File) (string, error) {
	var line []byte
	fd := int(f.Fd())
	for {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, pollMillis)
		if n == 0 || errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return "", err
		}
		var b [1]byte
		switch n, err := unix.Read(fd, b[:]); {
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
		case errors.Is(err, unix.EIO): // the terminal is gone
			return "", io.EOF
		case err != nil:
			return "", err
		case n == 0:
			return "", io.EOF // a half line is no answer
		case b[0] == '\n' || b[0] == '\r':
			return string(line), nil
		case len(line) < 256:
			line = append(line, b[0])
		}
	}
}
