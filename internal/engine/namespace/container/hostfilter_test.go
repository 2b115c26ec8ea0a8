package container

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
)

func init() {
	insides["families"] = func([]string) {
		for _, f := range []struct{ family, typ int }{
			{unix.AF_INET, unix.SOCK_STREAM}, {unix.AF_INET6, unix.SOCK_DGRAM | unix.SOCK_CLOEXEC}, {unix.AF_NETLINK, unix.SOCK_RAW},
			{unix.AF_UNIX, unix.SOCK_SEQPACKET | unix.SOCK_NONBLOCK},
			{unix.AF_UNIX, unix.SOCK_STREAM}, {unix.AF_UNIX, unix.SOCK_DGRAM | unix.SOCK_CLOEXEC}, {unix.AF_UNIX, unix.SOCK_RAW},
			{unix.AF_BLUETOOTH, unix.SOCK_RAW}, {unix.AF_CAN, unix.SOCK_RAW}, {unix.AF_VSOCK, unix.SOCK_STREAM},
		} {
			fd, err := unix.Socket(f.family, f.typ, 0)
			if err == nil {
				unix.Close(fd)
			}
			if f.family == unix.AF_UNIX {
				pair, e := unix.Socketpair(f.family, f.typ, 0)
				if e == nil {
					unix.Close(pair[0])
					unix.Close(pair[1])
				}
				if e != err {
					fmt.Print("pairs differ ")
				}
			}
			fmt.Println(f.family, f.typ&0xf, err == unix.EPERM)
		}
	}
}

// B6: the sockets of a guard. Those of a worker, by its own profile, are the
// control: it has unix sockets of every type.
func TestHostFilter(t *testing.T) {
	const usual = "2 1 false\n10 2 false\n16 3 false\n1 5 false\n"
	eachMode(t, func(t *testing.T, mode string) {
		c := container(mode, "families")
		got := run(t, mode, job{Spec: c})
		if !strings.HasPrefix(got.Out, usual+"1 1 false\n1 2 false\n1 3 false\n") || got.Err != "" {
			t.Errorf("a worker: %+v", got)
		}
		c.Network.Mode = spec.NetHost
		got = run(t, mode, job{Spec: c})
		if want := usual + "1 1 true\n1 2 true\n1 3 true\n31 3 true\n29 3 true\n40 1 true\n"; got.Out != want || got.Err != "" {
			t.Errorf("a guard: %+v; want %q", got, want)
		}
	})
}
