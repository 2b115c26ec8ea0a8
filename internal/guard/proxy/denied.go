package proxy

import (
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/events"
	"github.com/llmdo/workshop/internal/guard/policy"
	"github.com/llmdo/workshop/internal/lib/shellquote"
)

// denied answers 403 with the reason, and the command and the line that would
// allow it. The status line has reason and command too: of a response to CONNECT,
// most programs show nothing else (npm at once, pip with each retry).
func (r *Room) denied(c net.Conn, p *policy.Room, to authority, d firewall.Decision, keep bool) error {
	what := net.JoinHostPort(to.host(), strconv.Itoa(int(to.port))) + " is not allowed"
	if d.Reason == firewall.ReasonName {
		what += " in workshop.yaml"
	} else {
		what += ": " + d.Reason
	}
	headers := map[string]string{"X-Workshop-Deny": d.Reason}
	body := "workshop: " + what + "\n"
	if why := firewall.Why(d.Reason); why != "" && d.Reason != firewall.ReasonName {
		body += "workshop: " + d.Reason + ": " + why + "\n"
	}
	if b := r.Budgets.of(d.Rule); b != nil && d.Reason == events.ReasonUpload {
		// Rounded up: a retry after that time finds bytes.
		wait := b.wait().Truncate(time.Second) + time.Second
		body += fmt.Sprintf("workshop: its budget is %s; bytes are free again in %s\n", d.Rule.Upload, wait)
		headers["Retry-After"] = itoa(int64(wait / time.Second))
	}
	if d.Rule != nil && d.Rule.Line != "" {
		body += "workshop: decided by " + d.Rule.Line + "\n"
	}
	if d.Suggest != "" {
		if command := allowCommand(p, to, d); command != "" {
			what += "; to allow it: " + command
			body += "workshop: hint: to allow it now, run outside of the worker:\n  " + command + "\n"
		}
		body += "workshop: hint: to allow it for good, add this line to network.allow in workshop.yaml:\n  - " + d.Suggest + "\n"
		headers["X-Workshop-Allow"] = d.Suggest
	}
	return respond(c, http.StatusForbidden, what, headers, body, keep)
}

// allowCommand returns the command with the effect of the suggested line; "" if
// there is none.
func allowCommand(p *policy.Room, to authority, d firewall.Decision) string {
	target := to.host()
	if to.addr.IsValid() {
		target = net.JoinHostPort(target, strconv.Itoa(int(to.port)))
	} else if strings.Contains(d.Suggest, "cidr:") {
		return "" // a range in addition to the name
	} else if to.port != 80 && to.port != 443 {
		target += ":" + strconv.Itoa(int(to.port))
	}
	command := "workshop firewall allow " + shellquote.Quote(target)
	if strings.Contains(d.Suggest, "private: true") {
		command += " --private"
	}
	if len(p.Workers) == 1 {
		command += " --worker " + shellquote.Quote(p.Workers[0])
	}
	return command
}
