//go:build linux

package room

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/room/handover"
)

// TestAnyIPSquatters is B22: what the guard listens on, a worker can't have, in
// whatever family; what a worker has first, the room refuses to open, and says
// who has it.
func TestAnyIPSquatters(t *testing.T) {
	r := anyIPRoom(t, nil)
	c := r.client()
	first := open(t, c, "9000")
	addrs := []string{"127.0.0.1", "::1", "::", outside["4"], outside["6"], "0.0.0.0"}
	for _, uid := range []int{1000, 0} {
		for _, addr := range addrs {
			for _, port := range []string{"53", "80", "443", "536", "22"} {
				r.expect(uid, "bind tcp "+addr+" "+port, "EACCES")
			}
			r.expect(uid, "bind udp "+addr+" 53", "EACCES")
			r.expect(uid, "bind tcp "+addr+" 9000", "EADDRINUSE")
			r.expect(uid, "bind tcp "+addr+" 9001", "ok")
		}
	}
	first[9000].Close()
	for _, addr := range addrs {
		fd := -1
		var err error
		r.inside(func() {
			if fd, err = bind(unix.SOCK_STREAM, addr, 9999, false); err == nil {
				err = unix.Listen(fd, 1)
			}
		})
		if err != nil {
			t.Fatalf("%s: no control: %v", addr, err)
		}
		ports, _ := firewall.ParsePorts("9000,9998-9999")
		got, err := c.Redirect(ports)
		for _, x := range got {
			x.File.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "port 9999 is taken by a program of a worker (uid 0, at ") || len(got) != 2 {
			t.Errorf("%s: %v, %d listeners", addr, err, len(got))
		}
		unix.Close(fd)
		if got := open(t, c, "9000,9999"); got[9999] == nil {
			t.Errorf("%s: the port isn't free again", addr)
		} else {
			got[9999].Close()
		}
		for _, f := range open(t, c, "9000") {
			f.Close()
		}
	}
	// Bound before, with every option that shares, and listened on later.
	for _, addr := range addrs {
		fd := -1
		r.inside(func() {
			var err error
			fd, err = bind(unix.SOCK_STREAM, addr, 9997, true)
			if err != nil {
				t.Errorf("%s: %v", addr, err)
			}
		})
		ports, _ := firewall.ParsePorts("9997")
		got, err := c.Redirect(ports)
		listens := unix.Listen(fd, 1)
		if (err == nil) == (listens == nil) {
			t.Errorf("%s: the room %v, the worker %v", addr, err, listens)
		}
		for _, x := range got {
			x.File.Close()
		}
		unix.Close(fd)
		if _, err := c.Redirect(nil); err != nil {
			t.Error(err)
		}
	}
	if _, err := c.Redirect([]firewall.PortRange{{First: 1000, Last: 1000 + handover.MaxListeners}}); err == nil || !strings.Contains(err.Error(), "nf_tables") {
		t.Errorf("too many ports: %v", err)
	}
	if got, err := c.Redirect([]firewall.PortRange{{First: 536, Last: 536}}); err != nil || len(got) != 0 {
		t.Errorf("the guard's own: %v %v", got, err)
	}
	most := []firewall.PortRange{{First: 1000, Last: 1000 + handover.MaxListeners - 1}}
	if got, err := c.Redirect(most); err != nil || len(got) != handover.MaxListeners {
		t.Errorf("the most: %d, %v", len(got), err)
	}
}
