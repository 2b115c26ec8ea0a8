package app

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/facts"
	"github.com/llmdo/workshop/internal/guard/control"
	"github.com/llmdo/workshop/internal/lib/sortfunc"
	"github.com/llmdo/workshop/internal/promise"
	"github.com/llmdo/workshop/workshop"
)

// Status is what is up of a project.
type Status struct {
	ProjectRef
	Can      engine.Capabilities
	Observed engine.Observed
	// Containers are workers, rooms and guard in this order, each by name.
	Containers []ContainerStatus
	// Guard is what the guard says; nil where it doesn't run, wasn't asked or is
	// Silent: it runs and doesn't answer within [AskTime].
	Guard  *control.State
	Silent bool
	// Unread is why the workshop file tells nothing of networks and ports; nil: it
	// does, or there is none.
	Unread error
}

// ContainerStatus is one container of a project, as `ps` shows it.
type ContainerStatus struct {
	Name     string     `json:"name"`
	Service  string     `json:"service"`
	Role     string     `json:"role"`
	State    string     `json:"state"`
	ExitCode int        `json:"exit_code"`
	WhyEnded string     `json:"why_ended,omitempty"`
	Started  *time.Time `json:"started,omitempty"`
	Image    string     `json:"image"`
	Network  string     `json:"network,omitempty"` // of a worker that runs; by the workshop file where that isn't known
	Ports    []string   `json:"ports"`
	Caches   []string   `json:"caches,omitempty"` // by the workshop file
	// NetworkStale says that the file has another mode: it changed since `up`.
	NetworkStale bool `json:"network_stale,omitempty"`
	// PortsStale says that the worker's published ports aren't those of the file, or, at
	// the guard, that one is published of which neither the file nor the last `up` says
	// where it leads: the file changed since `up`.
	PortsStale bool `json:"ports_stale,omitempty"`
	// NotHeld are the promises that don't hold for this worker.
	NotHeld []string `json:"not_held,omitempty"`
	// LearningUntil is when the worker's room stops learning.
	LearningUntil *time.Time `json:"learning_until,omitempty"`
	// Closed says why the worker's room is closed, whatever the file says.
	Closed string `json:"closed,omitempty"`
	// Stale says that the worker's room was restarted, so that the worker has no
	// network until `up`.
	Stale bool `json:"stale,omitempty"`
	// NotCompared says that it runs, and was not compared with what was asked for since its
	// start.
	NotCompared bool `json:"not_compared,omitempty"`
	// ReplacedMounts are those in whose place the machine has another file since its start, or
	// none; Sockets the unix sockets of the machine that came into its mounts since, and
	// SocketsMissed why not all were looked for. They are of workers on gVisor.
	ReplacedMounts []string `json:"replaced_mounts,omitempty"`
	Sockets        []string `json:"sockets,omitempty"`
	SocketsMissed  string   `json:"sockets_missed,omitempty"`
	// LiveChanges of the policy, which the guard has in addition to the file.
	LiveChanges int `json:"live_changes,omitempty"`
	// Credentials are those that the worker's lines and agents have.
	Credentials []CredentialStatus `json:"credentials,omitempty"`
	// Upstreams of the guard that the policy names.
	Upstreams []control.Upstream `json:"upstreams,omitempty"`
	// Silent says that the engine doesn't answer for it.
	Silent bool   `json:"silent,omitempty"`
	MadeBy string `json:"made_by"`
	Engine string `json:"engine"` // that runs it
	// ID is the engine's.
	ID string `json:"-"`
}

// learnNotHeld are the promises that a learning room gives up.
var learnNotHeld = []string{"B23", "B24", "B25"}

// Status looks at the project that the caller works on; asked as in
// [Running.Look]. The guard is asked unless nobody reads what it says (Quiet).
func (env *Env) Status(ctx context.Context, asked bool) (*Status, error) {
	t, err := env.Find(ctx)
	if err != nil {
		return nil, err
	}
	e, err := env.Connect(ctx, t, nil)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	guard := Asked(nil)
	if !env.Quiet {
		guard = e.AskGuard(ctx) // in the background: 40 ms
	}
	seen, err := e.Look(ctx, asked)
	if err != nil {
		return nil, err
	}
	w, unread := env.quietWorkshop(ctx, t)
	var granted map[string]facts.Grant
	runtime := ""
	if r, err := env.Record(t.Name); err == nil && r != nil { // CompareWatched says what is wrong with it
		granted, runtime = r.Granted, r.RuntimeDir
	}
	s := &Status{ProjectRef: t, Can: e.Capabilities(), Observed: seen, Containers: statusOf(seen, w, env.Ports(t), granted), Unread: unread}
	for i := range s.Containers {
		c := &s.Containers[i]
		c.Engine = e.Chosen.Name
		if !s.Can.Contained && c.Role == compose.RoleWorker.String() {
			c.Network, c.NetworkStale, c.NotHeld = "this machine's", false, promise.Waived(c.Engine)
		}
	}
	s.addLive(guard)
	if !env.Quiet {
		s.addGained(ctx, w)
		s.addCredentials(ctx, w, runtime)
	}
	return s, nil
}

// quietWorkshop reads the workshop for what the engine doesn't know; nil where
// there is none, or it can't be read: ps is about what runs.
func (env *Env) quietWorkshop(ctx context.Context, t ProjectRef) (*workshop.Workshop, error) {
	if t.File == "" {
		return nil, nil
	}
	s, err := env.Read(ctx, t.File)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(s.Diagnostics, func(d diag.Diagnostic) bool { return d.Severity == diag.Error }); i >= 0 {
		return nil, fmt.Errorf("%s is invalid: %s", env.Shown(s.Path), Printable(s.Diagnostics[i].Summary))
	}
	return s.Workshop, nil
}

func statusOf(seen engine.Observed, w *workshop.Workshop, ports Ports, granted map[string]facts.Grant) []ContainerStatus {
	entries := []ContainerStatus{}
	for _, c := range seen.Containers {
		p := ContainerStatus{
			Name: c.Name, Service: c.Service, Role: c.Role, State: c.State, ExitCode: c.ExitCode, WhyEnded: c.WhyEnded(),
			Image: c.Image, Ports: c.Ports, MadeBy: "workshop", Silent: c.Silent, ID: c.ID,
			Stale: len(Stale(seen, c.Service)) > 0, NotCompared: c.NotCompared, ReplacedMounts: c.Replaced,
		}
		if !c.Started.IsZero() {
			started := c.Started.UTC()
			p.Started = &started
		}
		if c.ByCompose {
			p.MadeBy = "compose"
		}
		if p.Ports == nil {
			p.Ports = []string{}
		}
		if w != nil {
			for _, worker := range w.Workers {
				if worker.Name == c.Service {
					p.Network = worker.Container.Network.Mode.V.String()
					p.NotHeld = notHeld(worker.Container.Network.Mode.V)
					for _, x := range worker.Container.Caches {
						p.Caches = append(p.Caches, x.Name)
					}
				}
			}
		}
		p.NotHeld = append(slices.Clone(c.NotHeld), p.NotHeld...)
		if c.Role == compose.RoleWorker.String() && c.NetworkOf == "" {
			p.runs(firewall.None)
		}
		entries = append(entries, p)
	}
	givePorts(entries, w, ports, granted)
	order := map[string]int{"worker": 0, "outlet": 1, "room": 2, "guard": 3}
	sortfunc.Stable(entries, func(x, y ContainerStatus) int {
		return cmp.Or(cmp.Compare(order[x.Role], order[y.Role]), cmp.Compare(x.Name, y.Name))
	})
	return entries
}

// runs takes the mode that a worker's room has.
func (p *ContainerStatus) runs(mode firewall.Mode) {
	if p.Network == mode.String() {
		return
	}
	p.NetworkStale = p.Network != "" // else the file doesn't say
	p.Network = mode.String()
	held := notHeld(firewall.Open)
	p.NotHeld = append(slices.DeleteFunc(p.NotHeld, func(b string) bool { return slices.Contains(held, b) }), notHeld(mode)...)
}

// givePorts shows published ports where they lead: by what workers were granted at
// their last `up`, else by the file. The guard publishes them, at ports of its own that
// mean nothing to a reader. What isn't as in the file is stale; w is nil where it can't
// be read.
func givePorts(entries []ContainerStatus, w *workshop.Workshop, ports Ports, granted map[string]facts.Grant) {
	guard := slices.IndexFunc(entries, func(p ContainerStatus) bool { return p.Role == compose.RoleGuard.String() })
	if guard < 0 {
		return
	}
	// give moves what is published of ports, "ADDRESS:PUBLISHED->TARGET", to a worker, and
	// returns those.
	give := func(to *ContainerStatus, ports []string) (given []string) {
		for _, port := range ports {
			address, target, _ := strings.Cut(port, "->")
			published := address[strings.LastIndexByte(address, ':'):]
			entries[guard].Ports = slices.DeleteFunc(entries[guard].Ports, func(at string) bool {
				from, _, _ := strings.Cut(at, "->")
				if !strings.HasSuffix(from, published) {
					return false
				}
				to.Ports = append(to.Ports, from+"->"+target+"/tcp")
				given = append(given, port)
				return true
			})
		}
		return given
	}
	inFile := map[string][]string{}
	for i := 0; w != nil && i < len(w.Workers); i++ {
		for _, p := range w.Workers[i].Container.Ports {
			inFile[w.Workers[i].Name] = append(inFile[w.Workers[i].Name], ports.Text(w.Workers[i].Name, p))
		}
	}
	shown := map[string][]string{}
	for i := range entries {
		g := granted[entries[i].Service]
		var ports []string
		for _, key := range slices.Sorted(maps.Keys(g)) {
			if strings.HasPrefix(key, portFacet+" ") {
				ports = append(ports, g[key])
			}
		}
		shown[entries[i].Service] = give(&entries[i], ports)
	}
	for i := range entries {
		name := entries[i].Service
		is := append(shown[name], give(&entries[i], inFile[name])...)
		entries[i].PortsStale = w != nil && entries[guard].State == "running" && !slices.Equal(distinct(is), distinct(inFile[name]))
	}
	entries[guard].PortsStale = w != nil && len(entries[guard].Ports) > 0
}

func distinct(names []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(names)))
}

// notHeld are the promises that a network mode gives up.
func notHeld(mode firewall.Mode) []string {
	if mode == firewall.Open {
		return []string{"B24", "B25"}
	}
	return nil
}

// addLive puts into the containers what the guard says: live changes, learning. A
// guard that doesn't run isn't waited for.
func (s *Status) addLive(asked Asked) {
	at := slices.IndexFunc(s.Containers, func(c ContainerStatus) bool { return c.Role == compose.RoleGuard.String() && c.State == "running" })
	if asked == nil || at < 0 {
		return
	}
	s.Guard = <-asked
	if s.Guard == nil {
		s.Silent = true
		return
	}
	s.Containers[at].LiveChanges, s.Containers[at].Upstreams = len(s.Guard.Live), s.Guard.Upstreams
	learning, closed, modes := learningOf(*s.Guard), closedRooms(*s.Guard), modesOf(*s.Guard)
	for i := range s.Containers {
		c := &s.Containers[i]
		if mode, ok := modes[c.Service]; ok {
			c.runs(mode)
		}
		c.Closed = closed[c.Service]
		if until, ok := learning[c.Service]; ok {
			until = until.UTC()
			c.LearningUntil = &until
			for _, p := range learnNotHeld {
				if !slices.Contains(c.NotHeld, p) {
					c.NotHeld = append(c.NotHeld, p)
				}
			}
		}
	}
}
