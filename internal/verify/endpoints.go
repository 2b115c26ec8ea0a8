package verify

import (
	"net/netip"
	"strings"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/firewall/request"
)

// EndpointTry is a request to an endpoint that its line doesn't have.
type EndpointTry struct {
	At, Host, URL string
	Method, Path  string
	// Around: its host must be refused on the ordinary way, too.
	Around bool
}

// maxEndpoints bounds the endpoints that are tried in one worker.
const maxEndpoints = 3

// chooseEndpoints picks for each endpoint a request that its line doesn't have. One whose
// line has all is left out.
func chooseEndpoints(p *firewall.RoomPolicy, m *firewall.Matcher, id string) (out []EndpointTry) {
	for i := range p.Allow {
		r := &p.Allow[i]
		if len(out) == maxEndpoints {
			break
		}
		if _, d := m.Endpoint(r.Endpoint.At); r.Endpoint.IsZero() || !d.Allowed {
			continue
		}
		name, _ := r.Host.Name()
		x := EndpointTry{At: r.Endpoint.At, Host: name.String(), URL: r.Endpoint.URL(), Around: !m.Name(name, 443).Allowed}
		if x.Method, x.Path = unlisted(r.Endpoint, id); x.Method != "" {
			out = append(out, x)
		}
	}
	return out
}

// unlisted is a request that an endpoint's line doesn't have; "": it has all.
func unlisted(e firewall.Endpoint, id string) (method, path string) {
	path = "/" + id
	target, err := request.ParseTarget(path, request.Options{})
	switch {
	case err != nil:
		return "", ""
	case !e.Git.IsZero(): // such a path is no repository's
		return "GET", path
	}
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"} {
		if _, has := e.Requests.Match(method, target); !has {
			return method, path
		}
	}
	return "", ""
}

func (b *batch) endpoints(t *Tries) {
	for _, x := range t.Endpoints {
		b.add("endpoint."+x.At, "http %s%s method=%s", x.URL, x.Path, x.Method)
		b.add("endpoint-host."+x.At, "http %s%s method=%s host=%s", x.URL, x.Path, x.Method, t.Special)
		if x.Around {
			b.add("around."+x.At, "tls %s:443 connect=%s", x.Host, netip.AddrPortFrom(t.Address, 443))
		}
	}
}

// requests judges tries at endpoints (B34). They show a part of it: which bytes reach the
// host, and refs of git, are tested by the project.
func (w *Worker) requests() Line {
	if w.Net == nil {
		return notTested("B34", w.Name, "network: none: nothing is sent for it")
	}
	e, ok := w.decisions("B34")
	if !ok {
		return e.line()
	}
	t := &w.Net.Tries
	if len(t.Endpoints) == 0 {
		return notTested("B34", w.Name, "its policy has no endpoint that lacks a request")
	}
	for _, x := range t.Endpoints {
		key := "endpoint." + x.At
		e.tried("%s %s at the endpoint %s, also with another Host, and TLS for %s around it", x.Method, x.Path, x.At, x.Host)
		e.refused(w.Seen, "refused", []string{"403"}, key)
		if r, ok := w.Seen[key]; ok && r.Seen == "403" && x.Method != "HEAD" {
			e.inside(strings.Contains(r.Detail, "the endpoint "+x.At), "the answer names the endpoint %s", x.At)
		}
		w.denied(e, key, "a request at the endpoint "+x.At, ofReason("endpoint", x.Host, firewall.ReasonRequest))
		e.refused(w.Seen, "another Host refused", []string{"400"}, "endpoint-host."+x.At)
		if x.Around {
			e.refused(w.Seen, "around it refused", cut, "around."+x.At)
			w.denied(e, "around."+x.At, "TLS for "+x.Host, ofReason("tls", x.Host, firewall.ReasonEndpoint))
		}
	}
	return e.part(elsewhere)
}

func ofReason(kind, name, reason string) func(Denial) bool {
	return func(d Denial) bool { return d.Kind == kind && d.Name == name && d.Reason == reason }
}
