package app

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/control"
	"github.com/llmdo/workshop/internal/guard/events"
	"github.com/llmdo/workshop/internal/verify"
	"github.com/llmdo/workshop/workshop"
)

// network is what is tried in a worker's room.
func (v *verification) network(w *workshop.Worker, room *firewall.RoomPolicy) *verify.Net {
	from := probeSource()
	n := &verify.Net{Room: room.Room, Stale: v.view.Changed(), Explained: map[string]verify.Answer{}}
	// Workers of one room have names and addresses of their own.
	n.Tries = verify.ChooseTries(room, v.id+"-"+shortName(w.Name), uint16(len(v.workers))*7+from.Port(), from)
	if w.Container.Kernel.V.Own() {
		n.Tries.Carry(room)
	}
	if v.o.Live {
		n.Tries.Live = verify.LiveHosts(room)
	}
	switch {
	case v.view.State == nil && v.view.Missing != nil:
		n.Closed = plainText(v.view.Missing)
	case v.view.State != nil:
		n.Learns = v.view.State.Learning[room.Room].After(time.Now())
		for _, r := range v.view.State.Rooms {
			if r.Room == room.Room && r.Closed != "" {
				n.Closed = "its room is closed: " + r.Closed
			}
		}
	}
	return n
}

// shortName is a name as the part of a label of DNS.
func shortName(name string) string {
	out := []byte(nil)
	for i := range min(len(name), 24) {
		if c := name[i]; 'a' <= c && c <= 'z' || '0' <= c && c <= '9' {
			out = append(out, c)
		}
	}
	return string(out)
}

// neverAddresses are what a guard is asked about (B31): one of each class that is never
// opened without a line of its own.
var neverAddresses = []string{
	"169.254.169.254", "127.0.0.1", "169.254.1.1", "0.0.0.0", "224.0.0.1", "10.255.255.1", "172.31.255.1", "192.168.255.1", "100.64.0.1", "198.18.0.1",
	"fd00:ec2::254", "fe80::1",
}

// beforeTries tells the guard from where is tried, so that its events are marked, and
// asks what it would do.
func (v *verification) beforeTries(ctx context.Context) {
	v.talk(ctx, func(c *control.Client, w *verify.Worker, m *firewall.Matcher) error {
		n := w.Net
		n.Canary = v.canary.seen()
		for _, text := range neverAddresses {
			a := netip.MustParseAddr(text)
			if m.Addr(a, 443).Allowed { // a line opens it
				continue
			}
			var x control.Explanation
			if err := c.Do(control.Request{Op: control.OpExplain, Room: n.Room, Host: text, Port: 443, From: n.Tries.From, NoLookUp: true}, &x); err != nil {
				return err
			}
			answer := verify.Answer{Allowed: x.Allowed, Reason: Printable(x.Reason)}
			for _, d := range x.Addresses {
				answer.Dialled = answer.Dialled || d.Allowed
			}
			n.Explained[text] = answer
		}
		return nil
	})
	v.refusedCounts(ctx, func(n *verify.Net, count uint64) { n.RefusedBefore = count })
}

// afterTries asks the guard what it denied.
func (v *verification) afterTries(ctx context.Context) {
	since := v.began.Add(-time.Second)
	v.talk(ctx, func(c *control.Client, w *verify.Worker, _ *firewall.Matcher) error {
		w.Net.Canary = v.canary.seen()
		var f control.Failures
		if err := c.Do(control.Request{Op: control.OpFailed, Worker: w.Name, Since: since}, &f); err != nil {
			return err
		}
		for _, l := range f.Events {
			if l.Verdict == events.Deny {
				w.Net.Denials = append(w.Net.Denials, verify.Denial{Kind: string(l.Kind), Name: l.Name, Address: l.Address, Port: l.Port, Reason: l.Reason})
			}
		}
		return nil
	})
	v.refusedCounts(ctx, func(n *verify.Net, count uint64) { n.RefusedAfter = count })
	if v.o.Live {
		v.dialled(ctx, since)
	}
}

// dialled reads in the guard's log to which addresses it connected. Its state, which was
// asked for last, has written what was waiting.
func (v *verification) dialled(ctx context.Context, since time.Time) {
	log := GuardLog{Since: since.Format(time.RFC3339Nano), Tail: -1, Each: func(_ []byte, l events.Line) error {
		for _, w := range v.workers {
			if w.Net == nil || l.Verdict != events.Allow || !l.Explained || l.Room != w.Net.Room || l.Time.Before(since) {
				continue
			}
			if w.Net.Dialled == nil {
				w.Net.Dialled = map[string][]string{}
			}
			if !slices.Contains(w.Net.Dialled[l.Name], l.Address) && len(w.Net.Dialled[l.Name]) < 100 {
				w.Net.Dialled[l.Name] = append(w.Net.Dialled[l.Name], l.Address)
			}
		}
		return nil
	}}
	if _, err := log.Read(ctx, v.running); err != nil {
		v.env.warn("the guard's log: %s", Printable(plainText(EngineError(err))))
	}
}

// talk speaks with the guard about each worker that has a room.
func (v *verification) talk(ctx context.Context, about func(*control.Client, *verify.Worker, *firewall.Matcher) error) {
	matchers := map[string]*firewall.Matcher{}
	for i := range v.view.Effective {
		matchers[v.view.Effective[i].Room] = v.view.Effective[i].Compile()
	}
	err := v.env.withGuardIfAny(ctx, v, func(c *control.Client) error {
		for _, w := range v.workers {
			if w.Net != nil && w.Net.NoEvents == "" {
				if err := about(c, w, matchers[w.Net.Room]); err != nil {
					w.Net.NoEvents = plainText(err)
				}
			}
		}
		return nil
	})
	for _, w := range v.workers {
		if w.Net != nil && err != nil && w.Net.NoEvents == "" {
			w.Net.NoEvents = plainText(err)
		}
	}
}

// withGuardIfAny is withGuard where a worker has a room.
func (env *Env) withGuardIfAny(ctx context.Context, v *verification, talk func(*control.Client) error) error {
	for _, w := range v.workers {
		if w.Net != nil {
			return env.withGuard(ctx, v.running, talk)
		}
	}
	return nil
}

// refusedCounts reads the kernel's counts of refused packets.
func (v *verification) refusedCounts(ctx context.Context, set func(*verify.Net, uint64)) {
	_ = v.env.withGuardIfAny(ctx, v, func(c *control.Client) error { // talk has said why not
		s, err := guardState(c)
		for _, r := range s.Rooms {
			for _, w := range v.workers {
				if w.Net != nil && w.Net.Room == r.Room {
					set(w.Net, r.Refused)
				}
			}
		}
		return err
	})
}
