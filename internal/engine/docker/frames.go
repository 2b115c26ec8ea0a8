package docker

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Streams of a frame (docs.docker.com, Engine API, ContainerAttach).
const (
	frameStdin  = 0 // written as stdout
	frameStdout = 1
	frameStderr = 2
	frameError  = 3 // the engine's own
)

// copyFrames writes the output of a container without a terminal, which the engine sends in
// frames of a stream and a size, to out and errOut. A frame is never held as a whole, as the
// client's demultiplexer (stdcopy) does: its size is what the engine says it is. The end
// within a frame is the end.
//
// With stamped, each frame begins with a time and a space. A long line is several frames, and
// so is one that podman's conmon read the beginning of; of those only the first has its time
// written.
func copyFrames(out, errOut io.Writer, from io.Reader, stamped bool) error {
	r := bufio.NewReaderSize(from, 32<<10)
	buf := make([]byte, 32<<10)
	var head [8]byte
	var within [frameError]bool // a line of the stream
	for {
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return ended(err)
		}
		to, left := out, int64(binary.BigEndian.Uint32(head[4:]))
		switch head[0] {
		case frameStdin, frameStdout:
		case frameStderr:
			to = errOut
		case frameError:
			text, err := io.ReadAll(io.LimitReader(r, min(left, maxLine)))
			return errors.Join(fmt.Errorf("the engine: %s", strings.TrimSpace(string(text))), err)
		default:
			return fmt.Errorf("the engine sends output of an unknown stream, %d", head[0])
		}
		for skip := stamped && within[head[0]]; skip && left > 0; left-- {
			b, err := r.ReadByte()
			if err != nil {
				return ended(err)
			}
			skip = b != ' '
		}
		for left > 0 {
			n, err := io.ReadFull(r, buf[:min(left, int64(len(buf)))])
			if _, failed := to.Write(buf[:n]); failed != nil {
				return failed
			}
			if err != nil {
				return ended(err)
			}
			within[head[0]] = buf[n-1] != '\n'
			left -= int64(n)
		}
	}
}

// ended is nil at the end of a stream.
func ended(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}
