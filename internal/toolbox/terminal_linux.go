package toolbox

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/lib/reaper"
	"github.com/llmdo/workshop/internal/toolbox/protocol"
	"github.com/llmdo/workshop/internal/toolbox/wire"
)

// defaultTerm is what a terminal is where the client doesn't say; Docker's too.
const defaultTerm = "xterm"

// lastOutput bounds what is read of a terminal whose program has ended while
// something in the background goes on printing. The kernel keeps no more than
// that for a pty: 21 kB were seen. They are 8 KiB of buffers (drivers/tty/pty.c),
// which have room for twice their size (tty_buffer.c), and 4 KiB of the line discipline.
const lastOutput = 64 << 10

// terminal is a pty of the worker. Nobody else gets this process' side of it:
// it is closed on exec, and the descriptors of this process are its own
// (PR_SET_DUMPABLE).
type terminal struct {
	master *os.File
	// peer is the program's side. It is held until the program has ended, or one
	// that closes its streams for a while would be at its end for the master.
	peer *os.File
	done chan struct{} // what was printed is through
	// tells: the kernel doesn't tell the foreground's processes of a new size.
	tells bool
}

// newTerminal makes a pty. The program's side is opened by the master, not by a name,
// where the kernel can.
func newTerminal(size protocol.TTY) (*terminal, error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	t := &terminal{master: os.NewFile(uintptr(fd), "ptmx"), done: make(chan struct{})}
	if err := t.setUp(fd, size); err != nil {
		t.master.Close()
		return nil, err
	}
	return t, nil
}

func (t *terminal) setUp(fd int, size protocol.TTY) error {
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return err
	}
	if err := setSize(fd, size); err != nil {
		return err
	}
	// Erasing takes away a character, not one byte of it.
	if mode, err := unix.IoctlGetTermios(fd, unix.TCGETS); err == nil {
		mode.Iflag |= unix.IUTF8
		_ = unix.IoctlSetTermios(fd, unix.TCSETS, mode)
	}
	peer, err := peerOf(fd)
	if err == unix.ENOTTY { // gVisor
		peer, err = peerByName(fd)
		t.tells = true
	}
	if err != nil {
		return err
	}
	t.peer = os.NewFile(uintptr(peer), "tty")
	return nil
}

// peerOf opens the program's side of a master: TIOCGPTPEER, ioctl_tty(2).
var peerOf = func(master int) (int, error) {
	fd, _, no := unix.Syscall(unix.SYS_IOCTL, uintptr(master), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if no != 0 {
		return -1, no
	}
	return int(fd), nil
}

// ptys is the major number of program's sides (UNIX98_PTY_SLAVE_MAJOR).
const ptys = 136

// peerByName is [peerOf] by the name of pts(4), checked by its device number.
func peerByName(master int) (int, error) {
	n, err := unix.IoctlGetInt(master, unix.TIOCGPTN)
	if err != nil {
		return -1, err
	}
	fd, err := unix.Open("/dev/pts/"+strconv.Itoa(n), unix.O_RDWR|unix.O_NOCTTY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil && (st.Mode&unix.S_IFMT != unix.S_IFCHR || st.Rdev != unix.Mkdev(ptys, uint32(n))) {
		err = unix.ENOTTY
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func setSize(fd int, size protocol.TTY) error {
	return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: size.Rows, Col: size.Cols})
}

// onTerminal runs a program on a terminal of its own until it has ended, and
// what it printed is through. Then the terminal is closed: what is still on it
// is hung up. With a context that ends the same happens at once, and what the
// program started is ended.
func (s *session) onTerminal(ctx context.Context, c *wire.Incoming, p program, size protocol.TTY, stdin bool) (unix.WaitStatus, error) {
	t, err := newTerminal(size)
	if err != nil {
		return 0, &wire.Error{Code: wire.CodeToolFailed, Message: "no terminal can be made in the worker: " + errorText(err)}
	}
	defer t.close()
	p.stdin, p.stdout, p.stderr, p.terminal = t.peer, t.peer, t.peer, true
	if isTerm := func(v string) bool { return strings.HasPrefix(v, "TERM=") }; !slices.ContainsFunc(p.env, isTerm) && !slices.ContainsFunc(s.env, isTerm) {
		p.env = append(slices.Clip(p.env), "TERM="+defaultTerm)
	}
	cmd, err := s.start(p)
	if err != nil {
		return 0, err
	}
	go t.carry(writeTo(c.Stream(wire.Stdout)))
	if stdin {
		go t.typing(c.Stream(wire.Stdin))
	}
	stop := make(chan struct{})
	defer close(stop)
	go takeNotes(c.Notified(), stop, func(n wire.Notification) {
		if size, ok := sizeOf(n); ok {
			t.resize(size, cmd.Pid)
			return
		}
		cmd.passSignal(n)
	})

	select {
	case <-cmd.Done():
		t.peer.Close()
		_ = t.master.SetReadDeadline(time.Unix(1, 0)) // wakes carry
		// A client that doesn't read what is left can still cancel.
		select {
		case <-t.done:
			return cmd.Wait(), nil
		case <-ctx.Done():
		}
	case <-ctx.Done():
	}
	t.close()
	select { // who is told by SIGHUP needs no SIGTERM, which says less
	case <-cmd.Done():
	case <-time.After(grace):
	}
	cmd.end()
	return 0, ctx.Err()
}

// close hangs up: the kernel sends SIGHUP to the session's leader and the
// foreground's processes (tty_ioctl(4) has it of TIOCNOTTY; a pty does so when its
// master is closed).
func (t *terminal) close() {
	t.peer.Close()
	t.master.Close()
}

// carry reads what is printed until nobody has the terminal any more. When the
// program has ended, what is left, and a little longer.
func (t *terminal) carry(to func([]byte) error) {
	defer close(t.done)
	buf := buffers.Get().(*[32 << 10]byte)
	defer buffers.Put(buf)
	part := buf[:]
	left := -1 // how much more is taken; no bound before the program's end
	for {
		n, err := t.master.Read(part)
		if n > 0 && to(part[:n]) != nil {
			return // who reads it is gone
		}
		switch {
		case err == nil && left < 0:
			continue
		case err == nil && left > n:
			left -= n
		case errors.Is(err, os.ErrDeadlineExceeded) && left < 0: // woken at the end
			left = lastOutput
		default: // EIO is the end
			return
		}
		part = buf[:min(left, len(buf))]
		_ = t.master.SetReadDeadline(time.Now().Add(linger))
	}
}

// typing carries what is typed. The end of it is an end of file for a program
// that reads lines, as Ctrl-D is; one that reads keys isn't told.
func (t *terminal) typing(from io.Reader) {
	buf := make([]byte, 4<<10)
	inLine := false
	for {
		n, err := from.Read(buf)
		if n > 0 {
			inLine = buf[n-1] != '\n' && buf[n-1] != '\r'
			if _, err := t.master.Write(buf[:n]); err != nil {
				return
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return
		}
	}
	t.control(func(fd int) {
		mode, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		if err != nil || mode.Lflag&unix.ICANON == 0 {
			return
		}
		end := []byte{mode.Cc[unix.VEOF]}
		if inLine { // the first one only ends the line
			end = append(end, end[0])
		}
		_, _ = unix.Write(fd, end)
	})
}

func (t *terminal) control(f func(fd int)) {
	if raw, err := t.master.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { f(int(fd)) })
	}
}

// resize sets the size, of which the foreground's processes are told (SIGWINCH): by the
// kernel, or all in the program's session are. Who doesn't wait for it isn't ended by it.
func (t *terminal) resize(size protocol.TTY, program int) {
	t.control(func(fd int) { _ = setSize(fd, size) })
	if !t.tells {
		return
	}
	list, err := reaper.Scan()
	if err != nil {
		return
	}
	for _, i := range list {
		if i.Session == program {
			i.Signal(unix.SIGWINCH)
		}
	}
}

func sizeOf(n wire.Notification) (size protocol.TTY, ok bool) {
	if n.Method != "$/resize" {
		return size, false
	}
	return size, json.Unmarshal(n.Params, &size) == nil
}
