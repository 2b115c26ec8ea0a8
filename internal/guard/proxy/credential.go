package proxy

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/events"
)

// take takes the value of the line's credential for one request, if the line has one; ok is
// false if there is none now.
func (e *endpoint) take(r *Room, line *firewall.Rule) (ok bool) {
	e.drop()
	e.held = nil
	if line.Endpoint.Credential == "" {
		return true
	}
	if r.Lease != nil {
		e.held = r.Lease(line)
	}
	e.using = e.held != nil
	return e.using
}

// drop ends the use of the value; what it was is known still.
func (e *endpoint) drop() {
	if e.using {
		e.using = false
		e.held.Release()
	}
}

// noCredential answers 503 while the value isn't there. No packet was sent.
func (s *httpSession) noCredential(line *firewall.Rule, to authority, keep bool) error {
	s.report(firewall.Decision{Rule: line, Reason: events.ReasonCredential}, to)
	name := line.Endpoint.Credential
	what := fmt.Sprintf("the credential %s of the endpoint %s isn't there now, nothing was sent: tell the person, who can run `workshop up` or `workshop credential test %s`", name, s.at.name, name)
	return respond(s.c, http.StatusServiceUnavailable, what, map[string]string{"X-Workshop-Deny": events.ReasonCredential}, "workshop: "+what+"\n", keep)
}

const dummy = firewall.DummyToken

// credentialHeaders carry credentials of widespread servers, and credentialPrefixes begin
// names of others.
var (
	credentialHeaders = []string{
		"authorization", "cookie", "cookie2", "x-api-key", "api-key", "x-goog-api-key", "private-token", "job-token", "deploy-token", "x-auth-token", "x-access-token",
	}
	credentialPrefixes = []string{"x-amz-", "proxy-"}
)

// checkOwn refuses a request that has a credential of its own: a worker must not act as
// somebody else at a host that trusts the line's. The dummy is accepted.
func (e *endpoint) checkOwn(h http.Header) error {
	if e.held == nil {
		return nil
	}
	added := strings.ToLower(e.held.Header)
	for name, values := range h {
		// Some servers read x_api_key as x-api-key.
		n := strings.ReplaceAll(strings.ToLower(name), "_", "-")
		switch {
		case (n == added || n == "authorization") && len(values) == 1 && isDummy(values[0]):
		case n == added, slices.Contains(credentialHeaders, n), slices.ContainsFunc(credentialPrefixes, func(p string) bool { return strings.HasPrefix(n, p) }):
			return fmt.Errorf("the header %s has a credential, and the endpoint %s adds the credential %s itself: remove the header, or where a tool insists on a token, give it the word %q", name, e.name, e.held.Credential(), dummy)
		}
	}
	return nil
}

// isDummy reports whether a header's value is the dummy: alone, after a scheme, or as the
// user or the password of Basic.
func isDummy(value string) bool {
	scheme, rest, ok := strings.Cut(value, " ")
	if !ok || !strings.EqualFold(scheme, "basic") {
		return value == dummy || ok && isToken(scheme) && rest == dummy
	}
	b, err := base64.StdEncoding.DecodeString(rest)
	user, password, parted := strings.Cut(string(b), ":")
	return err == nil && parted && (user == dummy || password == dummy)
}

// clean makes a request's headers those that go with a credential, when `Connection` was
// worked off.
func (e *endpoint) clean(h http.Header) {
	if e == nil || e.held == nil {
		return
	}
	for name := range h {
		if n := strings.ReplaceAll(name, "_", "-"); strings.EqualFold(n, e.held.Header) || strings.EqualFold(n, "Authorization") {
			delete(h, name)
		}
	}
	// The length of a compressed answer could tell what is in it.
	h.Set("Accept-Encoding", "identity")
}

// endHead ends a request's head, with the header of the credential last. Then the value is
// neither in the buffer nor in use any more.
func (e *endpoint) endHead(w *bufio.Writer) error {
	if e == nil || e.held == nil {
		_, err := w.WriteString("\r\n")
		return err
	}
	defer e.drop()
	if !e.using || e.held.Revoked() {
		return fmt.Errorf("the credential %s was revoked", e.held.Credential())
	}
	if err := e.held.WriteHeader(w); err != nil {
		return err
	}
	w.WriteString("\r\n")
	err := w.Flush()
	wipe(w)
	return err
}

// wipe clears the free part of a buffer.
func wipe(w *bufio.Writer) {
	b := w.AvailableBuffer()
	clear(b[:cap(b)])
}
