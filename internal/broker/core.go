package broker

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/llmdo/workshop/internal/credential"
	"github.com/llmdo/workshop/internal/guard/lease"
	"github.com/llmdo/workshop/internal/lib/sortfunc"
)

// Times of leases. Renew is a third of [lease.Lasting], so that two may be lost.
const (
	Renew = 10 * time.Second
	// refreshApart is how long a value that a host refused isn't read again for that.
	refreshApart = time.Minute
	// A source that fails is asked again after firstRetry, then twice as long, up to lastRetry.
	firstRetry = 10 * time.Second
	lastRetry  = time.Minute
)

// refreshAt is the part of its lifetime after which a value is read again.
const refreshAt = 0.8

// Value is what was read for a credential.
type Value struct {
	Secret []byte
	Roots  [][]byte // the file's `ca`, in DER
}

func (v Value) equal(o Value) bool {
	return bytes.Equal(v.Secret, o.Secret) && slices.EqualFunc(v.Roots, o.Roots, bytes.Equal)
}

// Allowed says which lines may have which credential, by the user's file and consent.
type Allowed map[lease.Line]credential.Credential

// Reading is a value that is to be read; [Core.Got] takes it back.
type Reading struct {
	Credential credential.Credential
	of         *held
}

// Step is what is to be done now: messages to the guard, in order, and values to be read.
type Step struct {
	Send []any // *lease.Lease or *lease.Revoke
	Read []Reading
}

// Core decides what is read, leased and revoked, and when. The zero value isn't ready:
// [NewCore]. It isn't for several goroutines.
type Core struct {
	allowed Allowed
	guard   []lease.Line // its lines with a credential
	silent  bool         // the guard hasn't said them yet
	held    map[string]*held
	leased  map[lease.Line]uint64 // generations that the attached guard was sent
	renewed time.Time
}

// held is a credential that a line needs.
type held struct {
	of         credential.Credential
	value      Value
	generation uint64    // 0: there has been no value
	read       time.Time // by the clock on the wall, which goes on while the machine sleeps
	reading    bool
	again      bool      // it is to be read again: a host refused the value
	asked      time.Time // when it was last read because of that
	refused    bool      // the value of this generation was refused
	problem    string    // of the last reading, or with the value
	failures   int
	next       time.Time // of the next reading after a failure
}

// NewCore returns a core that may lease nothing.
func NewCore() *Core {
	return &Core{silent: true, held: map[string]*held{}, leased: map[lease.Line]uint64{}}
}

// Allow sets what may be leased from now on.
func (c *Core) Allow(a Allowed) { c.allowed = a }

// Lines are what the attached guard has. One that it says twice is one.
func (c *Core) Lines(lines []lease.Line) {
	c.guard, c.silent = nil, false
	seen := make(map[lease.Line]bool, len(lines))
	for _, l := range lines {
		if !seen[l] {
			seen[l], c.guard = true, append(c.guard, l)
		}
	}
}

// Attached says that there is a new connection, whose guard has no leases.
func (c *Core) Attached() {
	clear(c.leased)
	c.guard, c.silent = nil, true
}

// Refused says that a host answered 401 to a value. news: it is the one that is leased, and
// that wasn't known, or it is read again.
func (c *Core) Refused(m *lease.Refused, now time.Time) (news bool) {
	h := c.held[m.Credential]
	if h == nil || h.generation != m.Generation || h.value.Secret == nil {
		return false
	}
	news, h.refused = !h.refused, true
	// A variable of the `up` that gave it stays what it is.
	if h.of.Source.Env == "" && (h.asked.IsZero() || now.Sub(h.asked) >= refreshApart) {
		h.again, h.asked, news = true, now, true
	}
	return news
}

// Got takes what a reading has found.
func (c *Core) Got(r Reading, v Value, err error, now time.Time) {
	h := r.of
	h.reading = false
	if err == nil {
		err = h.of.As.CheckValue(v.Secret)
	}
	if c.held[h.of.Name] != h { // nobody wants it any more
		clear(v.Secret)
		return
	}
	if err != nil {
		clear(v.Secret)
		h.problem = err.Error()
		h.next = now.Add(min(firstRetry<<min(h.failures, 8), lastRetry))
		h.failures++
		return
	}
	h.failures, h.problem, h.read, h.next = 0, "", now.Round(0), time.Time{}
	if h.generation > 0 && h.value.equal(v) {
		clear(v.Secret)
		return
	}
	clear(h.value.Secret)
	h.value, h.refused = v, false
	h.generation++
}

// Next returns what is to be done now. It is called after each change, and at least every
// second or so, because time goes on.
func (c *Core) Next(now time.Time) (s Step) {
	lines := c.lines()
	needed := map[string]credential.Credential{}
	for _, l := range lines {
		needed[l.Credential] = c.allowed[l]
	}
	for name, h := range c.held {
		if !c.mayHold(h) {
			clear(h.value.Secret)
			delete(c.held, name)
		}
	}
	s.Send = c.revoke(lines)
	for _, name := range slices.Sorted(maps.Keys(needed)) {
		if c.silent {
			break
		}
		h := c.held[name]
		if h == nil {
			h = &held{of: needed[name]}
			c.held[name] = h
		}
		if h.due(now) {
			h.reading, h.again = true, false
			s.Read = append(s.Read, Reading{h.of, h})
		}
	}
	all := now.Sub(c.renewed) >= Renew || now.Before(c.renewed)
	if all {
		c.renewed = now
	}
	for _, l := range lines {
		h := c.held[l.Credential]
		if !h.good(now) || !all && c.leased[l] == h.generation {
			continue
		}
		if m := h.lease(l); m != nil {
			c.leased[l] = h.generation
			s.Send = append(s.Send, m)
		}
	}
	return s
}

// mayHold reports whether a line may have the credential still, by the user's file and
// consent. What the guard says doesn't matter: one that crashes, or names and forgets its
// lines again and again, would have the source asked each time (B60).
func (c *Core) mayHold(h *held) bool {
	for _, of := range c.allowed {
		if of.Name == h.of.Name && reflect.DeepEqual(of, h.of) {
			return true
		}
	}
	return false
}

// lines are those of the guard that may have their credential.
func (c *Core) lines() (out []lease.Line) {
	for _, l := range c.guard {
		if of, ok := c.allowed[l]; ok && of.For(l) {
			out = append(out, l)
		}
	}
	return out
}

// asks returns the credential of a line with which pushes are asked about; ok reports whether
// the line may have it now.
func (c *Core) asks(l lease.Line) (of credential.Credential, ok bool) {
	of = c.allowed[l]
	return of, of.AskPush && slices.Contains(c.lines(), l)
}

// revoke takes back what was leased for lines that may not have it any more, or not from
// where it came. The guard knows credentials, so the others of the same are leased again.
// Lines that the guard hasn't any more it has forgotten itself, with the rule.
func (c *Core) revoke(lines []lease.Line) (out []any) {
	maps.DeleteFunc(c.leased, func(l lease.Line, _ uint64) bool { return !slices.Contains(c.guard, l) })
	names := map[string]bool{}
	for l := range c.leased {
		if !slices.Contains(lines, l) || c.held[l.Credential] == nil {
			names[l.Credential] = true
		}
	}
	maps.DeleteFunc(c.leased, func(l lease.Line, _ uint64) bool { return names[l.Credential] })
	for _, name := range slices.Sorted(maps.Keys(names)) {
		out = append(out, &lease.Revoke{Credential: name})
	}
	return out
}

// due reports whether the value is to be read now.
func (h *held) due(now time.Time) bool {
	switch {
	case h.reading || now.Before(h.next):
		return false
	case h.value.Secret == nil, h.again, h.failures > 0:
		return true
	}
	return h.of.Lifetime > 0 && (h.age(now) < 0 || h.age(now) >= time.Duration(refreshAt*float64(h.of.Lifetime)))
}

// age is how old the value is; below 0: the clock was set back, so nobody knows.
func (h *held) age(now time.Time) time.Duration { return now.Sub(h.read) }

// good reports whether there is a value, and its time isn't over.
func (h *held) good(now time.Time) bool {
	return h.value.Secret != nil && (h.of.Lifetime == 0 || h.age(now) >= 0 && h.age(now) < h.of.Lifetime)
}

// lease returns the message that leases the value for a line; nil if it can't be sent.
func (h *held) lease(l lease.Line) *lease.Lease {
	name, text := h.of.As.In(l.Host, string(h.value.Secret))
	m := &lease.Lease{Line: l, Generation: h.generation, Header: name, Value: lease.Value(text), Roots: h.value.Roots, AskPush: h.of.AskPush}
	if err := m.Value.Check(); err != nil {
		h.problem = fmt.Sprintf("for %s %v", l.Host, err)
		return nil
	}
	return m
}

// Status is how a credential stands. It has nothing of a value.
type Status struct {
	Name   string `json:"name"`
	Source string `json:"source"`
	State  string `json:"state"` // one of those below
	// Lines are how many have it leased now.
	Lines   int    `json:"lines"`
	Problem string `json:"problem,omitempty"`
}

// The states of a credential.
const (
	Leased  = "leased"
	Waiting = "waiting" // it is being read
	Failed  = "failed"
	Refused = "refused" // by a host
)

// Status returns how each credential stands that a line of the guard needs, by name.
func (c *Core) Status(now time.Time) []Status {
	out := []Status{}
	needed := map[string]bool{}
	for _, l := range c.lines() {
		needed[l.Credential] = true
	}
	for name, h := range c.held {
		if !needed[name] && !c.silent {
			continue
		}
		s := Status{Name: name, Source: h.of.Source.String(), State: Waiting, Problem: h.problem}
		for l := range c.leased {
			if l.Credential == name && h.good(now) {
				s.Lines++
			}
		}
		switch {
		case s.Lines > 0 && h.refused:
			s.State = Refused
		case s.Lines > 0:
			s.State = Leased
		case h.problem != "":
			s.State = Failed
		}
		out = append(out, s)
	}
	sortfunc.Stable(out, func(x, y Status) int { return cmp.Compare(x.Name, y.Name) })
	return out
}
