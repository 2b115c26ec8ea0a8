package dialin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// pollEvery is how often the directory is looked into where the kernel gives no
// watch: instances are counted for each user, so a worker can take them all from
// others of its uid. A session waits half of it; a look takes some microseconds.
const pollEvery = 50 * time.Millisecond

// exitEnded is PID 1's code after [End], that of SIGKILL.
const exitEnded = 128 + 9

// Server is PID 1's side.
type Server struct {
	dir    string
	start  func(conn int) (done <-chan struct{}, err error)
	there  bool          // the directory
	at     int           // it, open: PID 1 may have no descriptor left
	left   fileID        // an [End] of before
	events *os.File      // the watch; nil: polled
	wake   chan struct{} // look into the directory
	open   int           // sessions
	ended  chan struct{}
	met    map[string]bool // sockets that are in the directory and were dealt with
}

// New makes the door of a directory. start starts a session on a connection, whose
// descriptor is closed when it returns; done is closed at the end of the session.
func New(dir string, start func(conn int) (done <-chan struct{}, err error)) *Server {
	return &Server{dir: dir, start: start, wake: make(chan struct{}, 1), ended: make(chan struct{}), met: map[string]bool{}}
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it will look anyway
	}
}

// Open watches the directory; [Server.Serve] misses nothing that comes after it.
// Where the kernel gives no watch, the directory is polled. Without the directory
// there is no door, which is not an error: sessions come by the engine then.
func (d *Server) Open() (err error) {
	info, err := os.Stat(d.dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || err == nil && !info.IsDir() {
		return nil
	}
	if err == nil {
		err = unix.Access(d.dir, unix.R_OK|unix.X_OK)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", d.dir, err)
	}
	if d.at, err = unix.Open(d.dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
		return fmt.Errorf("%s: %w", d.dir, err)
	}
	d.left = d.end()
	d.there = true
	if fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK); err == nil {
		d.events = os.NewFile(uintptr(fd), "inotify")
		if _, err := unix.InotifyAddWatch(fd, d.dir, unix.IN_MOVED_TO|unix.IN_ONLYDIR); err != nil {
			d.events.Close()
			d.events = nil
		}
	}
	return nil
}

// Serve starts a session for each socket that the host offers, until the
// context ends.
func (d *Server) Serve(ctx context.Context) {
	if !d.there {
		return
	}
	defer unix.Close(d.at)
	var poll <-chan time.Time
	if d.events != nil {
		defer d.events.Close()
		go d.follow()
	} else {
		t := time.NewTicker(pollEvery)
		defer t.Stop()
		poll = t.C
	}
	poke(d.wake) // sockets that were there before
	for {
		select {
		case <-ctx.Done():
			return
		case <-poll:
			d.look()
		case <-d.ended:
			d.open--
			poke(d.wake)
		case <-d.wake:
			d.look()
		}
	}
}

// fileID tells one file from the next of its name; zero: there is none.
type fileID struct {
	inode uint64
	made  unix.Timespec
}

// end looks for [End], without a descriptor.
func (d *Server) end() fileID {
	var st unix.Stat_t
	if unix.Fstatat(d.at, End, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return fileID{}
	}
	return fileID{st.Ino, st.Ctim}
}

// follow wakes the door at each event; which name it was, the directory tells.
func (d *Server) follow() {
	buf := make([]byte, 4096)
	for {
		if _, err := d.events.Read(buf); err != nil {
			return
		}
		d.exit() // here too: the start of a session may be held up
		poke(d.wake)
	}
}

// exit ends PID 1 where the host says so.
func (d *Server) exit() {
	if is := d.end(); is != d.left && is != (fileID{}) {
		os.Exit(exitEnded)
	}
}

// look takes up the sockets that are new.
func (d *Server) look() {
	d.exit()
	dir, err := os.Open(d.dir)
	if err != nil {
		return
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return
	}
	met := map[string]bool{}
	for _, name := range names {
		if !strings.HasSuffix(name, Suffix) {
			continue
		}
		if d.met[name] {
			met[name] = true
			continue
		}
		if d.open >= MaxSessions {
			continue // the end of a session looks again
		}
		met[name] = true
		// What can't be taken up, the host notices by its absence, and goes
		// another way.
		if fd, err := connect(filepath.Join(d.dir, name)); err == nil {
			if done, err := d.start(fd); err == nil {
				d.open++
				go func() {
					<-done
					d.ended <- struct{}{}
				}()
			}
			_ = unix.Close(fd)
		}
	}
	d.met = met
}

// connect returns a connection to a process outside of this namespace.
func connect(path string) (fd int, err error) {
	fd, err = unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	if err = unix.Connect(fd, &unix.SockaddrUnix{Name: path}); err == nil {
		err = checkOutside(fd)
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// checkOutside wants a peer that has no number here (unix(7), SO_PEERCRED; who
// called listen(2)).
func checkOutside(fd int) error {
	peer, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return err
	}
	if peer.Pid != 0 {
		return fmt.Errorf("process %d of the worker listens where the host should", peer.Pid)
	}
	return nil
}
