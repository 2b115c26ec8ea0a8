package firewall

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/llmdo/workshop/firewall/request"
	"github.com/llmdo/workshop/internal/lib/clip"
)

// Endpoint makes a line of allow an endpoint: a worker's tools reach the host by plain
// HTTP at a port of the room's loopback, and the guard sends each request that Requests
// has on by TLS. The host is then reached in no other way. The zero value is none.
type Endpoint struct {
	// At is its name, for one host in the whole workshop: see [ValidEndpointName].
	At string `json:"at"`
	// Port of 127.0.0.1 inside the room, [FirstEndpoint] to [LastEndpoint]; assigned by
	// the compile, see [AssignEndpoints].
	Port uint16 `json:"port"`
	// Requests are those that are sent on; at least one rule, or Git.
	Requests request.Rules `json:"requests,omitempty"`
	// Git makes it one for git alone, without Requests.
	Git request.Git `json:"git,omitzero"`
	// EncodedSlash allows %2f in a path, as npm has it between scope and name.
	EncodedSlash bool `json:"encoded_slash,omitempty"`
	// Credential is the name of the user's credential that the guard adds to each request,
	// as [ValidEndpointName] has it; empty: none. The value is never part of a policy.
	Credential string `json:"credential,omitempty"`
}

// DummyToken is what a tool that doesn't start without a token is given: the guard accepts
// it beside a credential, and never sends it on.
const DummyToken = "workshop"

// IsZero reports whether there is no endpoint.
func (e Endpoint) IsZero() bool { return e.At == "" }

// URL is where a room's tools reach the endpoint, without a slash at its end.
func (e Endpoint) URL() string { return "http://127.0.0.1:" + strconv.Itoa(int(e.Port)) }

// Variable is the environment variable of workers that has the URL, such as
// WORKSHOP_ENDPOINT_GITHUB_API for github-api.
func (e Endpoint) Variable() string {
	return "WORKSHOP_ENDPOINT_" + strings.ToUpper(strings.ReplaceAll(e.At, "-", "_"))
}

// Texts are what is sent on, one rule a line: "GET,HEAD /a/**", or "git: read acme/app".
func (e Endpoint) Texts() []string {
	out := e.Requests.Texts()
	for _, text := range e.Git.Texts() {
		out = append(out, "git: "+text)
	}
	return out
}

// Apart reports whether no path is one of both endpoints, as the first segments say: a tool
// can tell by the path which of two for one host is meant.
func (e Endpoint) Apart(o Endpoint) bool {
	a, few := e.firsts()
	b, fewToo := o.firsts()
	return few && fewToo && !slices.ContainsFunc(a, func(s string) bool { return slices.Contains(b, s) })
}

func (e Endpoint) firsts() (firsts []string, ok bool) {
	if !e.Git.IsZero() {
		return e.Git.Owners()
	}
	return e.Requests.Firsts()
}

// String is "at github [GET,HEAD /a/**; POST /b] encoded_slash credential github", equal for
// endpoints that let the same through; empty for none. No rule has a ";" in it.
func (e Endpoint) String() string {
	if e.IsZero() {
		return ""
	}
	out := "at " + e.At + " [" + strings.Join(e.Texts(), "; ") + "]"
	if e.EncodedSlash {
		out += " encoded_slash"
	}
	if e.Credential != "" {
		out += " credential " + e.Credential
	}
	return out
}

// The ports of endpoints. A room's worker can't listen below 1024.
const (
	FirstEndpoint = 600
	LastEndpoint  = 999
)

// MaxEndpoints bounds those of a workshop.
const MaxEndpoints = 64

// HasEndpoints reports whether a room has one.
func (p *Policy) HasEndpoints() bool {
	return slices.ContainsFunc(p.Rooms, func(r RoomPolicy) bool {
		return slices.ContainsFunc(r.Allow, func(r Rule) bool { return !r.Endpoint.IsZero() })
	})
}

// WithRoots returns a copy with [Policy.Roots].
func (p *Policy) WithRoots(roots [][]byte) *Policy {
	q := *p
	q.Roots = roots
	return &q
}

// EndpointNameForm says in words what [ValidEndpointName] takes.
const EndpointNameForm = "a lower-case letter, then letters, digits and single hyphens, 40 in all at most"

// ValidEndpointName reports whether s can be the name of an endpoint: a lower-case letter,
// then up to 39 letters, digits and single hyphens. It is part of the name of an
// environment variable.
func ValidEndpointName(s string) bool {
	if s == "" || len(s) > 40 || s[0] < 'a' || s[0] > 'z' || s[len(s)-1] == '-' {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
		case c == '-' && s[i-1] != '-':
		default:
			return false
		}
	}
	return true
}

// AssignEndpoints returns the port of each name: in the order of the names the lowest of
// [FirstEndpoint] to [LastEndpoint] that isn't one of taken. It fails where there are too
// few.
func AssignEndpoints(names []string, taken []PortRange) (map[string]uint16, error) {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	ports := make(map[string]uint16, len(names))
	next := FirstEndpoint
	for _, n := range names {
		for next <= LastEndpoint && HasPort(taken, uint16(next)) {
			next++
		}
		if next > LastEndpoint {
			return nil, fmt.Errorf("no port of %d to %d is left for the endpoint %q: lines of the network name the others", FirstEndpoint, LastEndpoint, n)
		}
		ports[n] = uint16(next)
		next++
	}
	return ports, nil
}

// Within reports whether all that e lets through is let through by o: only endpoints of
// one name are compared, and a line that is none is never inside of one that is. One with a
// credential is inside of one with the same alone.
func (e Endpoint) Within(o Endpoint) bool {
	if e.IsZero() || o.IsZero() {
		return e.IsZero() && o.IsZero()
	}
	if !e.Git.Within(o.Git) {
		return false
	}
	return e.At == o.At && (o.EncodedSlash || !e.EncodedSlash) && (e.Credential == "" || e.Credential == o.Credential) && e.Requests.Within(o.Requests)
}

// checkEndpoint returns an error if a line can't be the endpoint that it is.
func (r Rule) checkEndpoint(deny bool) error {
	e := r.Endpoint
	_, exact := r.Host.Name()
	switch {
	case e.At == "":
		if e.Port != 0 || len(e.Requests) > 0 || !e.Git.IsZero() || e.EncodedSlash || e.Credential != "" {
			return errors.New("the endpoint has no name")
		}
		return nil
	case !ValidEndpointName(e.At):
		return fmt.Errorf("the endpoint's name %q is not a lower-case letter and then letters, digits and single hyphens", clip.Bytes(e.At, shown))
	case e.Credential != "" && !ValidEndpointName(e.Credential):
		return fmt.Errorf("the credential's name %q is not a lower-case letter and then letters, digits and single hyphens", clip.Bytes(e.Credential, shown))
	case deny:
		return errors.New("endpoints are for lines of allow")
	case !exact:
		return errors.New("an endpoint is for one host, with its name written out")
	case r.ECH:
		return errors.New("ech is not for endpoints: the guard itself speaks TLS")
	case len(r.Ports) != 1 || r.Ports[0].First != r.Ports[0].Last:
		return errors.New("an endpoint is for one port")
	case e.Port < FirstEndpoint || e.Port > LastEndpoint:
		return fmt.Errorf("the endpoint's port %d is not one of %d to %d", e.Port, FirstEndpoint, LastEndpoint)
	case !e.Git.IsZero():
		return e.checkGit()
	case len(e.Requests) == 0:
		return errors.New("the endpoint has no requests")
	case len(e.Requests) > request.MaxRules:
		return fmt.Errorf("the endpoint has more than %d rules for requests", request.MaxRules)
	}
	return nil
}

// checkGit returns an error if an endpoint of git can't be one.
func (e Endpoint) checkGit() error {
	switch {
	case len(e.Requests) > 0:
		return errors.New("the endpoint has both requests and git")
	case e.EncodedSlash:
		return errors.New("encoded_slash is for requests, and the endpoint has git")
	case e.Credential != "" && e.Git.Any() && !e.Git.AnyRepository:
		return fmt.Errorf("the credential %s would be sent for repositories of every owner: name the owners, or confirm it by any_repository", e.Credential)
	}
	return e.Git.Check()
}

// checkEndpoints returns an error if the endpoints of the rooms can't be those of one
// workshop, in which a name means the same everywhere.
func (p *Policy) checkEndpoints() error {
	type meaning struct {
		host HostPattern
		to   uint16
		port uint16
	}
	known := map[string]meaning{}
	for i := range p.Rooms {
		if err := p.Rooms[i].checkEndpoints(); err != nil {
			return fmt.Errorf("room %q: %w", p.Rooms[i].Room, err)
		}
		for _, r := range p.Rooms[i].Allow {
			if r.Endpoint.IsZero() {
				continue
			}
			now := meaning{r.Host, r.Ports[0].First, r.Endpoint.Port}
			if before, ok := known[r.Endpoint.At]; ok && before != now {
				return fmt.Errorf("room %q: the endpoint %q is another one than in a room before", p.Rooms[i].Room, r.Endpoint.At)
			}
			known[r.Endpoint.At] = now
		}
	}
	if len(known) > MaxEndpoints {
		return fmt.Errorf("%d endpoints, at most %d", len(known), MaxEndpoints)
	}
	return nil
}

// checkEndpoints returns an error if endpoints of a room contradict each other, or if
// another line has the name of one: a host that has an endpoint is reached by it alone.
func (p *RoomPolicy) checkEndpoints() error {
	byPort, byName, hosts := map[uint16]string{}, map[string]bool{}, map[HostPattern][]*Rule{}
	for i := range p.Allow {
		r := &p.Allow[i]
		e := r.Endpoint
		if e.IsZero() {
			continue
		}
		if p.Mode == Open {
			return fmt.Errorf("the endpoint %q in mode open, which reaches its host without it", e.At)
		}
		if other, ok := byPort[e.Port]; ok || byName[e.At] {
			return fmt.Errorf("the endpoint %q has the name or the port of another (%q)", e.At, other)
		}
		byPort[e.Port], byName[e.At] = e.At, true
		for _, o := range hosts[r.Host] {
			if !o.Endpoint.Apart(e) {
				return fmt.Errorf("the endpoints %q and %q for %s may have the same requests: give them paths with different first segments", o.Endpoint.At, e.At, r.Host)
			}
		}
		hosts[r.Host] = append(hosts[r.Host], r)
	}
	for i := range p.Allow {
		r := &p.Allow[i]
		if owner := hosts[r.Host]; len(owner) > 0 && r.Endpoint.IsZero() {
			return fmt.Errorf("%s has the endpoint %q, so no other line can have its name", r.Host, owner[0].Endpoint.At)
		}
	}
	return nil
}
