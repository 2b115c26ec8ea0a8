package proxy

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/firewall/request"
	"github.com/llmdo/workshop/internal/guard/events"
	"github.com/llmdo/workshop/internal/guard/git"
	"github.com/llmdo/workshop/internal/guard/leases"
	"github.com/llmdo/workshop/internal/guard/policy"
)

// endpoint is what a session to an endpoint does otherwise than one of plain HTTP. All of its
// methods that sessions of both kinds call are for a nil one too.
type endpoint struct {
	name string
	// held is the value of the credential for the request being served; nil: its line has
	// none. using: until it is sent.
	held  *leases.Held
	using bool
	// git is what the request being served is for git; its zero value: it isn't.
	git request.GitRequest
}

// Endpoint serves the requests of a worker's tools to the endpoint at: those that its line
// has are sent to its host by TLS, with the path and the query that were checked (B34).
func (r *Room) Endpoint(ctx context.Context, c *net.TCPConn, at string) {
	s := &httpSession{room: r, ctx: ctx, c: c, kind: events.Endpoint, at: &endpoint{name: at}}
	s.run()
}

// serveEndpoint decides about one request and carries it. What is refused costs no packet.
func (s *httpSession) serveEndpoint(req *http.Request) (keep bool, err error) {
	p := s.room.Policy()
	line, _ := p.Matcher.Endpoint(s.at.name)
	if line == nil {
		return false, fmt.Errorf("the policy has no endpoint %q any more", s.at.name)
	}
	name, _ := line.Host.Name()
	to := authority{name: name, port: line.Ports[0].First}
	target, err := s.checkRequest(req, line)
	if err != nil {
		s.refuse(&badRequest{why: err.Error(), reason: events.ReasonAmbiguous, to: to})
		return false, nil
	}
	// The body isn't read, so a connection with one can't be reused.
	keepRefused := bodyless(req) && !req.Close
	method := strings.Clone(req.Method)
	a := asked{method: method, target: target}
	x := route{Decision: decideRequest(p, s.at.name, a), to: to}
	if !x.Allowed {
		s.report(x.Decision, to)
		if x.Reason == firewall.ReasonRequest {
			return keepRefused, s.requestDenied(line, method, target, keepRefused)
		}
		return keepRefused, s.room.denied(s.c, to, x.Decision, keepRefused)
	}
	if done, err := s.readGit(req, line, &a, to); done {
		return false, err
	}
	if !s.at.take(s.room, line) {
		s.drop()
		return keepRefused, s.noCredential(line, to, keepRefused)
	}
	defer s.at.drop()
	if err := cmp.Or(s.at.checkOwn(req.Header), s.at.checkPush(line, target)); err != nil {
		s.refuse(&badRequest{why: err.Error(), reason: events.ReasonAmbiguous, to: to})
		return false, nil
	}
	if s.at.roots(s.room) == nil {
		return keepRefused, s.notYet(keepRefused)
	}
	if s.at.asks(a) {
		if done, err := s.askPush(req, line, a, to); done {
			return false, err
		}
		// What was agreed to is sent by the policy and the value of now.
		p = s.room.Policy()
		x.Decision = decideRequest(p, s.at.name, a)
		if !x.Allowed || !sameUse(x.Rule, line) || !s.at.take(s.room, x.Rule) {
			return false, s.noCredential(line, to, false)
		}
		if err := s.at.checkOwn(req.Header); err != nil {
			s.refuse(&badRequest{why: err.Error(), reason: events.ReasonAmbiguous, to: to})
			return false, nil
		}
	}
	x.again = s.at.again(line.Endpoint.Credential, a)
	if err := s.dial(p, x, to); err != nil {
		return keepRefused, s.unreachable(to, err, keepRefused)
	}
	req.Host = hostHeader(to)
	return s.exchange(req)
}

// asked is what a request to an endpoint asks for.
type asked struct {
	method string
	target request.Target
	// push is what a push by git does, without its head; read: what the body asks for is known.
	push   git.Push
	writes bool // a batch of LFS asks where to send objects
	read   bool
}

// has reports whether an endpoint's line has what is asked for, as far as it is known.
func (a asked) has(e firewall.Endpoint) bool {
	if e.Git.IsZero() {
		_, ok := e.Requests.Match(a.method, a.target)
		return ok
	}
	g, err := a.target.Git(a.method)
	return err == nil && e.Git.Match(g) && (!a.writes || e.Git.Pushes(g.Repository)) && len(refused(e.Git, g.Repository, a.push.Commands)) == 0
}

// decideRequest decides about a request at an endpoint.
func decideRequest(p *policy.Room, at string, a asked) firewall.Decision {
	line, d := p.Matcher.Endpoint(at)
	if !d.Allowed {
		return d
	}
	if !a.has(line.Endpoint) {
		return firewall.Decision{Rule: line, Reason: firewall.ReasonRequest}
	}
	return d
}

// again returns what decides about a request that runs: by its line and the credential that
// it has. That a lease ends doesn't end it.
func (e *endpoint) again(credential string, a asked) func(*policy.Room) firewall.Decision {
	held := e.held
	return func(p *policy.Room) firewall.Decision {
		d := decideRequest(p, e.name, a)
		if line := d.Rule; d.Allowed && !line.Endpoint.Git.IsZero() && !a.read {
			return firewall.Decision{Rule: line, Reason: firewall.ReasonRequest} // it was no line of git
		}
		if d.Allowed && (d.Rule.Endpoint.Credential != credential || held != nil && held.Revoked()) {
			return firewall.Decision{Rule: d.Rule, Reason: events.ReasonCredential}
		}
		return d
	}
}

// overriding are headers by which servers take another method or path than the request
// line has.
var overriding = []string{
	"X-Http-Method", "X-Http-Method-Override", "X-Method-Override", "X-Original-Method", "X-Forwarded-Method", "X-Original-Url", "X-Original-Uri", "X-Rewrite-Url", "X-Rewrite-Uri",
	"X-Envoy-Original-Path", "X-Forwarded-Prefix", "X-Forwarded-Uri",
}

// checkHeaders refuses headers that name another request than the one that is checked. Some
// servers read X_Original_URL as X-Original-URL, and Transfer_Encoding as the framing.
func checkHeaders(h http.Header) error {
	for name := range h {
		read := http.CanonicalHeaderKey(strings.ReplaceAll(name, "_", "-"))
		switch {
		case slices.Contains(overriding, read):
			return fmt.Errorf("the header %s would name another request than the one that is checked", name)
		case read != name && (slices.Contains(hopHeaders, read) || read == "Host" || read == "Content-Length"):
			return fmt.Errorf("the header %s could be read as %s", name, read)
		}
	}
	return nil
}

// checkRequest refuses what two programs could read in two ways, and what would carry
// another request than the one that is checked.
func (s *httpSession) checkRequest(req *http.Request, line *firewall.Rule) (request.Target, error) {
	here := strings.TrimPrefix(line.Endpoint.URL(), "http://")
	// http.ReadRequest has replaced the header of an absolute-form target.
	if req.URL.IsAbs() || req.URL.Host != "" {
		return request.Target{}, fmt.Errorf("the request must name a path: this is the endpoint %q, and no proxy", s.at.name)
	}
	if h := strings.ToLower(req.Host); h != here && h != strings.Replace(here, "127.0.0.1", "localhost", 1) {
		return request.Target{}, fmt.Errorf("the Host header must be %s, the address of the endpoint %q", here, s.at.name)
	}
	target, err := request.ParseTarget(strings.Clone(req.RequestURI), request.Options{EncodedSlash: line.Endpoint.EncodedSlash})
	if err != nil {
		return target, err
	}
	if name := target.CredentialParameter(); name != "" {
		return target, fmt.Errorf("the query has the parameter %s, which carries a credential", name)
	}
	if name := target.OverridingParameter(); name != "" {
		return target, fmt.Errorf("the query has the parameter %s, which would name another request than the one that is checked", name)
	}
	if err := checkHeaders(req.Header); err != nil {
		return target, err
	}
	if upgradeOf(req.Header) != "" {
		return target, fmt.Errorf("an endpoint carries requests, and no upgrade to %s", upgradeOf(req.Header))
	}
	return target, nil
}

// hostHeader is the Host of requests to an endpoint's host, whose scheme is https.
func hostHeader(to authority) string {
	if to.port == 443 {
		return to.host()
	}
	return net.JoinHostPort(to.host(), itoa(int64(to.port)))
}

// maxShown bounds the rules that a refusal names.
const maxShown = 20

// requestDenied answers 403, for a model: which requests there are, and that asking again
// is of no use.
func (s *httpSession) requestDenied(line *firewall.Rule, method string, target request.Target, keep bool) error {
	rules := line.Endpoint.Texts()
	var b strings.Builder
	what := fmt.Sprintf("%s of this path is not allowed at the endpoint %s: do not retry, tell the person", method, s.at.name)
	fmt.Fprintf(&b, "workshop: %s %s is not allowed at the endpoint %s (%s). It has these requests:\n", method, target.Path(), s.at.name, line.Host)
	for i, r := range rules {
		if i == maxShown {
			fmt.Fprintf(&b, "  and %d more\n", len(rules)-i)
			break
		}
		fmt.Fprintf(&b, "  %s\n", r)
	}
	if line.Endpoint.Git.IsZero() && strings.HasSuffix(target.Path(), "/info/refs") {
		b.WriteString("This is git's protocol, which needs a line with `git`. Cargo needs none from 1.68 on, with a registry that begins with sparse+http://.\n")
	}
	b.WriteString("Do not retry, tell the person.\n" + whatIsOpen)
	return respond(s.c, http.StatusForbidden, what, map[string]string{"X-Workshop-Deny": firewall.ReasonRequest}, b.String(), keep)
}

// notYet answers 503 while the guard has nothing to verify the host's certificate by.
func (s *httpSession) notYet(keep bool) error {
	what := fmt.Sprintf("the endpoint %s is closed: the guard has no certificates to verify its host by; the person can run `workshop up`", s.at.name)
	return respond(s.c, http.StatusServiceUnavailable, what, nil, "workshop: "+what+"\n", keep)
}

// target is the target that is sent: at an endpoint the one that was checked, byte for byte.
func (e *endpoint) target(req *http.Request) string {
	if e != nil || req.Method == http.MethodOptions && req.RequestURI == "*" {
		return req.RequestURI
	}
	return req.URL.RequestURI()
}

// answered takes the response of an endpoint's host: it can neither send a tool elsewhere by
// headers nor, where a credential was sent, give a worker a session of its own. A redirect to
// itself leads to the endpoint.
func (s *httpSession) answered(resp *http.Response) {
	if s.at == nil {
		return
	}
	h := resp.Header
	h.Del("Alt-Svc")
	h.Del("Refresh")
	if s.at.held != nil {
		h.Del("Set-Cookie")
		h.Del("Set-Cookie2")
		h.Del("Clear-Site-Data")
		if resp.StatusCode == http.StatusUnauthorized {
			s.at.held.Refused()
		}
	}
	line, _ := s.room.Policy().Matcher.Endpoint(s.at.name)
	if line == nil {
		return
	}
	own := "https://" + hostHeader(s.upTo.host)
	for _, name := range []string{"Location", "Content-Location"} {
		rest, ok := strings.CutPrefix(h.Get(name), own)
		if ok && (rest == "" || rest[0] == '/' || rest[0] == '?') {
			h.Set(name, line.Endpoint.URL()+rest)
		}
	}
}
