package guard

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/kept"
	"github.com/llmdo/workshop/internal/guard/policy"
	"github.com/llmdo/workshop/internal/lib/clip"
)

// maxLive bounds the live changes of one guard: more than anybody types, and few
// enough for one line of response.
const maxLive = 256

// live is the policy of the file and the live changes to it. It has no clock and
// no room; the guard's lock protects it.
type live struct {
	base     *firewall.Policy // expanded
	digest   policy.Digest    // of base
	changes  []firewall.Live
	learning map[string]time.Time // when each room's learning ends
	away     []kept.Deny          // denies of workers that are in no room now
}

// clone returns a copy that can be changed.
func (l *live) clone() *live {
	c := *l
	c.changes, c.away = slices.Clone(l.changes), slices.Clone(l.away)
	c.learning = maps.Clone(l.learning)
	if c.learning == nil {
		c.learning = map[string]time.Time{}
	}
	return &c
}

// effective returns the policy that the guard enforces.
func (l *live) effective() *firewall.Policy {
	return l.base.Overlay(l.changes, func(room string) bool { _, ok := l.learning[room]; return ok })
}

// reset clears all changes, and learning.
func (l *live) reset() { l.changes, l.away, l.learning = nil, nil, map[string]time.Time{} }

// add checks a change and adds it. It replaces older changes for the same target,
// port by port. An allow of what the file allows, which was denied, adds nothing:
// it has ended the deny.
func (l *live) add(c firewall.Live) (ended bool, err error) {
	switch {
	case c.Rule.Template != "" || c.Rule.Preset != "" || !c.Rule.Endpoint.IsZero():
		return false, errors.New("a live change has neither a template nor a preset nor an endpoint")
	case c.Room != "":
		if err := l.hasNetwork(c.Room); err != nil {
			return false, err
		}
	case !slices.ContainsFunc(l.base.Rooms, func(r firewall.RoomPolicy) bool { return r.Mode != firewall.None }):
		return false, errors.New("no room has a network: set `network: restricted` in workshop.yaml")
	}
	if err := c.Check(); err != nil {
		return false, err
	}
	if err := l.ownedBy(c); err != nil {
		return false, err
	}
	c.Rule.Ports = firewall.NormalizePorts(c.Rule.Ports)
	var left []firewall.Live
	for _, old := range l.changes {
		if old.Rule.Target() == c.Rule.Target() && (c.Room == "" || c.Room == old.Room) {
			ports := firewall.SubtractPorts(old.Rule.Ports, c.Rule.Ports)
			ended = ended || old.Deny && !slices.Equal(ports, old.Rule.Ports)
			if old.Rule.Ports = ports; len(ports) == 0 {
				continue
			}
		}
		left = append(left, old)
	}
	l.changes = left
	if c.Room == "" {
		l.away = slices.DeleteFunc(l.away, func(d kept.Deny) bool {
			return d.Rule.Target() == c.Rule.Target() && len(firewall.SubtractPorts(d.Rule.Ports, c.Rule.Ports)) == 0
		})
	}
	if !c.Deny {
		if err := l.denied(c); err != nil {
			return false, err
		}
		if ended && l.inFile(c) {
			return true, nil
		}
	}
	if len(l.changes)+len(l.away) >= maxLive {
		return false, fmt.Errorf("more than %d live changes: end some, or write them into workshop.yaml", maxLive)
	}
	l.changes = append(l.changes, c)
	return false, nil
}

// denies returns the denies with the workers that those of a room follow.
func (l *live) denies() (out []kept.Deny) {
	for _, c := range l.changes {
		if !c.Deny {
			continue
		}
		d := kept.Deny{Live: c}
		if r, ok := l.find(c.Room); ok {
			d.Workers = r.Workers
		}
		out = append(out, d)
	}
	return append(out, l.away...)
}

// place adds a deny, which has its Until, to the rooms that its workers are in, unless
// it is over.
func (l *live) place(d kept.Deny, now time.Time) {
	if over(d.Until, now) {
		return
	}
	add := func(room string) {
		c := d.Live
		c.Room = room
		if !slices.ContainsFunc(l.changes, func(x firewall.Live) bool { return reflect.DeepEqual(x, c) }) {
			l.changes = append(l.changes, c)
		}
	}
	if d.Room == "" {
		add("")
		return
	}
	left := slices.Clone(d.Workers)
	for _, r := range l.base.Rooms {
		here := func(w string) bool { return slices.Contains(r.Workers, w) }
		same := len(d.Workers) == 0 && r.Room == d.Room
		if r.Mode != firewall.None && (same || slices.ContainsFunc(left, here)) {
			add(r.Room)
			left = slices.DeleteFunc(left, here)
		}
	}
	if len(left) > 0 {
		d.Workers, d.Ends = left, 0
		l.away = append(l.away, d)
	}
}

// replace makes p the policy of the file; denies follow the workers of their rooms.
func (l *live) replace(p *firewall.Policy, digest policy.Digest, now time.Time) {
	denies := l.denies()
	l.changes = slices.DeleteFunc(l.changes, func(c firewall.Live) bool { return c.Deny })
	l.base, l.digest, l.away = p, digest, nil
	for _, d := range denies {
		l.place(d, now)
	}
}

// inFile reports whether the file allows what an allow does, in each of its rooms.
func (l *live) inFile(c firewall.Live) bool {
	return !slices.ContainsFunc(l.base.Rooms, func(r firewall.RoomPolicy) bool {
		return r.Mode != firewall.None && (c.Room == "" || c.Room == r.Room) && !firewall.CoveredBy(c.Rule, r.Allow)
	})
}

// hasNetwork returns an error if nothing can be changed for a room.
func (l *live) hasNetwork(room string) error {
	for i := range l.base.Rooms {
		if r := &l.base.Rooms[i]; r.Room == room {
			if r.Mode == firewall.None {
				return fmt.Errorf("room %q has no network: nothing can be allowed or denied there", room)
			}
			return nil
		}
	}
	return fmt.Errorf("there is no room %q", clip.Bytes(room, maxText))
}

// denied refuses an allow that a deny line overrides: deny always wins.
func (l *live) denied(c firewall.Live) error {
	for _, r := range l.base.Rooms {
		if r.Mode == firewall.None || c.Room != "" && c.Room != r.Room {
			continue
		}
		deny := slices.Clip(r.Deny)
		for _, x := range l.changes {
			if x.Deny && (x.Room == "" || x.Room == r.Room) {
				deny = append(deny, x.Rule)
			}
		}
		if d := denier(c.Rule, deny); d != nil {
			return fmt.Errorf("%s stays denied in room %q by %s (%s): deny always wins", target(c.Rule), r.Room, target(*d), d.Line)
		}
	}
	return nil
}

// denier returns one of the deny lines that close an allow completely; nil if part
// of it stays open.
func denier(allow firewall.Rule, deny []firewall.Rule) *firewall.Rule {
	// Keys of allow lines alone don't keep a deny line from closing it.
	allow.Private, allow.ECH, allow.Upload = false, false, firewall.Budget{}
	if !firewall.CoveredBy(allow, deny) {
		return nil
	}
	for i := range deny {
		common := allow
		common.Ports = firewall.SubtractPorts(allow.Ports, firewall.SubtractPorts(allow.Ports, deny[i].Ports))
		if deny[i].Covers(common) {
			return &deny[i]
		}
	}
	return nil
}

// learn begins learning in rooms until then, or ends it if until is zero; no name
// means all rooms that can learn. It returns their names.
func (l *live) learn(rooms []string, until time.Time) ([]string, error) {
	if len(rooms) == 0 {
		for _, r := range l.base.Rooms {
			if r.Mode == firewall.Restricted {
				rooms = append(rooms, r.Room)
			}
		}
		if len(rooms) == 0 {
			return nil, errors.New("no room can learn: none has `network: restricted`")
		}
	}
	for _, name := range rooms {
		if err := l.hasNetwork(name); err != nil {
			return nil, err
		}
		for i := range l.base.Rooms {
			if r := &l.base.Rooms[i]; r.Room == name && r.Mode != firewall.Restricted {
				return nil, fmt.Errorf("room %q has mode %s: there is nothing to learn", name, r.Mode)
			}
		}
		if until.IsZero() {
			delete(l.learning, name)
		} else {
			l.learning[name] = until
		}
	}
	return rooms, nil
}

// check refuses more port ranges than the rooms can redirect.
func (l *live) check() error {
	for _, r := range l.effective().Rooms {
		if n := len(firewall.RoomPorts(r)); n > firewall.MaxRedirects {
			return fmt.Errorf("room %q: %d port ranges with the live changes, at most %d are possible", r.Room, n, firewall.MaxRedirects)
		}
	}
	return nil
}

// target returns a rule's target with its ports.
func target(r firewall.Rule) string { return r.Target() + ":" + firewall.FormatPorts(r.Ports) }

// maxText bounds quoted input, in bytes.
const maxText = 128
