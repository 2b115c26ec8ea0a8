//go:build linux

package supervisor

import (
	"errors"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/api"
)

// The directory is named by its number while the socket is made: a collection
// at that moment must not close it.
func TestOpenKeepsTheDirectory(t *testing.T) {
	path := t.TempDir()
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
			}
		}
	}()
	for range 30000 {
		dir, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		l, err := open(dir)
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
	}
}

// B60: where programs of our uid have too many descriptors under way, a client
// is told so. The kernel counts them against the limit of open files, for whoever
// has no capability; those of this test are in a socket that nobody reads.
func TestTooManyUnderWay(t *testing.T) {
	runtime.LockOSThread() // and never unlocked: the thread ends, with its rights
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	pair := func() [2]*net.UnixConn {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
		var out [2]*net.UnixConn
		for i, fd := range fds {
			f := os.NewFile(uintptr(fd), "")
			c, err := net.FileConn(f)
			if err != nil {
				t.Fatal(err)
			}
			f.Close()
			t.Cleanup(func() { c.Close() })
			out[i] = c.(*net.UnixConn)
		}
		return out
	}
	full, client := pair(), pair()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	none := [2]unix.CapUserData{}
	if err := unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0]); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 128, Max: limit.Max}); err != nil {
		t.Fatal(err)
	}
	defer unix.Setrlimit(unix.RLIMIT_NOFILE, &limit) //nolint:errcheck
	for err = nil; err == nil; {
		_, _, err = full[0].WriteMsgUnix([]byte("x"), unix.UnixRights(int(null.Fd())), nil)
	}
	if !errors.Is(err, unix.ETOOMANYREFS) {
		t.Fatal(err)
	}
	if err := send(client[0], &api.Answer{}, null); err != nil {
		t.Error(err)
	}
	b := make([]byte, 4096)
	if n, err := client[1].Read(b); err != nil || !strings.Contains(string(b[:n]), "workshop down") {
		t.Errorf("%q, %v", b[:n], err)
	}
}
