//go:build linux

package container

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
)

func init() {
	// What a room's program is told and given.
	insides["given"] = func(a []string) {
		fmt.Println(strings.Join(a, " "))
		for fd := 3; fd < 1024; fd++ {
			if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil {
				family, _ := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
				ns, _ := unix.IoctlRetInt(fd, 0x894C) // SIOCGSKNS
				link := func(p string) string { s, _ := os.Readlink(p); return s }
				fmt.Println(fd, family == unix.AF_PACKET, link("/proc/self/fd/"+strconv.Itoa(ns)) == link("/proc/self/ns/net"))
				unix.Close(ns)
			}
		}
	}
}

// TestWithoutNetfilter: a room that may do without gets packet sockets of its own
// namespace where netfilter is missing, and nothing at all where it is there.
func TestWithoutNetfilter(t *testing.T) {
	eachMode(t, func(t *testing.T, mode string) {
		room := func() *spec.Container {
			c := container(mode, "given")
			c.Role, c.Network = spec.Room, spec.Network{Mode: spec.NetRoom, AnyIP: true}
			c.Capabilities = []string{"CAP_NET_ADMIN"} // for SIOCGSKNS
			return c
		}
		if r := run(t, mode, job{Spec: room()}); r.Err != "" || strings.TrimSpace(r.Out) != "" {
			t.Errorf("with netfilter: %q %s", r.Out, r.Err)
		}
		never := room()
		never.Network.AnyIP = false
		if r := run(t, mode, job{Spec: never, NoNetfilter: true}); r.Err != "" || strings.TrimSpace(r.Out) != "" {
			t.Errorf("one that may not: %q %s", r.Out, r.Err)
		}
		r := run(t, mode, job{Spec: room(), NoNetfilter: true})
		got := lines(r.Out)
		if r.Err != "" || len(got) != 5 {
			t.Fatalf("without netfilter: %q %s", r.Out, r.Err)
		}
		list, ok := strings.CutPrefix(got[0], "--fallback anyip --packet-fds ")
		var want []string
		for fd := range strings.SplitSeq(list, ",") {
			want = append(want, fd+" true true")
		}
		slices.SortFunc(want, func(a, b string) int { return slices.Index(got, a) - slices.Index(got, b) })
		if !ok || !slices.Equal(got[1:], want) {
			t.Errorf("without netfilter: %q", got)
		}
	})
}

func TestInsteadArgs(t *testing.T) {
	for want, n := range map[string]instead{
		"":                 {packets: nil},
		"--fallback anyip": {lacks: true},
		"--fallback anyip --packet-fds 7,8,10,11": {lacks: true, packets: []int{7, 8, 10, 11}},
	} {
		if got := strings.Join(n.args(), " "); got != want {
			t.Errorf("%+v: %q, want %q", n, got, want)
		}
	}
}
