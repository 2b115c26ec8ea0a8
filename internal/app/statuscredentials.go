package app

import (
	"context"
	"fmt"
	"slices"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/broker"
	"github.com/llmdo/workshop/internal/guard/lease"
	"github.com/llmdo/workshop/workshop"
)

// CredentialStatus is a credential of a running worker: of a line, of the upstream proxy, or
// of its agents.
type CredentialStatus struct {
	Name string `json:"name"`
	// Endpoint and Host are those of its line. Without an endpoint Host is the upstream
	// proxy, HOST:PORT; without both the worker's ssh-agent has it.
	Endpoint string `json:"endpoint,omitempty"`
	Host     string `json:"host,omitempty"`
	// Leased reports whether it is there now.
	Leased bool `json:"leased"`
	// Problem is why it isn't, or what is wrong with it.
	Problem string `json:"problem,omitempty"`
}

// Text says it in words.
func (c CredentialStatus) Text() string {
	what := fmt.Sprintf("the endpoint %s (%s)", c.Endpoint, c.Host)
	if c.Endpoint == "" {
		what = "the upstream proxy " + c.Host
	}
	switch {
	case c.ofAgent() && c.Leased:
		return fmt.Sprintf("the ssh-agent has the key %s", c.Name)
	case c.ofAgent():
		return fmt.Sprintf("the ssh-agent doesn't have the key %s: %s", c.Name, c.Problem)
	case c.Leased && c.Problem == "":
		return fmt.Sprintf("%s has the credential %s", what, c.Name)
	case c.Leased:
		return fmt.Sprintf("%s has the credential %s, but %s", what, c.Name, c.Problem)
	case c.Endpoint == "":
		return fmt.Sprintf("nothing is reached through %s, for its credential %s isn't leased: %s", what, c.Name, c.Problem)
	}
	return fmt.Sprintf("the endpoint %s (%s) answers 503, for the credential %s isn't leased: %s", c.Endpoint, c.Host, c.Name, c.Problem)
}

// ofAgent reports whether it is a key of the worker's ssh-agent.
func (c CredentialStatus) ofAgent() bool { return c.Endpoint == "" && c.Host == "" }

// addCredentials puts into the running workers the credentials of their lines, of which the
// guard says whether they are leased, and of their agents. The broker says why one isn't.
func (s *Status) addCredentials(ctx context.Context, w *workshop.Workshop, runtime string) {
	some := false
	for i := range s.Containers {
		if c := &s.Containers[i]; c.Role == compose.RoleWorker.String() && c.State == "running" {
			c.Credentials = append(s.linesOf(c.Service), agentsOf(w, c.Service)...)
			some = some || len(c.Credentials) > 0
		}
	}
	if !some {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, AskTime)
	defer cancel()
	a, err := broker.Call(ctx, brokerSocket(runtime), broker.Request{Op: broker.OpStatus})
	for i := range s.Containers {
		c := &s.Containers[i]
		directory := compose.DialInPath(compose.Facts{Local: true, RuntimeDir: runtime}, c.Service)
		for j := range c.Credentials {
			x := &c.Credentials[j]
			if x.ofAgent() {
				x.Leased = err == nil && slices.ContainsFunc(a.Agents, func(s broker.AgentStatus) bool { return s.Directory == directory && s.Credential == x.Name })
			}
			x.Problem = problemOf(*x, a, err)
		}
	}
}

// linesOf are the lines of a worker with a credential, as the guard has them, and the
// upstream proxy that all its connections are made through.
func (s *Status) linesOf(worker string) (out []CredentialStatus) {
	if s.Guard == nil {
		return nil
	}
	for _, r := range s.Guard.Rooms {
		if slices.Contains(r.Workers, worker) {
			if c := s.Guard.ProxyCredential; c != nil && r.Mode != firewall.None {
				out = append(out, CredentialStatus{Name: c.Name, Host: c.Host, Leased: c.Leased})
			}
			for _, c := range r.Credentials {
				out = append(out, CredentialStatus{Name: c.Name, Endpoint: c.At, Host: c.Host, Leased: c.Leased})
			}
		}
	}
	return out
}

// agentsOf are the keys of a worker's agents, each once.
func agentsOf(w *workshop.Workshop, worker string) (out []CredentialStatus) {
	if w == nil {
		return nil
	}
	for i := range w.Workers {
		if w.Workers[i].Name != worker {
			continue
		}
		for _, a := range w.Workers[i].Container.Network.Agents {
			if x := (CredentialStatus{Name: a.Credential}); !slices.Contains(out, x) {
				out = append(out, x)
			}
		}
	}
	return out
}

// problemOf is what the broker's answer says of a credential that isn't leased, or that its
// host refused.
func problemOf(x CredentialStatus, a broker.Answer, err error) string {
	at := slices.IndexFunc(a.Credentials, func(s broker.Status) bool { return s.Name == x.Name })
	switch {
	case x.Leased && err != nil && !x.ofAgent():
		return fmt.Sprintf("the process that leases it doesn't answer: it ends within %v", lease.Lasting)
	case x.Leased && at >= 0 && a.Credentials[at].State == broker.Refused && x.Endpoint == "":
		return "the proxy refused its value (407)"
	case x.Leased && at >= 0 && a.Credentials[at].State == broker.Refused:
		return "a host refused its value (401)"
	case x.Leased:
		return ""
	case err != nil:
		return "the process that leases it doesn't run"
	case a.Problem != "":
		return a.Problem
	case !x.ofAgent() && !a.Attached:
		return "the process that leases it doesn't reach the guard"
	case at >= 0 && a.Credentials[at].State == broker.Waiting:
		return "its value is still being read"
	case at >= 0 && a.Credentials[at].Problem != "":
		return a.Credentials[at].Problem
	}
	return "it was revoked, or its line or your file of credentials has changed since `up`"
}
