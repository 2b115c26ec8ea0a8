package supervisor

import (
	"bytes"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/logfile"
)

// perSecond bounds the bytes of a stream's log per second; a short line costs many
// times its size. Writing counts against no limit of the container, so a program that
// prints without end is slowed here, without affecting others.
const perSecond = 16 << 20

// buffers are as large as a pipe; a stream has one only while it is read.
var buffers = sync.Pool{New: func() any { return new([32 << 10]byte) }}

// stream is one of a container's outputs.
type stream struct {
	name string
	hear func([]byte)
	log  *logfile.Writer
	pace *pace
	rest []byte // the beginning of a line
	cost int    // bytes of the log since the last pause
	lost bool   // the loss of entries has been reported
	say  func(error)
}

func stdoutOf(r *run) *stream { return &stream{name: logfile.Stdout, hear: r.heard.stdout} }
func stderrOf(r *run) *stream { return &stream{name: logfile.Stderr, hear: r.heard.stderr} }

// pipe makes an output stream of a container and returns the container's end.
func (s *Supervisor) pipe(sv *service, r *run, st *stream) (*os.File, error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, err
	}
	// Only our end is non-blocking: programs don't expect it of theirs.
	if err := unix.SetNonblock(fds[0], true); err != nil {
		unix.Close(fds[0])
		unix.Close(fds[1])
		return nil, err
	}
	ours := os.NewFile(uintptr(fds[0]), st.name)
	r.readers = append(r.readers, ours)
	st.log, st.pace = sv.log, &pace{}
	st.say = func(err error) { s.say("output of %s is being lost: %v", sv.c.Service, err) }
	r.output.Go(func() { st.read(ours) })
	return os.NewFile(uintptr(fds[1]), st.name), nil
}

// drain waits until the output was read to EOF, but not longer than within.
func (r *run) drain(within time.Duration) {
	for _, f := range r.readers {
		_ = f.SetReadDeadline(time.Now().Add(within))
	}
	r.output.Wait()
	for _, f := range r.readers {
		f.Close()
	}
	r.readers = nil
}

// read reads a stream until EOF.
func (st *stream) read(f *os.File) {
	raw, err := f.SyscallConn()
	if err != nil {
		return
	}
	for err == nil {
		var n int
		var buf *[32 << 10]byte
		// The buffer is taken when there is something to read: most containers
		// are silent most of the time.
		e := raw.Read(func(fd uintptr) bool {
			buf = buffers.Get().(*[32 << 10]byte)
			for {
				if n, err = unix.Read(int(fd), buf[:]); err != unix.EINTR {
					break
				}
			}
			if err == unix.EAGAIN {
				buffers.Put(buf)
				buf, err = nil, nil
				return false
			}
			return true
		})
		if buf != nil {
			if err == nil && n > 0 {
				st.take(buf[:n])
				st.flush()
				st.hear(buf[:n]) // after the log, so that the READY line is found there
			}
			buffers.Put(buf)
		}
		if e != nil || n <= 0 {
			break
		}
		time.Sleep(st.pace.spend(st.cost, time.Now()))
		st.cost = 0
	}
	if len(st.rest) > 0 {
		st.write(nil)
		st.flush()
	}
}

// take splits what was read into lines.
func (st *stream) take(p []byte) {
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n') + 1
		whole := end > 0
		if !whole {
			end = len(p)
		}
		if room := logfile.MaxText - len(st.rest); end >= room {
			end, whole = room, true
		}
		if whole {
			st.write(p[:end])
		} else {
			st.rest = append(st.rest, p[:end]...)
		}
		p = p[end:]
	}
}

// write writes one entry: the rest of the previous read, and p.
func (st *stream) write(p []byte) {
	if len(st.rest) > 0 {
		p = append(st.rest, p...)
		st.rest = nil
	}
	n, err := st.log.Write(time.Now(), st.name, p)
	st.cost += n
	st.failed(err)
}

func (st *stream) flush() {
	if st.failed(st.log.Flush()) {
		st.lost = false
	}
}

// failed reports the loss of entries, once until a write succeeds.
func (st *stream) failed(err error) (written bool) {
	if err != nil && !st.lost {
		st.say(err)
		st.lost = true
	}
	return err == nil
}

// pace bounds how much is read in a time.
type pace struct{ paid time.Time }

// burst is how much may be read at once, as a time at perSecond.
const burst = 250 * time.Millisecond

// spend returns how long to wait after n bytes.
func (p *pace) spend(n int, at time.Time) time.Duration {
	if earliest := at.Add(-burst); p.paid.Before(earliest) {
		p.paid = earliest
	}
	p.paid = p.paid.Add(time.Duration(n) * time.Second / perSecond)
	return max(0, p.paid.Sub(at))
}
