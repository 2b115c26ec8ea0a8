package app

import (
	"errors"
	"strings"
	"testing"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/broker"
	"github.com/llmdo/workshop/internal/guard/control"
	"github.com/llmdo/workshop/workshop"
)

// What ps says of a credential is what guard and broker say of it, and why it isn't there.
func TestCredentialStatus(t *testing.T) {
	line := CredentialStatus{Name: "github", Endpoint: "git", Host: "github.com"}
	leased := line
	leased.Leased = true
	proxy := CredentialStatus{Name: "github", Host: "proxy.example:3128"}
	proxyLeased := proxy
	proxyLeased.Leased = true
	key, had := CredentialStatus{Name: "work"}, CredentialStatus{Name: "work", Leased: true}
	in := func(state, problem string) broker.Answer {
		return broker.Answer{Attached: true, Credentials: []broker.Status{{Name: "npm", State: broker.Failed, Problem: "of npm"}, {Name: "github", State: state, Problem: problem}}}
	}
	gone := errors.New("connection refused")
	for _, c := range []struct {
		name string
		x    CredentialStatus
		a    broker.Answer
		err  error
		want string
	}{
		{"leased", leased, in(broker.Leased, ""), nil, "the endpoint git (github.com) has the credential github"},
		{"leased, and a later reading failed", leased, in(broker.Leased, "no such file"), nil, "the endpoint git (github.com) has the credential github"},
		{"refused", leased, in(broker.Refused, ""), nil, "the endpoint git (github.com) has the credential github, but a host refused its value (401)"},
		{"leased, no broker", leased, broker.Answer{}, gone, "the endpoint git (github.com) has the credential github, but the process that leases it doesn't answer: it ends within 30s"},
		{"no broker", line, broker.Answer{}, gone, "answers 503, for the credential github isn't leased: the process that leases it doesn't run"},
		{"not attached", line, broker.Answer{}, nil, "isn't leased: the process that leases it doesn't reach the guard"},
		{"a problem", line, broker.Answer{Attached: true, Problem: "credentials.yaml:1: no"}, nil, "isn't leased: credentials.yaml:1: no"},
		{"waiting", line, in(broker.Waiting, ""), nil, "isn't leased: its value is still being read"},
		{"failed", line, in(broker.Failed, "no such file"), nil, "isn't leased: no such file"},
		{"revoked", line, broker.Answer{Attached: true}, nil, "isn't leased: it was revoked, or its line or your file of credentials has changed since `up`"},
		{"leased for another line", line, in(broker.Leased, ""), nil, "isn't leased: it was revoked, or its line"},
		{"a proxy", proxyLeased, in(broker.Leased, ""), nil, "the upstream proxy proxy.example:3128 has the credential github"},
		{"a proxy that refused it", proxyLeased, in(broker.Refused, ""), nil, "the upstream proxy proxy.example:3128 has the credential github, but the proxy refused its value (407)"},
		{"a proxy, no broker", proxy, broker.Answer{}, gone, "nothing is reached through the upstream proxy proxy.example:3128, for its credential github isn't leased: the process that leases it doesn't run"},
		{"a proxy, not attached", proxy, broker.Answer{}, nil, "isn't leased: the process that leases it doesn't reach the guard"},
		{"a key", had, broker.Answer{}, nil, "the ssh-agent has the key work"},
		{"no key", key, broker.Answer{}, nil, "the ssh-agent doesn't have the key work: it was revoked, or"},
		{"no key, no broker", key, broker.Answer{}, gone, "the ssh-agent doesn't have the key work: the process that leases it doesn't run"},
	} {
		c.x.Problem = problemOf(c.x, c.a, c.err)
		if got := c.x.Text(); !strings.HasSuffix(got, c.want) && !strings.Contains(c.want, "revoked") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// A worker has the credentials of its room's lines, and of its own agents.
func TestCredentialsOfWorkers(t *testing.T) {
	w := &workshop.Workshop{Workers: []workshop.Worker{{Name: "a"}, {Name: "b"}}}
	w.Workers[0].Container.Network.Agents = []workshop.Agent{{Credential: "work"}, {Credential: "work"}}
	s := Status{
		Containers: []ContainerStatus{{Service: "a", Role: "worker", State: "running"}, {Service: "b", Role: "worker", State: "running"}, {Service: "c", Role: "worker", State: "exited"}},
		Guard: &control.State{ProxyCredential: &control.CredentialState{Name: "corp", Host: "proxy.example:3128"}, Rooms: []control.RoomState{
			{Workers: []string{"a"}},
			{Workers: []string{"b", "c"}, Mode: firewall.Restricted, Credentials: []control.CredentialState{{Name: "npm", At: "npm", Host: "npm.example", Leased: true}}},
		}},
	}
	s.addCredentials(t.Context(), w, t.TempDir())
	for i, want := range []string{"work", "corp npm", ""} {
		var got []string
		for _, x := range s.Containers[i].Credentials {
			got = append(got, x.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s has %q, want %q", s.Containers[i].Service, got, want)
		}
	}
}
