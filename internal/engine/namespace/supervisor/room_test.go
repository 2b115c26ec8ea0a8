//go:build linux

package supervisor

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/api"
	"github.com/llmdo/workshop/internal/guard/control"
)

// real is workshop-init with all its parts, beside the one that the tests
// supervise with.
func real(t testing.TB) string {
	program, _ := binaries()
	path := filepath.Join(filepath.Dir(program), "real")
	if os.Getenv(programVariable) != "" {
		return path
	}
	buildReal.Do(func() {
		if err := testutil.Init(path); err != nil {
			t.Fatal(err)
		}
	})
	return path
}

var buildReal sync.Once

// room and guard as the compile makes them.
func (w *world) room(program, sockets string, policy firewall.Policy, ports ...spec.Port) (room, guard *spec.Container) {
	uid, _ := w.ids()
	roomUID, guardUID := uid, uid
	if w.mode == "root" {
		roomUID, guardUID = 0, 65532
	}
	room = w.shell("room", "")
	room.Role, room.Network.Mode = spec.Room, spec.NetRoom
	room.Process = spec.Process{Args: []string{"/workshop-init", "room", "--name", "room", "--guard-uid", itoa(int(guardUID))}, Cwd: "/", UID: roomUID, GID: roomUID}
	room.Capabilities = []string{"CAP_NET_ADMIN", "CAP_NET_BIND_SERVICE"}
	room.Sysctls = map[string]string{"net.ipv4.ip_unprivileged_port_start": "1024"}
	share := func(readOnly bool) []spec.Mount {
		return []spec.Mount{
			{Type: spec.Bind, Source: program, Target: "/workshop-init", ReadOnly: true},
			{Type: spec.Bind, Source: sockets, Target: "/run/workshop", ReadOnly: readOnly},
		}
	}
	room.Mounts = share(false)
	b, err := json.Marshal(policy)
	w.must(err)
	guard = w.guard(ports...)
	guard.Process = spec.Process{Args: []string{"/workshop-init", "guard"}, Cwd: "/", UID: guardUID, GID: guardUID}
	guard.Mounts = share(true)
	guard.Files = []spec.File{{Path: "/etc/workshop/policy.json", Data: string(b), Mode: 0o444}}
	return room, guard
}

// TestRoomAndGuard: the real programs, from a published port to a worker in a
// room, over a crash of the guard.
func TestRoomAndGuard(t *testing.T) {
	if os.Getuid() == 0 {
		real(t)
	}
	eachMode(t, func(t *testing.T, w *world) {
		sockets := w.dir + "/volumes/sockets"
		w.must(os.MkdirAll(sockets, 0o755))
		address := free(t, "127.0.0.1")
		room, guard := w.room(real(t), sockets, firewall.Policy{
			Version: firewall.PolicyVersion, Workshop: "test", Resolvers: []string{"198.51.100.53"},
			Rooms:   []firewall.RoomPolicy{{Room: "room", Mode: firewall.Restricted, Workers: []string{"one"}}},
			Publish: []firewall.Publish{{Room: "room", Listen: 20000, Target: 8080, Worker: "one"}},
		}, spec.Port{Address: address, Target: 20000, Worker: "one"})
		one := w.shell("one", "")
		program, _ := binaries()
		one.Process.Args = []string{"/init", "serve", "127.0.0.1:8080"}
		one.Mounts = []spec.Mount{{Type: spec.Bind, Source: program, Target: "/init", ReadOnly: true}}
		one.Network = spec.Network{Mode: spec.NetJoin, Of: "room"}
		for _, c := range []*spec.Container{room, guard, one} {
			w.must(w.Create(t.Context(), c))
		}
		for _, name := range []string{"room", "guard", "one"} {
			w.must(w.Start(t.Context(), name))
		}
		for _, name := range []string{"room", "guard", "one"} {
			if r, err := w.Ready(t.Context(), name); err != nil || !r.Ready {
				t.Fatalf("%s: %+v, %v\n%s", name, r, err, w.log(name))
			}
		}
		served := func() {
			t.Helper()
			if got := ask(t, address); got != "served\n" {
				t.Errorf("%q\n%s", got, w.log("guard"))
			}
		}
		state := func() {
			t.Helper()
			conn, err := w.Control(t.Context(), "")
			w.must(err)
			c := control.NewClient(conn)
			defer c.Close()
			var s control.State
			if err := c.Do(control.Request{Op: control.OpState}, &s); err != nil {
				t.Error(err)
			}
		}
		served()
		state()
		w.must(w.Signal(t.Context(), "guard", "SIGKILL"))
		testutil.Eventually(w, "a restart", func() bool { return w.seen("guard").Restarts == 1 })
		if r, err := w.Ready(t.Context(), "guard"); err != nil || !r.Ready {
			t.Fatalf("%+v, %v\n%s", r, err, w.log("guard"))
		}
		served()
		state()
		if s := w.seen("one"); s.State != api.Running || s.Restarts != 0 {
			t.Errorf("%+v", s.State)
		}
		if strings.Contains(w.log("room"), "FAILED") {
			t.Error(w.log("room"))
		}
	})
}
