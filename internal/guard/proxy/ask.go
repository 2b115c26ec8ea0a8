package proxy

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/firewall/request"
	"github.com/llmdo/workshop/internal/guard/events"
	"github.com/llmdo/workshop/internal/guard/git"
	"github.com/llmdo/workshop/internal/guard/lease"
	"github.com/llmdo/workshop/internal/guard/leases"
)

// asks reports whether a person is asked before the request is sent: it is a push with refs,
// and the user wants to be asked about pushes with this credential.
func (e *endpoint) asks(a asked) bool {
	return e.held != nil && e.held.AskPush && len(a.push.Commands) > 0
}

// checkPush refuses a request that could be a push on a line without `git`, whose refs nobody
// can be asked about.
func (e *endpoint) checkPush(line *firewall.Rule, t request.Target) error {
	if e.held != nil && e.held.AskPush && line.Endpoint.Git.IsZero() && strings.Contains(strings.ToLower(t.Path()), string(git.ReceivePack)) {
		return fmt.Errorf("a push with the credential %s is asked about: it needs a line with `git`", e.held.Credential())
	}
	return nil
}

// askPush has a person asked about a push. Until they answer, nothing of it is sent on, and
// the value isn't in use. done: the answer isn't yes, and the request was answered.
func (s *httpSession) askPush(req *http.Request, line *firewall.Rule, a asked, to authority) (done bool, err error) {
	s.at.drop()
	s.drop()
	refs := make([]lease.Pushed, len(a.push.Commands))
	for i, c := range a.push.Commands {
		refs[i] = lease.Pushed{Ref: c.Ref, Old: c.Old, New: c.New}
	}
	why := leases.ErrNoLease
	if s.room.Ask != nil {
		why = s.room.Ask(line, s.at.git.Repository, refs, func() bool { return s.ctx.Err() == nil && !hungUp(s.c) })
	}
	if why == nil {
		return false, nil
	}
	status, reason := http.StatusForbidden, events.ReasonApproval
	if errors.Is(why, leases.ErrNoLease) {
		status, reason = http.StatusServiceUnavailable, events.ReasonCredential
	}
	what := s.whyNotAsked(line, why)
	s.report(firewall.Decision{Rule: line, Reason: reason}, to)
	text := fmt.Sprintf("workshop: this push was not sent to %s: %s.\nDo not retry, tell the person.\n", line.Host, what)
	return true, s.refusePush(a.push, s.requests.body(req), status, reason, text, func(git.Command) string { return "workshop: not sent" })
}

// whyNotAsked says why a push wasn't sent.
func (s *httpSession) whyNotAsked(line *firewall.Rule, why error) string {
	name := line.Endpoint.Credential
	switch why {
	case leases.ErrNo:
		return "a person was asked and said no"
	case leases.ErrNobody:
		return fmt.Sprintf("the credential %s has each push asked about, and nobody can be asked: the person can set approvals_command or approvals_socket in their config.yaml, and run `workshop up`", name)
	case leases.ErrUnanswered:
		return "a person was asked and didn't answer in time"
	case leases.ErrAsking:
		return "the person is being asked about another push, or just didn't agree to one"
	case leases.ErrUnaskable:
		return fmt.Sprintf("a person is asked about each push, of at most %d refs: push fewer at a time", lease.MaxAskedRefs)
	}
	return fmt.Sprintf("the credential %s isn't there any more; the person can run `workshop up` or `workshop credential test %s`", name, name)
}

// sameUse reports whether a line sends the credential of another to the same host.
func sameUse(a, b *firewall.Rule) bool {
	return a.Host == b.Host && slices.Equal(a.Ports, b.Ports) && a.Endpoint.Credential == b.Endpoint.Credential
}

// hungUp reports whether a client has gone, whatever of what it sent is still unread.
func hungUp(c *net.TCPConn) bool {
	raw, err := c.SyscallConn()
	if err != nil {
		return true
	}
	gone := false
	err = raw.Control(func(fd uintptr) {
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		n, err := unix.Poll(p, 0)
		gone = err == nil && n > 0
	})
	return gone || err != nil
}
