package proxy

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/policy"
)

// Where a room's tools read what they may reach, from the explicit proxy.
const (
	policyPath     = "/policy"
	policyPathJSON = "/policy.json"
)

// whatIsOpen ends the body of a refusal.
var whatIsOpen = "What is open here: http://127.0.0.1:" + strconv.Itoa(firewall.PortProxy) + policyPath + "\n"

// asksPolicy reports whether a request to the explicit proxy is for the room's policy
// itself, and not for another host.
func (s *httpSession) asksPolicy(req *http.Request) bool {
	if !s.explicit || s.only != nil || req.URL.IsAbs() || req.RequestURI != policyPath && req.RequestURI != policyPathJSON {
		return false
	}
	here := strconv.Itoa(firewall.PortProxy)
	return req.Host == net.JoinHostPort("127.0.0.1", here) || req.Host == net.JoinHostPort("localhost", here)
}

// answerPolicy answers with what the room may reach now, for a tool or a model.
func (s *httpSession) answerPolicy(req *http.Request) (keep bool, err error) {
	keep = bodyless(req) && !req.Close
	if req.Method != http.MethodGet {
		return keep, answer(s.c, http.StatusMethodNotAllowed, map[string]string{"Allow": "GET"}, "", keep)
	}
	d := describe(s.room.Policy())
	if req.RequestURI == policyPath {
		return keep, answer(s.c, http.StatusOK, nil, d.text(), keep)
	}
	b, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return false, err
	}
	return keep, answer(s.c, http.StatusOK, map[string]string{"Content-Type": "application/json"}, string(b)+"\n", keep)
}

// description is what a room may reach now.
type description struct {
	Room    string        `json:"room"`
	Workers []string      `json:"workers"`
	Mode    firewall.Mode `json:"mode"`
	// Learning: what no line allows is let through, and recorded.
	Learning  bool                `json:"learning,omitempty"`
	Allow     []describedLine     `json:"allow"`
	Endpoints []describedEndpoint `json:"endpoints"`
	Deny      []describedLine     `json:"deny"`
	// More is how many lines are left out.
	More int `json:"more,omitempty"`
}

type describedLine struct {
	Target string `json:"target"` // a host, a wildcard or a range
	Ports  string `json:"ports"`
	Upload string `json:"upload,omitempty"`
}

type describedEndpoint struct {
	Name     string   `json:"name"`
	URL      string   `json:"url"`
	Host     string   `json:"host"`
	Requests []string `json:"requests"`
	// Credential: the guard adds one, so a tool has none of its own.
	Credential bool `json:"credential,omitempty"`
}

// maxDescribed bounds a description, in bytes of its targets and rules (B60).
const maxDescribed = 64 << 10

func describe(p *policy.Room) description {
	d := description{
		Room: p.Room, Workers: p.Workers, Mode: p.Mode, Learning: p.Learn,
		Allow: []describedLine{}, Endpoints: []describedEndpoint{}, Deny: []describedLine{},
	}
	size := 0
	fits := func(texts ...string) bool {
		for _, t := range texts {
			size += len(t) + 50
		}
		if size > maxDescribed {
			d.More++
		}
		return size <= maxDescribed
	}
	line := func(r firewall.Rule) describedLine {
		return describedLine{Target: r.Target(), Ports: firewall.FormatPorts(r.Ports), Upload: r.Upload.String()}
	}
	for _, r := range p.Allow {
		switch e := r.Endpoint; {
		case e.IsZero():
			if x := line(r); fits(x.Target) {
				d.Allow = append(d.Allow, x)
			}
		default:
			if requests := e.Texts(); fits(requests...) {
				d.Endpoints = append(d.Endpoints, describedEndpoint{Name: e.At, URL: e.URL() + "/", Host: r.Target(), Requests: requests, Credential: e.Credential != ""})
			}
		}
	}
	for _, r := range p.Deny {
		if x := line(r); fits(x.Target) {
			d.Deny = append(d.Deny, x)
		}
	}
	return d
}

func (d description) text() string {
	var b strings.Builder
	switch {
	case d.Mode == firewall.Open, d.Learning:
		b.WriteString("Every public host is open here now, and these:\n")
	default:
		b.WriteString("These hosts are open here, and no others:\n")
	}
	for _, x := range d.Allow {
		fmt.Fprintf(&b, "  %s tcp/%s", x.Target, x.Ports)
		if x.Upload != "" {
			fmt.Fprintf(&b, ", sending at most %s", x.Upload)
		}
		b.WriteByte('\n')
	}
	for _, e := range d.Endpoints {
		adds := ""
		if e.Credential {
			adds = " a credential is added, send none;"
		}
		fmt.Fprintf(&b, "  %s at %s by HTTP;%s it has these requests:\n", e.Host, e.URL, adds)
		for _, r := range e.Requests {
			fmt.Fprintf(&b, "    %s\n", r)
		}
	}
	if len(d.Deny) > 0 {
		b.WriteString("Denied, whatever is above:\n")
		for _, x := range d.Deny {
			fmt.Fprintf(&b, "  %s tcp/%s\n", x.Target, x.Ports)
		}
	}
	if d.More > 0 {
		fmt.Fprintf(&b, "And %d more lines.\n", d.More)
	}
	b.WriteString("What is refused stays refused: do not retry, tell the person.\n")
	return b.String()
}
