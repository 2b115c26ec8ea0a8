//go:build linux

package supervisor

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/api"
	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/client"
)

func TestMalformed(t *testing.T) {
	eachMode(t, func(t *testing.T, w *world) {
		for _, text := range []string{
			"\n", "x\n", "{}\n", "null\n", "[]\n", `{"op":"nothing"}` + "\n", `{"op":"list","more":1}` + "\n", `{"op":"list"} {"op":"list"}` + "\n",
			`{"op":"list","service":"a"}` + "\n", `{"op":"start"}` + "\n", `{"op":"start","service":"../a"}` + "\n", `{"op":"start","service":"."}` + "\n",
			`{"op":"create"}` + "\n", `{"op":"create","container":{}}` + "\n", `{"op":"create","container":{"version":2,"service":"a"}}` + "\n",
			`{"op":"signal","service":"a"}` + "\n", `{"op":"hello","container":{}}` + "\n", "\x00\xff\n", strings.Repeat("[", 100000) + "\n",
			strings.Repeat("x", api.MaxRequest+1) + "\n", `{"op":"` + strings.Repeat("x", 1<<20) + `"}` + "\n",
		} {
			got := w.raw(text)
			if len(got) != 1 || got[0].Error == nil || got[0].Error.Code != api.CodeInvalid || len(got[0].Error.Message) > 2*maxText {
				t.Errorf("%.60q: %+v", text, got)
			}
		}
		// Without an end of line nothing is done.
		if got := w.raw(`{"op":"hello"}`); len(got) != 0 {
			t.Errorf("half a line: %+v", got)
		}
		// Several on one connection, in order.
		if got := w.raw(strings.Repeat(`{"op":"hello"}`+"\n", 50)); len(got) != 50 || got[49].Hello == nil {
			t.Errorf("50 requests: %d answers", len(got))
		}
		if got := w.raw(`{"op":"signal","service":"a","signal":"SIGNONE"}` + "\n"); len(got) != 1 || got[0].Error.Code != api.CodeInvalid {
			t.Errorf("%+v", got)
		}
		for _, op := range []string{"start", "ready", "stop", "remove", "pid"} {
			if got := w.raw(fmt.Sprintf(`{"op":%q,"service":"a"}`+"\n", op)); len(got) != 1 || got[0].Error == nil || got[0].Error.Code != api.CodeUnknown {
				t.Errorf("%s: %+v", op, got)
			}
		}
		for _, change := range []func(*spec.Container){
			func(c *spec.Container) { c.Version++ },
			func(c *spec.Container) { c.Network.Mode = spec.NetHost },
			func(c *spec.Container) { c.Network = spec.Network{Mode: spec.NetJoin, Of: "one"} },
			func(c *spec.Container) { c.Network.Of = "two" },
			func(c *spec.Container) { c.Role = "boss" },
			func(c *spec.Container) { c.Limits = spec.Limits{Memory: 1 << 20, CPUs: 1, Shm: 1} },
			func(c *spec.Container) { c.Log.MaxSize = 0 },
			func(c *spec.Container) { c.Log.MaxFiles = 1 << 30 },
			func(c *spec.Container) { c.Grace = -1 },
			func(c *spec.Container) { c.Restart = "always" },
			func(c *spec.Container) { c.Seccomp = nil },
			func(c *spec.Container) { c.Process.Args = nil },
			func(c *spec.Container) { c.Ports = []spec.Port{{Address: "127.0.0.1:80", Target: 80}} },
		} {
			c := w.shell("one", "exit 0")
			change(c)
			if err := w.Create(t.Context(), c); code(err) != api.CodeInvalid {
				t.Errorf("%+v: %v", c.Network, err)
			}
		}
		if list, err := w.List(t.Context()); err != nil || len(list) != 0 {
			t.Errorf("%+v, %v", list, err)
		}
	})
}

// TestClients: those that hang or go away harm nobody.
func TestClients(t *testing.T) {
	eachMode(t, func(t *testing.T, w *world) {
		w.run(w.shell("silent", "exec sleep 1000"))
		var hanging []net.Conn
		open := func(n int, text string) {
			for range n {
				c, err := client.Connect(t.Context(), w.dir)
				w.must(err)
				_, _ = c.Write([]byte(text))
				hanging = append(hanging, c)
			}
		}
		open(30, "")
		open(30, `{"op":"li`)
		open(3, `{"op":"`+strings.Repeat("x", 1<<20))
		open(30, `{"op":"ready","service":"silent"}`+"\n")
		for range 20 {
			_, err := w.List(t.Context())
			w.must(err)
		}
		w.must(w.Create(t.Context(), w.shell("new", sleeper)))
		// More than there are places: refused, not left waiting.
		open(maxConns, `{"op":"ready","service":"silent"}`+"\n")
		if _, err := w.List(t.Context()); code(err) != api.CodeFailed && err == nil {
			t.Error("an endless number of clients is served")
		}
		for _, c := range hanging {
			c.Close()
		}
		testutil.Eventually(w, "places", func() bool { _, err := w.List(t.Context()); return err == nil })
		// None of those that went away is still waited for.
		testutil.Eventually(w, "the end of what waits", func() bool { return descriptors(w.pid) < 40 })
	})
}

func descriptors(pid int) int {
	list, err := os.ReadDir("/proc/" + itoa(pid) + "/fd")
	if err != nil {
		return 0
	}
	return len(list)
}

func TestParallel(t *testing.T) {
	eachMode(t, func(t *testing.T, w *world) {
		const n = 20
		begin := time.Now()
		var all sync.WaitGroup
		for i := range n {
			all.Go(func() {
				name := fmt.Sprint("w", i)
				if err := w.Create(t.Context(), w.shell(name, sleeper)); err != nil {
					t.Error(err)
				}
				if err := w.Start(t.Context(), name); err != nil {
					t.Error(err)
				}
				if r, err := w.Ready(t.Context(), name); err != nil || !r.Ready {
					t.Errorf("%+v, %v", r, err)
				}
			})
		}
		all.Wait()
		started := time.Since(begin)
		list, err := w.List(t.Context())
		w.must(err)
		for _, s := range list {
			if s.State != api.Running || !s.Ready {
				t.Errorf("%s: %s", s.Container.Service, s.State)
			}
		}
		memory := rss(w.pid)
		begin = time.Now()
		for i := range n {
			all.Go(func() { w.remove(fmt.Sprint("w", i)) })
		}
		all.Wait()
		t.Logf("%d started and ready in %v, removed in %v; RSS %s then, %s now", n, started, time.Since(begin), memory, rss(w.pid))
		if list, err := w.List(t.Context()); err != nil || len(list) != 0 {
			t.Errorf("%d are left, %v", len(list), err)
		}
		if f, err := client.State(w.dir); err != nil || len(f.Containers) != 0 {
			t.Errorf("%+v, %v", f, err)
		}
	})
}

func (w *world) remove(name string) {
	if err := w.Remove(w.Context(), name); err != nil {
		w.Errorf("%s: %v", name, err)
	}
}

// TestSame: many at one service, in any order, leave it in one state.
func TestSame(t *testing.T) {
	eachMode(t, func(t *testing.T, w *world) {
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				for j := range 15 {
					switch (i + j) % 5 {
					case 0:
						c := w.shell("one", sleeper)
						c.Grace = 50 * time.Millisecond // the shell may not have got to its trap
						_ = w.Create(t.Context(), c)
					case 1, 2:
						_ = w.Start(t.Context(), "one")
					case 3:
						_ = w.Stop(t.Context(), "one")
					case 4:
						_ = w.Remove(t.Context(), "one")
					}
				}
			})
		}
		all.Wait()
		_ = w.Remove(t.Context(), "one")
		if left := below(w.pid); len(left) != 1 {
			t.Errorf("processes are left: %v", left[1:])
		}
		w.up(w.shell("one", sleeper))
	})
}

// TestLeaks: a hundred starts leave no descriptor, process or group.
func TestLeaks(t *testing.T) {
	if testing.Short() {
		t.Skip("a hundred starts")
	}
	eachMode(t, func(t *testing.T, w *world) {
		g := w.guard(spec.Port{Address: free(t, "127.0.0.1"), Target: 80})
		w.must(w.Create(t.Context(), g))
		w.must(w.Create(t.Context(), w.shell("worker", "exit 0")))
		none, lost, taken := w.shell("none", ""), w.shell("lost", ""), w.guard(spec.Port{Address: free(t, "127.0.0.1"), Target: 80}, g.Ports[0])
		none.Process.Args = []string{"/no/such/program"}
		lost.Mounts[0].Source = "/no/such/source"
		taken.Service = "taken"
		for _, c := range []*spec.Container{none, lost, taken} {
			w.must(w.Create(t.Context(), c))
		}
		fail := func() {
			for _, name := range []string{"none", "lost", "taken"} {
				if err := w.Start(t.Context(), name); err == nil {
					t.Fatalf("%s starts", name)
				}
			}
		}
		once := func() {
			w.must(w.Start(t.Context(), "worker"))
			_, err := w.Ready(t.Context(), "worker")
			w.must(err)
			w.must(w.Stop(t.Context(), "worker"))
		}
		twice := func() {
			w.must(w.Start(t.Context(), "guard"))
			_, err := w.Ready(t.Context(), "guard")
			w.must(err)
			fail()
			w.must(w.Stop(t.Context(), "guard"))
		}
		for range 5 {
			once()
			twice()
		}
		before := descriptors(w.pid)
		memory := rss(w.pid)
		for i := range 80 {
			if once(); i%4 == 0 {
				twice()
			}
		}
		testutil.Eventually(w, "as few descriptors as before", func() bool { return descriptors(w.pid) <= before })
		if left := below(w.pid); len(left) != 1 {
			t.Errorf("processes are left: %v", left[1:])
		}
		t.Logf("RSS %s, then %s", memory, rss(w.pid))
		if groups := w.groups(); len(groups) > 0 {
			t.Errorf("groups are left: %v", groups)
		}
	})
}

// FuzzDecode: what a client may send.
func FuzzDecode(f *testing.F) {
	b, err := json.Marshal(api.Request{Op: api.OpCreate, Container: &spec.Container{Version: spec.Version, Service: "a", Role: spec.Worker}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"op":"signal","service":"a.b","signal":"SIGHUP"}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		r, err := decode(line)
		if err != nil {
			return
		}
		if r.Service != "" && (strings.ContainsAny(r.Service, "/\x00") || r.Service == "..") {
			t.Errorf("%q", r.Service)
		}
		if r.Container != nil {
			_ = check(r.Container)
		}
	})
}

// FuzzState: what may stand in state.json.
func FuzzState(f *testing.F) {
	f.Add([]byte(`{"version":2,"containers":[{"container":{"version":2,"service":"a"},"state":"running","ready":true,"exit_code":0,"created":"2026-11-22T06:00:00Z"}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		f, err := readState(b)
		if err != nil {
			return
		}
		for _, s := range f.Containers {
			if !validService(s.Container.Service) {
				t.Errorf("%q", s.Container.Service)
			}
		}
	})
}
