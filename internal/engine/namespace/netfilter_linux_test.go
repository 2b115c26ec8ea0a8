package namespace

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/room/handover"
)

// inThread runs f in a thread of its own, which ends.
func inThread(t *testing.T, prepare func() error, f func()) {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := prepare()
		if err == nil {
			f()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestNetfilterFound(t *testing.T) {
	testutil.Require(t, unix.Geteuid() == 0, "root")
	inThread(t, func() error { return nil }, func() {
		e := engineOf(t, "the program")
		if f := e.netfilterFinding(); !f.Held || !f.Rooms || f.Promise != "" || f.Meaning != "rooms are made by nf_tables" {
			t.Errorf("%+v", f)
		}
		if err := e.CanLearn(); err != nil {
			t.Error(err)
		}
	})
	inThread(t, testutil.WithoutNetfilter, func() {
		e := engineOf(t, "the program")
		f := e.netfilterFinding()
		if f.Held || !f.Rooms || f.Promise != "" || !strings.Contains(f.Meaning, "by AnyIP") || !strings.Contains(f.Do, "sudo modprobe -a nfnetlink nf_tables nft_compat") {
			t.Errorf("%+v", f)
		}
		var refused *engine.RefusedError
		if err := e.CanLearn(); !errors.As(err, &refused) || refused.ExitCode() != 4 || !strings.Contains(err.Error(), "--learn") {
			t.Error(err)
		}
	})
	// An ordinary user may not ask in this namespace.
	inThread(t, func() error {
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var none [2]unix.CapUserData
		return unix.Capset(&header, &none[0])
	}, func() {
		e := engineOf(t, "the program")
		if n := e.lookForNetfilter(); len(n.missing) > 0 || n.unsure == modulesLoaded() {
			t.Errorf("%+v", n)
		}
		if f := e.netfilterFinding(); !f.Held {
			t.Errorf("%+v", f)
		}
	})
}

func TestRoomsWithoutNetfilter(t *testing.T) {
	room := func(mode firewall.Mode, ports string) firewall.RoomPolicy {
		p := firewall.RoomPolicy{Room: "r", Mode: mode, Workers: []string{"w", "x"}}
		if ports != "" {
			list, err := firewall.ParsePorts(ports)
			if err != nil {
				t.Fatal(err)
			}
			p.Allow = []firewall.Rule{{Ports: list}}
		}
		return p
	}
	lacks, has := netfilter{missing: []string{"nf_tables"}}, netfilter{unsure: true}
	for _, tt := range []struct {
		n    netfilter
		room firewall.RoomPolicy
		want string // empty: goes
	}{
		{lacks, room(firewall.None, ""), ""},
		{lacks, room(firewall.Restricted, "80,443,53,536,1000-1127"), ""},
		{lacks, room(firewall.Restricted, "1000-1128"), "w, x: its lines allow 129 ports"},
		{lacks, room(firewall.Open, ""), "w, x: `network: open`"},
		{has, room(firewall.Open, ""), ""},
		{has, room(firewall.Restricted, "1-65535"), ""},
	} {
		e := &Engine{netfilter: func() netfilter { return tt.n }}
		err := e.checkRooms(&compose.Compiled{Policy: &firewall.Policy{Rooms: []firewall.RoomPolicy{room(firewall.Restricted, "22"), tt.room}}})
		var refused *engine.RefusedError
		if tt.want == "" && err != nil || tt.want != "" && (!errors.As(err, &refused) || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "sudo modprobe -a nf_tables")) {
			t.Errorf("%+v: %v, want %q", tt.room, err, tt.want)
		}
	}
	if handover.MaxListeners != 128 {
		t.Error("the numbers above are others")
	}
}
