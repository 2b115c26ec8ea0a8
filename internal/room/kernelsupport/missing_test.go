//go:build linux

package kernelsupport

import (
	"errors"
	"os"
	"runtime"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/dev/testutil"
)

// apart runs f in a thread, and a network namespace, of its own.
func apart(t testing.TB, f func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // ends with the goroutine
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			f()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestMissing(t *testing.T) {
	apart(t, func() {
		if modules, err := Missing(Extensions()); len(modules) > 0 || err != nil {
			t.Errorf("this kernel lacks %v, %v", modules, err)
		}
		some := append(Extensions(), Extension{unix.NFPROTO_IPV4, "nosuch", 0, false}, Extension{unix.NFPROTO_IPV6, "nosuch", 0, false}, Extension{unix.NFPROTO_IPV6, "OTHER", 0, true})
		if modules, err := Missing(some); !slices.Equal(modules, []string{"xt_nosuch", "xt_OTHER"}) || err != nil {
			t.Errorf("missing %v, %v", modules, err)
		}
		if modules, err := Missing(some[len(some)-1:]); !slices.Equal(modules, []string{"xt_OTHER"}) || err != nil {
			t.Errorf("missing %v, %v", modules, err)
		}
	})
	apart(t, func() {
		if err := testutil.WithoutNetfilter(); err != nil {
			t.Error(err)
		}
		modules, err := Missing(Extensions())
		if !slices.Equal(modules, []string{"nfnetlink", "nf_tables", "nft_compat"}) || !errors.Is(err, ErrNobody) {
			t.Errorf("without netfilter: %v, %v", modules, err)
		}
	})
}

// Whoever may not ask isn't told that something is missing.
func TestMayNotAsk(t *testing.T) {
	apart(t, func() {
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var none [2]unix.CapUserData
		if err := unix.Capset(&header, &none[0]); err != nil {
			t.Error(err)
		}
		if modules, err := Missing(Extensions()); len(modules) > 0 || !errors.Is(err, unix.EPERM) {
			t.Errorf("%v, %v", modules, err)
		}
		if fds, err := PacketSockets(); len(fds) > 0 || !errors.Is(err, unix.EPERM) {
			t.Errorf("%v, %v", fds, err)
		}
	})
}

func TestAnswers(t *testing.T) {
	apart(t, func() {
		fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER)
		if err != nil {
			t.Error(err)
			return
		}
		defer unix.Close(fd)
		// A subsystem that nobody has: what is said where nft_compat is missing.
		if got, err := exchange(fd, [][]byte{message(99<<8, 1, 0, nil), message(tablesGetGen, 2, 0, nil)}); err != nil || !slices.Equal(got, []unix.Errno{unix.EINVAL, 0}) {
			t.Errorf("%v %v", got, err)
		}
		if modules, err := tables(fd); len(modules) > 0 || err != nil {
			t.Errorf("nf_tables: %v %v", modules, err)
		}
	})
}

func BenchmarkMissing(b *testing.B) {
	apart(b, func() {
		for b.Loop() {
			if modules, err := Missing(Extensions()); len(modules) > 0 || err != nil {
				b.Error(modules, err)
			}
		}
	})
}
