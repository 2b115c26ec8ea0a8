package compose

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/firewall/request"
	"github.com/llmdo/workshop/workshop"
)

// endpointRule is a line with an endpoint.
func endpointRule(t testing.TB, host, at string) firewall.Rule {
	t.Helper()
	p, err := firewall.ParseHostPattern(host)
	if err != nil {
		t.Fatal(err)
	}
	r, err := request.ParseRule("GET /**")
	if err != nil {
		t.Fatal(err)
	}
	return firewall.Rule{Host: p, Ports: []firewall.PortRange{{First: 443, Last: 443}}, Endpoint: firewall.Endpoint{At: at, Requests: request.Rules{r}}, Line: "workshop.yaml:9"}
}

// Endpoints have the same port in every room, and workers are told theirs and no others.
func TestEndpointPorts(t *testing.T) {
	w := sample(t, 3)
	bare := firewall.Rule{CIDR: netip.MustParsePrefix("198.51.100.0/24"), Ports: []firewall.PortRange{{First: 600, Last: 610}}}
	github, npm := endpointRule(t, "github.com", "github-api"), endpointRule(t, "npm.example.org", "npm")
	for i, allow := range [][]firewall.Rule{{npm, github}, {npm, bare}, nil} {
		w.Workers[i].Container.Network = workshop.Network{Mode: val(firewall.Restricted), Allow: allow}
	}
	w.Workers[0].Container.Env = map[string]workshop.Value[string]{"WORKSHOP_ENDPOINT_NPM": val("own")}
	c := compiled(t, w)
	if _, err := firewall.ParsePolicy(firewall.EncodePolicy(c.Policy)); err != nil {
		t.Error(err)
	}
	got := map[string]uint16{}
	for _, r := range c.Policy.Rooms {
		for _, line := range r.Allow {
			if e := line.Endpoint; !e.IsZero() {
				if before, known := got[e.At]; known && before != e.Port {
					t.Errorf("%s is at %d and %d", e.At, before, e.Port)
				}
				got[e.At] = e.Port
			}
		}
	}
	if len(got) != 2 || got["github-api"] != 611 || got["npm"] != 612 {
		t.Errorf("ports: %v", got)
	}
	if github.Endpoint.Port != 0 || w.Workers[0].Container.Network.Allow[0].Endpoint.Port != 0 {
		t.Error("the workshop was changed")
	}
	for i, want := range [][]string{
		{"WORKSHOP_ENDPOINT_GITHUB_API=http://127.0.0.1:611", "WORKSHOP_ENDPOINT_NPM=own"}, {"WORKSHOP_ENDPOINT_NPM=http://127.0.0.1:612"}, nil,
	} {
		var have []string
		for name, v := range c.Project.Services[w.Workers[i].Name].Environment {
			if strings.HasPrefix(name, "WORKSHOP_ENDPOINT_") {
				have = append(have, name+"="+*v)
			}
		}
		slices.Sort(have)
		if !slices.Equal(have, want) {
			t.Errorf("worker %d: %q, want %q", i, have, want)
		}
	}
	w.Workers[0].Container.Env["npm_config_replace_registry_host"] = val("never")
	e := compiled(t, w).Project.Services[w.Workers[0].Name].Environment
	if got, want := *e["npm_config_registry"]+" "+*e["npm_config_replace_registry_host"], "http://127.0.0.1:612/ never"; got != want {
		t.Errorf("npm's variables: %s, want %s", got, want)
	}
	for credential, want := range map[string]string{"": "", "anthropic": firewall.DummyToken} {
		line := endpointRule(t, "api.anthropic.com", "anthropic")
		line.Endpoint.Credential = credential
		w.Workers[1].Container.Network.Allow = []firewall.Rule{npm, line}
		got := ""
		if v := compiled(t, w).Project.Services[w.Workers[1].Name].Environment["ANTHROPIC_API_KEY"]; v != nil {
			got = *v
		}
		if got != want {
			t.Errorf("credential %q: the token is %q, want %q", credential, got, want)
		}
	}
	bare.Ports = []firewall.PortRange{{First: 600, Last: 999}}
	w.Workers[1].Container.Network.Allow = []firewall.Rule{npm, bare}
	if _, err := Compile(w); err == nil || !strings.Contains(err.Error(), "is left for the endpoint") {
		t.Errorf("without a port: %v", err)
	}
}

// Git finds the endpoints that have `git`, beside the settings that it has already.
func TestGitEndpoints(t *testing.T) {
	git := func(host, at string, port uint16, repositories ...string) firewall.Rule {
		r := endpointRule(t, host, at)
		r.Ports = []firewall.PortRange{{First: port, Last: port}}
		r.Endpoint.Requests = nil
		for _, text := range repositories {
			x, err := request.ParseRepository(text)
			if err != nil {
				t.Fatal(err)
			}
			r.Endpoint.Git.Read = append(r.Endpoint.Git.Read, x)
		}
		return r
	}
	one, other := git("git.example.org", "one", 8443, "acme/app"), git("code.example.org", "a", 443, "acme/app", "tools")
	w := sample(t, 3)
	for i, allow := range [][]firewall.Rule{{one}, {one, other, git("code.example.org", "b", 443, "group/**")}, {endpointRule(t, "api.example.org", "api")}} {
		w.Workers[i].Container.Network = workshop.Network{Mode: val(firewall.Restricted), Allow: allow}
	}
	w.Workers[0].Container.Env = map[string]workshop.Value[string]{"GIT_CONFIG_COUNT": val("2"), "GIT_CONFIG_KEY_1": val("x.y"), "GIT_CONFIG_VALUE_1": val("z")}
	c := compiled(t, w)
	for i, want := range []string{
		`safe.directory=* x.y=z url.http://127.0.0.1:603/.insteadOf=https://git.example.org:8443/ url.http://127.0.0.1:603/.insteadOf=git@git.example.org: url.http://127.0.0.1:603/.insteadOf=ssh://git@git.example.org/`,
		`safe.directory=* url.http://127.0.0.1:603/.insteadOf=https://git.example.org:8443/ url.http://127.0.0.1:603/.insteadOf=git@git.example.org: url.http://127.0.0.1:603/.insteadOf=ssh://git@git.example.org/` +
			` url.http://127.0.0.1:600/acme/.insteadOf=https://code.example.org/acme/ url.http://127.0.0.1:600/acme/.insteadOf=git@code.example.org:acme/ url.http://127.0.0.1:600/acme/.insteadOf=ssh://git@code.example.org/acme/` +
			` url.http://127.0.0.1:600/tools/.insteadOf=https://code.example.org/tools/ url.http://127.0.0.1:600/tools/.insteadOf=git@code.example.org:tools/ url.http://127.0.0.1:600/tools/.insteadOf=ssh://git@code.example.org/tools/` +
			` url.http://127.0.0.1:602/group/.insteadOf=https://code.example.org/group/ url.http://127.0.0.1:602/group/.insteadOf=git@code.example.org:group/ url.http://127.0.0.1:602/group/.insteadOf=ssh://git@code.example.org/group/`,
		`safe.directory=*`,
	} {
		e := c.Project.Services[w.Workers[i].Name].Environment
		var got []string
		for n := 0; e["GIT_CONFIG_KEY_"+strconv.Itoa(n)] != nil; n++ {
			got = append(got, *e["GIT_CONFIG_KEY_"+strconv.Itoa(n)]+"="+*e["GIT_CONFIG_VALUE_"+strconv.Itoa(n)])
		}
		if text := strings.Join(got, " "); text != want || *e["GIT_CONFIG_COUNT"] != strconv.Itoa(len(got)) {
			t.Errorf("worker %d: %s of\n%s\nwant\n%s", i, *e["GIT_CONFIG_COUNT"], text, want)
		}
	}
}
