package app

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/control"
	"github.com/llmdo/workshop/internal/lib/shellquote"
	"github.com/llmdo/workshop/internal/verify"
)

// How long connections are tried while something is killed, and how long the guard may
// take to come back.
const (
	crashTime = 4 * time.Second
	floodTime = 2 * time.Second
	backTime  = 15 * time.Second
)

// disrupt verifies what kills, fills and restarts, in a copy of the project.
func (v *verification) disrupt(ctx context.Context) (lines []verify.Line, err error) {
	v.env.say("a copy of the project is brought up without its mounts, secrets and ports, to be filled and killed")
	c, err := v.newCopy(ctx)
	if c != nil {
		defer func() {
			if gone := c.remove(ctx); gone != nil {
				v.env.warn("the copy of the project in %s could not be removed: %s", c.dir, Printable(plainText(gone)))
				v.env.hint("remove it with `workshop -f %s -p %s down`", shellquote.Path(c.env.Settings.File), c.env.Settings.Project)
			}
		}()
	}
	if err != nil {
		return nil, Fail(CodeOf(err), "the copy of the project can't be brought up: %w", err)
	}
	d := &disruption{verification: v, copy: c}
	for _, w := range v.workers {
		if !w.OwnKernel { // of these what is beyond a limit ends
			lines = append(lines, d.fill(ctx, w.Name))
		}
	}
	lines = append(lines, d.inRoom(ctx)...)
	return append(lines, d.fillOwn(ctx)...), nil
}

// inRoom does what is done to one worker with a network, its room and the guard.
func (d *disruption) inRoom(ctx context.Context) (lines []verify.Line) {
	v, c := d.verification, d.copy
	i := slices.IndexFunc(v.workers, func(w *verify.Worker) bool { return w.Net != nil })
	if i < 0 {
		return nil
	}
	if d.room = policyOf(c.p.Compiled.Policy.Filled(), v.workers[i].Name); d.room == nil {
		return nil
	}
	d.worker, d.tries = v.workers[i].Name, v.workers[i].Net.Tries
	d.tries.From = netip.AddrPort{}
	lines = append(lines, d.cut(ctx))
	lines = append(lines, d.flood(ctx))
	return append(lines, d.crash(ctx)...)
}

// disruption is what is done to a copy.
type disruption struct {
	*verification
	copy   *projectCopy
	worker string // whose room is tried
	room   *firewall.RoomPolicy
	tries  verify.Tries
}

// look looks at a service of the copy from outside.
func (d *disruption) look(ctx context.Context, service string) *verify.Outside {
	return lookAt(ctx, d.copy.running, service, nil)
}

// probe runs probes in a worker of the copy.
func (d *disruption) probe(ctx context.Context, worker string, probes []verify.Probe) (verify.Seen, string) {
	return runProbes(ctx, d.copy.running, worker, probes)
}

// together runs lists of probes, each by a program of its own, at the same time.
func (d *disruption) together(ctx context.Context, lists [][]verify.Probe) (seen verify.Seen, unseen string) {
	var mu sync.Mutex
	var all sync.WaitGroup
	seen = verify.Seen{}
	for _, probes := range lists {
		all.Go(func() {
			s, why := d.probe(ctx, d.worker, probes)
			mu.Lock()
			defer mu.Unlock()
			for k, r := range s {
				seen[k] = r
			}
			if why != "" {
				unseen = why
			}
		})
	}
	all.Wait()
	return seen, unseen
}

// fill uses up the limits of one worker.
func (d *disruption) fill(ctx context.Context, worker string) verify.Line {
	before := d.look(ctx, worker)
	seen, unseen := d.probe(ctx, worker, verify.FillProbes())
	return verify.Filled(worker, seen, unseen, before, d.look(ctx, worker))
}

// crash kills the guard, waits until it is back, and then kills the room.
func (d *disruption) crash(ctx context.Context) []verify.Line {
	c := &verify.Crash{Before: d.look(ctx, d.worker)}
	canary := newCanary()
	defer canary.close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Seen, c.Unseen = d.together(ctx, verify.CrashProbes(&d.tries, canary.seen().Address, crashTime))
	}()
	e := d.copy.running
	if sleep(ctx, time.Second) == nil && e.Crash(ctx, e.Name, compose.GuardService, e.Dir) == nil {
		c.Killed = append(c.Killed, compose.GuardService)
		c.Back = d.awaitGuard(ctx)
	}
	c.Later, _ = d.probe(ctx, d.worker, verify.LaterProbes())
	c.After = d.look(ctx, d.worker)
	if room := d.copy.p.Compiled.RoomOf[d.worker]; e.Crash(ctx, e.Name, room, e.Dir) == nil {
		c.Killed = append(c.Killed, room)
	}
	<-done
	c.Closed, c.Canary = d.look(ctx, d.worker), canary.seen()
	return verify.Crashed(d.worker, c)
}

// awaitGuard returns how long another guard took to serve the worker's room; 0: too long.
func (d *disruption) awaitGuard(ctx context.Context) time.Duration {
	began := time.Now()
	for time.Since(began) < backTime && sleep(ctx, 100*time.Millisecond) == nil {
		s, err := d.guard(ctx)
		if err != nil || !s.Started.After(began.Add(-100*time.Millisecond)) {
			continue
		}
		if slices.ContainsFunc(s.Rooms, func(r control.RoomState) bool { return r.Room == d.room.Room && r.Served }) {
			return time.Since(began)
		}
	}
	return 0
}

// guard asks the guard of the copy for its state.
func (d *disruption) guard(ctx context.Context) (s control.State, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	e := d.copy.running
	conn, err := e.Control(ctx, e.Name, e.Dir)
	if err != nil {
		return s, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	return guardState(control.NewClient(conn))
}

// flood sends to the guard as much as a worker can.
func (d *disruption) flood(ctx context.Context) verify.Line {
	before, _ := d.guard(ctx)
	seen, _ := d.together(ctx, verify.FloodProbes(&d.tries, floodTime))
	began := time.Now()
	after, err := d.guard(ctx)
	answered := time.Since(began)
	if err != nil {
		answered = 0
	}
	same := err == nil && !before.Started.IsZero() && after.Started.Equal(before.Started)
	return verify.Flooded(d.worker, seen, same, after.Panics, answered, d.look(ctx, compose.GuardService))
}

// cut denies a connection in use.
func (d *disruption) cut(ctx context.Context) verify.Line {
	hosts := slices.DeleteFunc(verify.LiveHosts(d.room), func(h string) bool { return !strings.HasSuffix(h, ":443") })
	if !d.o.Live || len(hosts) == 0 {
		return verify.NotCut(d.worker, d.o.Live)
	}
	host := hosts[0]
	probes, cutProbes := verify.KeepProbes(host)
	kept, _ := d.probe(ctx, d.worker, probes)
	var seen verify.Seen
	var unseen string
	done := make(chan struct{})
	go func() {
		defer close(done)
		seen, unseen = d.probe(ctx, d.worker, cutProbes)
	}()
	_ = sleep(ctx, 1500*time.Millisecond)
	pattern, err := firewall.ParseHostPattern(strings.TrimSuffix(host, ":443"))
	var applied control.Applied
	if err == nil {
		change := firewall.Live{Deny: true, Room: d.room.Room, Rule: firewall.Rule{Host: pattern, Ports: []firewall.PortRange{firewall.AllPorts}}}
		err = d.copy.env.withGuard(ctx, d.copy.running, func(c *control.Client) error {
			return c.Do(control.Request{Op: control.OpChange, Changes: []firewall.Live{change}}, &applied)
		})
	}
	<-done
	if err != nil {
		unseen = plainText(err)
	}
	return verify.Cut(d.worker, host, kept, seen, unseen, applied.Cut)
}
