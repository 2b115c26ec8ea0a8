package app

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/facts"
	"github.com/llmdo/workshop/internal/guard/control"
	"github.com/llmdo/workshop/workshop"
)

// A port is shown at the worker to which it leads.
func TestGivePorts(t *testing.T) {
	port := func(published, target uint16) workshop.Port {
		return workshop.Port{Published: workshop.Value[uint16]{V: published}, Target: workshop.Value[uint16]{V: target}}
	}
	w := &workshop.Workshop{Workers: []workshop.Worker{{Name: "web"}, {Name: "other"}}}
	w.Workers[0].Container.Ports = []workshop.Port{port(8443, 8080), port(9000, 9000)}
	entries := []ContainerStatus{
		{Service: "guard", Role: "guard", Ports: []string{"127.0.0.1:18443->20002/tcp", "127.0.0.1:9000->20001/tcp", "[::1]:8443->20000/tcp"}},
		{Service: "other", Role: "worker"}, {Service: "web", Role: "worker"},
	}
	givePorts(entries, w, nil, nil)
	for i, want := range []string{"127.0.0.1:18443->20002/tcp", "", "[::1]:8443->8080/tcp 127.0.0.1:9000->9000/tcp"} {
		if got := strings.Join(entries[i].Ports, " "); got != want {
			t.Errorf("%s: %q, want %q", entries[i].Service, got, want)
		}
	}
}

// Published ports that aren't the file's are stale: the file changed since `up`.
func TestStalePorts(t *testing.T) {
	file := func(published uint16) *workshop.Workshop {
		w := &workshop.Workshop{Workers: []workshop.Worker{{Name: "web"}, {Name: "other"}}}
		if published != 0 {
			w.Workers[0].Container.Ports = []workshop.Port{{Published: workshop.Value[uint16]{V: published}, Target: workshop.Value[uint16]{V: 80}}}
		}
		return w
	}
	for _, c := range []struct {
		name, state string
		runs        []string
		granted     string // by the last `up`; empty: not known
		file        uint16
		want        []string // that are stale
		ports       string   // of web
	}{
		{"as up made them", "running", []string{"127.0.0.1:8443->20000/tcp"}, "127.0.0.1:8443->80", 8443, nil, "127.0.0.1:8443->80/tcp"},
		{"not known what up made", "running", []string{"127.0.0.1:8443->20000/tcp"}, "", 8443, nil, "127.0.0.1:8443->80/tcp"},
		{"changed", "running", []string{"127.0.0.1:8443->20000/tcp"}, "127.0.0.1:8443->80", 9443, []string{"web"}, "127.0.0.1:8443->80/tcp"},
		{"changed, not known", "running", []string{"127.0.0.1:8443->20000/tcp"}, "", 9443, []string{"web", "guard"}, ""},
		{"its target changed", "running", []string{"127.0.0.1:8443->20000/tcp"}, "127.0.0.1:8443->8080", 8443, []string{"web"}, "127.0.0.1:8443->8080/tcp"},
		{"both families", "running", []string{"0.0.0.0:8443->20000/tcp", "[::]:8443->20000/tcp"}, "127.0.0.1:8443->80", 8443, nil, "0.0.0.0:8443->80/tcp, [::]:8443->80/tcp"},
		{"added", "running", nil, "", 8443, []string{"web"}, ""},
		{"taken out", "running", []string{"127.0.0.1:8443->20000/tcp"}, "127.0.0.1:8443->80", 0, []string{"web"}, "127.0.0.1:8443->80/tcp"},
		{"taken out, not known", "running", []string{"127.0.0.1:8443->20000/tcp"}, "", 0, []string{"guard"}, ""},
		{"the guard is down", "exited", nil, "127.0.0.1:8443->80", 8443, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			entries := []ContainerStatus{{Service: "web", Role: "worker"}, {Service: "other", Role: "worker"}, {Service: "guard", Role: "guard", State: c.state, Ports: c.runs}}
			granted := map[string]facts.Grant{"web": {"memory": "2G"}}
			if c.granted != "" {
				granted["web"]["port 80"] = c.granted
			}
			givePorts(entries, file(c.file), nil, granted)
			if got := strings.Join(entries[0].Ports, ", "); got != c.ports {
				t.Errorf("ports: %q, want %q", got, c.ports)
			}
			var got []string
			for _, e := range entries {
				if e.PortsStale {
					got = append(got, e.Service)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("stale: %q, want %q", got, c.want)
			}
		})
	}
}

// What the guard says is in the containers: who learns, whose room is closed, and, of
// the guard, its upstreams.
func TestAddLive(t *testing.T) {
	s := Status{Containers: []ContainerStatus{
		{Service: "a", Role: "worker"}, {Service: "b", Role: "worker"}, {Service: "guard", Role: "guard", State: "running"},
	}}
	answer := make(chan *control.State, 1)
	answer <- &control.State{
		Learning:  map[string]time.Time{"room-b": time.Now().Add(time.Hour)},
		Rooms:     []control.RoomState{{Room: "room-a", Workers: []string{"a"}, Closed: "nobody knows"}, {Room: "room-b", Workers: []string{"c", "b"}}},
		Upstreams: []control.Upstream{{Kind: "resolver"}, {Kind: "proxy"}},
	}
	s.addLive(answer)
	a, b, guard := s.Containers[0], s.Containers[1], s.Containers[2]
	if a.LearningUntil != nil || a.NotHeld != nil || a.Closed != "nobody knows" || a.Upstreams != nil {
		t.Errorf("of a closed room: %+v", a)
	}
	if b.LearningUntil == nil || len(b.NotHeld) != 3 || b.Closed != "" {
		t.Errorf("of a learning room: %+v", b)
	}
	if len(guard.Upstreams) != 2 || guard.Closed != "" {
		t.Errorf("%+v", guard)
	}
}

// The mode is that of the room that a worker runs in, whatever the file says by now.
func TestRunningMode(t *testing.T) {
	for _, c := range []struct {
		name      string
		file      firewall.Mode
		networkOf string
		room      firewall.Mode
		want      string
		stale     bool
		notHeld   string
	}{
		{"as the file", firewall.Open, "r", firewall.Open, "open", false, "B24 B25"},
		{"was open", firewall.Restricted, "r", firewall.Open, "open", true, "B24 B25"},
		{"was restricted", firewall.Open, "r", firewall.Restricted, "restricted", true, ""},
		{"had none", firewall.Restricted, "", 0, "none", true, ""},
		{"has none", firewall.None, "", 0, "none", false, ""},
		{"had a network", firewall.None, "r", firewall.Restricted, "restricted", true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := &workshop.Workshop{Workers: []workshop.Worker{{Name: "a"}}}
			w.Workers[0].Container.Network.Mode.V = c.file
			s := Status{Containers: statusOf(engine.Observed{Containers: []engine.Container{
				{Service: "a", Role: "worker", State: "running", NetworkOf: c.networkOf}, {Service: "guard", Role: "guard", State: "running"},
			}}, w, nil, nil)}
			state := &control.State{}
			if c.room != firewall.None {
				state.Rooms = []control.RoomState{{Room: "room", Workers: []string{"a"}, Mode: c.room}}
			}
			answer := make(chan *control.State, 1)
			answer <- state
			s.addLive(answer)
			a := s.Containers[0]
			if a.Network != c.want || a.NetworkStale != c.stale || strings.Join(a.NotHeld, " ") != c.notHeld {
				t.Errorf("got %s, stale %v, not held %q; want %s, %v, %q", a.Network, a.NetworkStale, a.NotHeld, c.want, c.stale, c.notHeld)
			}
		})
	}
}

// What a worker's network needs is its own room and the guard.
func TestStopped(t *testing.T) {
	container := func(id, role, state, of string) engine.Container {
		return engine.Container{ID: id, Service: id, Role: role, State: state, NetworkOf: of}
	}
	w, closed := container("w", "worker", "running", "r"), container("c", "worker", "running", "")
	up, dead := container("r", "room", "running", ""), container("r", "room", "exited", "")
	guard := container("g", "guard", "running", "")
	for want, list := range map[string][]engine.Container{
		"":           {w, up, guard, closed, container("r2", "room", "exited", "")},
		"room":       {w, dead, guard},
		"guard":      {w, up, container("g", "guard", "exited", "")},
		"room guard": {w},
	} {
		seen := engine.Observed{Containers: list}
		if got := strings.Join(Stopped(seen, "w"), " "); got != want {
			t.Errorf("%v: %q, want %q", list, got, want)
		}
		if got := strings.Join(Stopped(seen, ""), " "); got != want {
			t.Errorf("all of %v: %q, want %q", list, got, want)
		}
		if got := Stopped(seen, "c"); got != nil {
			t.Errorf("a worker without network: %q", got)
		}
	}
}

// A worker that was started before its room is in a network namespace that the room
// has left.
func TestStale(t *testing.T) {
	began := time.Now()
	container := func(id, state, of string, after time.Duration) engine.Container {
		return engine.Container{ID: id, Service: id, State: state, NetworkOf: of, Started: began.Add(after)}
	}
	for _, c := range []struct {
		name   string
		room   engine.Container
		worker engine.Container
		want   []string
	}{
		{"as up starts them", container("r", "running", "", 0), container("w", "running", "r", 1), nil},
		{"the room was restarted", container("r", "running", "", 2), container("w", "running", "r", 1), []string{"w"}},
		{"the room is down", container("r", "exited", "", 2), container("w", "running", "r", 1), nil},
		{"the worker is down", container("r", "running", "", 2), container("w", "exited", "r", 1), nil},
		{"no room", container("r", "running", "", 2), container("w", "running", "", 1), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			seen := engine.Observed{Containers: []engine.Container{c.worker, c.room}}
			if got := Stale(seen, ""); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if got := Stale(seen, "other"); got != nil {
				t.Errorf("another worker: %q", got)
			}
		})
	}
}
