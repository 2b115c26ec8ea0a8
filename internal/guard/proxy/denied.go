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
)

// denied answers 403. Status line and body say the same, for a model: what is
// refused and why, and not what would allow it, which the person's terminal shows.
// Of a response to CONNECT most programs show the status line alone (npm at once, pip
// with each retry).
func (r *Room) denied(c net.Conn, to authority, d firewall.Decision, keep bool) error {
	what := net.JoinHostPort(to.host(), strconv.Itoa(int(to.port))) + " is not allowed in this workshop"
	reason := firewall.ToldReason(d.Reason)
	line := ""
	if d.Rule != nil {
		line = d.Rule.Line
	}
	why, _, _ := strings.Cut(firewall.Why(reason, to.host(), line), ";")
	headers := map[string]string{"X-Workshop-Deny": reason}
	advice := "do not retry, tell the person"
	switch b := r.Budgets.of(d.Rule); {
	case d.Reason == firewall.ReasonName:
		why = ""
	case d.Reason == firewall.ReasonEndpoint && d.Rule != nil:
		why = "it is reached at its endpoint alone"
		advice = "send requests to " + d.Rule.Endpoint.URL() + "/ instead, by HTTP"
	case d.Reason == firewall.ReasonPort:
		why = "with this port"
	case d.Reason == firewall.ReasonDenied && line != "" && !strings.HasPrefix(line, firewall.LiveLine):
		why = "by a deny line"
	case d.Reason == events.ReasonUpload && b != nil:
		// Rounded up: a retry after that time finds bytes.
		wait := b.wait().Truncate(time.Second) + time.Second
		why = "the upload budget of " + d.Rule.Upload.String() + " is used up"
		advice = fmt.Sprintf("bytes are free again in %s", wait)
		headers["Retry-After"] = itoa(int64(wait / time.Second))
	}
	if why != "" {
		what += " (" + why + ")"
	}
	what += ": " + advice
	return respond(c, http.StatusForbidden, what, headers, "workshop: "+what+"\n"+whatIsOpen, keep)
}
