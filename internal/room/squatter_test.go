//go:build linux

package room

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/room/handover"
)

func TestParseSocket(t *testing.T) {
	for line, want := range map[string]string{
		"   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 12345 1 0000000000000000 100 0 0 10 0":                              "127.0.0.1:8080 1000",
		"   1: 00000000000000000000000001000000:270F 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0": "[::1]:9999 0",
		"   2: 0000000000000000FFFF0000076433C6:0016 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000 65534        0 1 1 0 100 0 0 10 0": "198.51.100.7:22 65534",
		"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode":                                                              "",
		"   3: 0100007F:1F90 00000000:0000":                                                   "",
		"   4: 01007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000 0 1": "",
	} {
		at, uid, ok := parseSocket(line)
		got := ""
		if ok {
			got = fmt.Sprintf("%s %d", at, uid)
		}
		if got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

func FuzzParseSocket(f *testing.F) {
	f.Add("   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 12345 1")
	f.Fuzz(func(t *testing.T, line string) {
		if at, _, ok := parseSocket(line); ok && !at.IsValid() {
			t.Fatalf("%q: %v", line, at)
		}
	})
}

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
