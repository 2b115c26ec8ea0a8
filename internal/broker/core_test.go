package broker

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/credential"
	"github.com/llmdo/workshop/internal/guard/lease"
	"github.com/llmdo/workshop/internal/secretsource"
)

func line(at, host, name string) lease.Line {
	return lease.Line{Room: "room", At: at, Host: host, Port: 443, Credential: name, Rule: "0000000000000000"}
}

func of(name string, lifetime time.Duration, hosts ...string) credential.Credential {
	c := credential.Credential{Name: name, Source: secretsource.Source{File: "/" + name}, Lifetime: lifetime}
	for _, h := range hosts {
		c.Hosts = append(c.Hosts, credential.Host{Name: h, Port: 443})
	}
	return c
}

var (
	git = line("git", "git.example", "forge")
	api = line("api", "api.git.example", "forge")
	npm = line("npm", "npm.example", "npm")
)

// run is a core with a clock of its own.
type run struct {
	t    *testing.T
	c    *Core
	now  time.Time
	asks []Reading
}

func newRun(t *testing.T, a Allowed, lines ...lease.Line) *run {
	r := &run{t: t, c: NewCore(), now: time.Unix(1000, 0)}
	r.c.Allow(a)
	r.c.Attached()
	r.c.Lines(lines)
	return r
}

// next is what is to be done after a while, in short.
func (r *run) next(after time.Duration, want string) {
	r.t.Helper()
	r.now = r.now.Add(after)
	s := r.c.Next(r.now)
	var out []string
	for _, m := range s.Send {
		switch m := m.(type) {
		case *lease.Lease:
			out = append(out, fmt.Sprintf("%s=%d:%s", m.At, m.Generation, strings.TrimPrefix(string(m.Value), "Bearer ")))
		case *lease.Revoke:
			out = append(out, "revoke "+m.Credential)
		}
	}
	for _, x := range s.Read {
		out = append(out, "read "+x.Credential.Name)
	}
	r.asks = append(r.asks, s.Read...)
	if got := strings.Join(out, ", "); got != want {
		r.t.Errorf("at %v: got %q, want %q", r.now.Sub(time.Unix(1000, 0)), got, want)
	}
}

// got answers the oldest reading.
func (r *run) got(value string) {
	x := r.asks[0]
	r.asks = r.asks[1:]
	if value == "" {
		r.c.Got(x, Value{}, errors.New("no "+x.Credential.Name), r.now)
		return
	}
	r.c.Got(x, Value{Secret: []byte(value)}, nil, r.now)
}

func (r *run) status(want string) {
	r.t.Helper()
	var out []string
	for _, s := range r.c.Status(r.now) {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %d %s", s.Name, s.State, s.Lines, s.Problem)))
	}
	if got := strings.Join(out, "; "); got != want {
		r.t.Errorf("status %q, want %q", got, want)
	}
}

// A value is read once, leased for each line, and renewed before it ends at the guard.
func TestLeases(t *testing.T) {
	forge := of("forge", 0, "git.example", "api.git.example")
	r := newRun(t, Allowed{git: forge, api: forge}, git, api)
	r.next(0, "read forge")
	r.status("forge waiting 0")
	r.next(time.Second, "")
	r.got("a")
	r.next(0, "git=1:a, api=1:a")
	r.status("forge leased 2")
	r.next(time.Second, "")
	r.next(Renew, "git=1:a, api=1:a")
	r.next(Renew-1, "")
	r.next(1, "git=1:a, api=1:a")
	if 2*Renew >= lease.Lasting {
		t.Error("a lost renewal ends a lease")
	}
}

// B33: what the user's file and consent don't have isn't leased, whatever the guard says.
func TestOnlyAllowed(t *testing.T) {
	forge := of("forge", 0, "git.example")
	other, wider := git, git
	other.Room, wider.Rule = "other", "0000000000000001"
	elsewhere := line("evil", "evil.example", "forge")
	r := newRun(t, Allowed{git: forge, elsewhere: forge, npm: of("forge", 0, "npm.example")}, git, api, other, wider, elsewhere, npm)
	r.next(0, "read forge")
	r.got("a")
	r.next(0, "git=1:a")
	r.c.Allow(nil)
	r.next(0, "revoke forge")
	r.status("")
	if r.c.Allow(Allowed{git: forge}); len(r.asks) > 0 {
		t.Error("read for nothing")
	}
	r.next(0, "read forge")
}

// What one line may have no more is taken back, and the others have it at once again.
func TestTakesBack(t *testing.T) {
	forge := of("forge", 0, "git.example", "api.git.example")
	r := newRun(t, Allowed{git: forge, api: forge, npm: of("npm", 0, "npm.example")}, git, api, npm)
	r.next(0, "read forge, read npm")
	r.got("a")
	r.got("b")
	r.next(0, "git=1:a, api=1:a, npm=1:b")
	r.c.Allow(Allowed{git: forge, npm: of("npm", 0, "npm.example")})
	r.next(0, "revoke forge, git=1:a")
	r.c.Lines([]lease.Line{npm}) // the guard has forgotten it with the line
	r.next(0, "")
	r.status("npm leased 1")
	// Another source is another value.
	moved := of("npm", 0, "npm.example")
	moved.Source.File = "/other"
	r.c.Allow(Allowed{npm: moved})
	r.next(0, "revoke npm, read npm")
}

// A value is read again at 80 % of its lifetime, the old one is good until its end, and no
// longer.
func TestRefreshes(t *testing.T) {
	r := newRun(t, Allowed{npm: of("npm", 100*time.Second, "npm.example")}, npm)
	r.next(0, "read npm")
	r.got("a")
	r.next(0, "npm=1:a")
	r.next(79*time.Second, "npm=1:a")
	r.next(time.Second, "read npm")
	r.next(10*time.Second, "npm=1:a") // never two at once
	r.got("b")
	r.next(0, "npm=2:b")
	r.next(80*time.Second, "npm=2:b, read npm")
	r.got("")
	r.status("npm leased 1 no npm")
	r.next(firstRetry, "npm=2:b, read npm")
	r.got("")
	r.next(10*time.Second, "")
	r.status("npm failed 0 no npm")
	r.next(10*time.Second, "read npm")
	r.got("c")
	r.next(0, "npm=3:c")
}

// A source that fails is asked again, less and less.
func TestRetries(t *testing.T) {
	r := newRun(t, Allowed{npm: of("npm", 0, "npm.example")}, npm)
	r.next(0, "read npm")
	for _, pause := range []time.Duration{10, 20, 40, 60, 60, 60} {
		r.got("")
		r.next(pause*time.Second-1, "")
		r.next(1, "read npm")
	}
	r.status("npm failed 0 no npm")
	r.got("a")
	r.next(0, "npm=1:a")
	r.next(5*time.Second, "")
	r.status("npm leased 1")
}

// A host that refuses has the value read again, once a minute; what a variable had stays.
func TestRefused(t *testing.T) {
	r := newRun(t, Allowed{npm: of("npm", 0, "npm.example")}, npm)
	r.c.Refused(&lease.Refused{Credential: "npm", Generation: 1}, r.now)
	r.next(0, "read npm")
	r.got("a")
	r.next(0, "npm=1:a")
	r.c.Refused(&lease.Refused{Credential: "npm", Generation: 7}, r.now)
	r.next(0, "")
	r.c.Refused(&lease.Refused{Credential: "npm", Generation: 1}, r.now)
	r.next(0, "read npm")
	r.status("npm refused 1")
	r.got("a")
	r.next(0, "")
	r.status("npm refused 1")
	r.c.Refused(&lease.Refused{Credential: "npm", Generation: 1}, r.now.Add(30*time.Second))
	r.next(59*time.Second, "npm=1:a")
	r.c.Refused(&lease.Refused{Credential: "npm", Generation: 1}, r.now.Add(time.Second))
	r.next(time.Second, "read npm")
	r.got("b")
	r.next(0, "npm=2:b")
	r.status("npm leased 1")
	c := of("npm", 0, "npm.example")
	c.Source = secretsource.Source{Env: "NPM"}
	r.c.Allow(Allowed{npm: c})
	r.next(0, "revoke npm, read npm")
	r.got("a")
	r.next(0, "npm=1:a")
	r.c.Refused(&lease.Refused{Credential: "npm", Generation: 1}, r.now)
	r.next(0, "")
}

// A new connection has no leases, and its lines are those that it says.
func TestAttachesAgain(t *testing.T) {
	r := newRun(t, Allowed{npm: of("npm", 0, "npm.example"), git: of("forge", 0, "git.example")}, npm)
	r.next(0, "read npm")
	r.got("a")
	r.next(0, "npm=1:a")
	r.c.Attached()
	r.next(0, "")
	r.c.Lines([]lease.Line{npm})
	r.next(0, "npm=1:a")
	r.c.Attached()
	r.c.Allow(Allowed{git: of("forge", 0, "git.example")})
	r.next(0, "")
	r.c.Allow(Allowed{npm: of("npm", 0, "npm.example")})
	r.c.Lines([]lease.Line{npm, git})
	r.next(0, "read npm")
}

// What no header can carry is said, and not sent.
func TestTooLong(t *testing.T) {
	r := newRun(t, Allowed{npm: of("npm", 0, "npm.example")}, npm)
	r.next(0, "read npm")
	r.got(strings.Repeat("x", lease.MaxValue))
	r.next(0, "")
	r.status("npm failed 0 for npm.example the value is not 1 to 8192 visible characters of ASCII, with blanks between them only")
}

// What is dropped is cleared, also what is read after that.
func TestClears(t *testing.T) {
	r := newRun(t, Allowed{npm: of("npm", 0, "npm.example")}, npm)
	r.next(0, "read npm")
	first, late := []byte("canary"), []byte("canary")
	r.c.Got(r.asks[0], Value{Secret: first}, nil, r.now)
	r.c.Refused(&lease.Refused{Credential: "npm", Generation: 1}, r.now)
	r.next(0, "npm=1:canary, read npm")
	r.c.Allow(nil)
	r.next(0, "revoke npm")
	r.c.Got(r.asks[1], Value{Secret: late}, nil, r.now)
	if string(first) == "canary" || string(late) == "canary" {
		t.Errorf("%q, %q", first, late)
	}
}

// B60: a guard that names its lines again and again, or one many times, has neither a source
// asked again nor more leases.
func TestGuardThatRepeats(t *testing.T) {
	r := newRun(t, Allowed{npm: of("npm", 0, "npm.example"), git: of("forge", 0, "git.example")}, npm, npm, npm)
	r.next(0, "read npm")
	for range 3 {
		r.c.Lines(nil)
		r.next(time.Second, "")
		r.c.Lines([]lease.Line{npm, npm})
		r.next(0, "")
	}
	r.got("")
	r.c.Lines(nil)
	r.next(0, "")
	r.status("")
	r.c.Lines([]lease.Line{npm, npm})
	r.next(0, "")
	r.next(firstRetry, "read npm")
	r.got("a")
	r.next(0, "npm=1:a")
	r.c.Lines(nil)
	r.next(0, "")
	r.c.Lines([]lease.Line{npm, npm})
	r.next(0, "npm=1:a")
	r.next(Renew, "npm=1:a")
}

// A lifetime is one of the clock on the wall: it goes on while the machine sleeps. Where that
// was set back, nobody knows how old a value is.
func TestLifetimeOfAMachineThatSleeps(t *testing.T) {
	r := newRun(t, Allowed{npm: of("npm", time.Hour, "npm.example")}, npm)
	r.now = time.Now()
	r.next(0, "read npm")
	r.got("a")
	if text := r.c.held["npm"].read.String(); strings.Contains(text, "m=") { // time.Time.String
		t.Errorf("read at %s", text)
	}
	r.next(0, "npm=1:a")
	r.now = r.now.Round(0)
	r.next(-time.Minute, "read npm")
	r.next(Renew, "")
	r.got("b")
	r.next(0, "npm=2:b")
}

// An upstream proxy gets what is of its form, USER:PASSWORD; a value without a user is a
// problem, in which there is none of it. An endpoint's credential goes to no proxy.
func TestProxyCredential(t *testing.T) {
	corp := of("corp", 0)
	corp.As = credential.Form{Proxy: true}
	corp.Hosts = []credential.Host{{Name: "proxy.example", Port: 3128}}
	line := lease.Line{Host: "proxy.example", Port: 3128, Credential: "corp", Rule: "0000000000000000"}
	r := newRun(t, Allowed{line: corp}, line)
	r.next(0, "read corp")
	r.got("canary-5d")
	if s := r.c.Status(r.now); len(s) != 1 || s[0].State != Failed || !strings.Contains(s[0].Problem, "no colon") || strings.Contains(s[0].Problem, "canary") {
		t.Errorf("%+v", s)
	}
	r.next(firstRetry, "read corp")
	r.got("user:pass")
	s := r.c.Next(r.now)
	if m, ok := s.Send[0].(*lease.Lease); len(s.Send) != 1 || !ok || m.Line != line || m.Header != "Proxy-Authorization" || string(m.Value) != "Basic dXNlcjpwYXNz" {
		t.Errorf("%+v", s.Send)
	}
	bearer := corp
	bearer.As = credential.Form{}
	at := line
	at.Room, at.At = "room", "a"
	newRun(t, Allowed{line: bearer}, line).next(0, "")
	newRun(t, Allowed{at: corp}, at).next(0, "")
}
