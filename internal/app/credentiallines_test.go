package app

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/broker"
	"github.com/llmdo/workshop/internal/credential"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/guard/lease"
	"github.com/llmdo/workshop/internal/secretsource"
	"github.com/llmdo/workshop/workshop"
)

// proxied is a project with an upstream proxy that has a credential.
func proxied(proxy, name string, resolvers ...string) *Project {
	w := &workshop.Workshop{Workers: []workshop.Worker{{Name: "one"}}}
	w.Container.Network.Proxy.V, w.Container.Network.ProxyCredential.V = proxy, name
	p := &firewall.Policy{Proxy: "${WORKSHOP_PROXY:-}", ProxyCredential: name, Rooms: []firewall.RoomPolicy{{Room: "room", Mode: firewall.Restricted, Workers: []string{"one"}}}}
	for _, r := range resolvers {
		w.Container.Network.DNS = append(w.Container.Network.DNS, workshop.Upstream{Value: workshop.Value[string]{V: r}})
	}
	return &Project{Source: &Source{Workshop: w}, Compiled: &compose.Compiled{Policy: p, Facts: &compose.Facts{}}}
}

// TestConsentProxy: another proxy, credential or resolver is another text, to which nobody
// agreed (B33), and the line is the one that the guard has by its own policy.
func TestConsentProxy(t *testing.T) {
	const proxy = "http://proxy.example:3128"
	seen := map[string]bool{}
	for _, tt := range []struct {
		ready *Project
		want  string
	}{
		{proxied(proxy, "corp"), "proxy proxy.example:3128 credential corp"},
		{proxied("http://proxy.example:443", "corp"), "proxy proxy.example:443 credential corp"},
		{proxied("http://[2001:db8::1]", "corp"), "proxy [2001:db8::1]:80 credential corp"},
		{proxied(proxy, "other"), "proxy proxy.example:3128 credential other"},
		{proxied(proxy, "corp", "198.51.100.53"), "proxy proxy.example:3128 credential corp dns 198.51.100.53"},
		{proxied(proxy, "corp", "198.51.100.53", "198.51.100.54"), "proxy proxy.example:3128 credential corp dns 198.51.100.53, 198.51.100.54"},
	} {
		got := linesOf(tt.ready)
		if len(got) != 1 || !slices.Equal(got[0].Consents, []string{tt.want}) || !slices.Equal(got[0].Workers, []string{"one"}) || seen[tt.want] {
			t.Errorf("got %+v, want %q", got, tt.want)
			continue
		}
		seen[tt.want] = true
		n, guards := tt.ready.Workshop.Container.Network, *tt.ready.Compiled.Policy
		guards.Proxy, guards.Resolvers = n.Proxy.V, nil
		for _, r := range n.DNS {
			guards.Resolvers = append(guards.Resolvers, r.V)
		}
		if all := lease.LinesOf(&guards); !slices.Equal(all, []lease.Line{got[0].Line}) {
			t.Errorf("the guard has %+v, the user is asked about %+v", all, got[0].Line)
		}
	}
	if got := linesOf(proxied("", "corp")); len(got) > 0 {
		t.Errorf("without a proxy: %+v", got)
	}
	none := proxied(proxy, "corp")
	none.Compiled.Policy.Rooms[0].Mode = firewall.None
	if got := linesOf(none); len(got) > 0 {
		t.Errorf("without a network: %+v", got)
	}
	if got := linesOf(&Project{Source: none.Source, Compiled: &compose.Compiled{}}); len(got) > 0 {
		t.Errorf("without a policy: %+v", got)
	}
}

// TestLinesThatCantHaveTheirs: a credential of another form, host or name is refused with the
// place, and with what to do; nothing is leased for such a line.
func TestLinesThatCantHaveTheirs(t *testing.T) {
	home := t.TempDir()
	of := func(as credential.Form, hosts ...credential.Host) credential.Credential {
		return credential.Credential{Name: "corp", Line: 3, As: as, Hosts: hosts, Source: secretsource.Source{File: "/token"}}
	}
	at := credential.Host{Name: "proxy.example", Port: 3128}
	endpoint := broker.Line{Line: lease.Line{Room: "room", At: "api", Host: at.Name, Port: at.Port, Credential: "corp"}}
	proxy := linesOf(proxied("http://proxy.example:3128", "corp"))[0]
	key := of(credential.Form{}, at)
	key.Agent = "SHA256:x"
	for _, tt := range []struct {
		name       string
		line       broker.Line
		has        []credential.Credential
		want, hint string // empty: it may
	}{
		{"its own", proxy, []credential.Credential{of(credential.Form{Proxy: true}, at)}, "", ""},
		{"an endpoint's", endpoint, []credential.Credential{of(credential.Form{}, at)}, "", ""},
		{"none", proxy, nil, "the upstream proxy proxy.example:3128 needs the credential corp, which ", "workshop credential add corp --as proxy --env CORP_PROXY --host proxy.example:3128"},
		{"another form", proxy, []credential.Credential{of(credential.Form{}, at)}, "credentials.yaml:3: the credential corp is sent as bearer, and the upstream proxy proxy.example:3128 needs one with `as: proxy`", "write `as: proxy` there"},
		{"basic", proxy, []credential.Credential{of(credential.Form{Basic: "u"}, at)}, "is sent as basic:u", "as: proxy"},
		{"at an endpoint", endpoint, []credential.Credential{of(credential.Form{Proxy: true}, at)}, "credentials.yaml:3: the credential corp is for an upstream proxy (`as: proxy`), and can't be added to requests of proxy.example", "proxy_credential"},
		{"another port", proxy, []credential.Credential{of(credential.Form{Proxy: true}, credential.Host{Name: at.Name, Port: 443})}, "credentials.yaml:3: the credential corp may not go to proxy.example:3128", "add proxy.example:3128 to its `hosts`"},
		{"a key", proxy, []credential.Credential{key}, "is a key of your ssh-agent, which can't be sent to the upstream proxy", "as: proxy"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			env := testEnv(&Env{Home: home, Lookup: func(string) (string, bool) { return "", false }}, nil)
			c := &creds{lines: []broker.Line{tt.line}, byName: map[string]credential.Credential{}}
			for _, x := range tt.has {
				c.byName[x.Name] = x
			}
			err := c.check(t.Context(), env, proxied("", ""))
			if tt.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || CodeOf(err) != CodeRefused || !strings.Contains(err.Error(), tt.want) || !strings.Contains(strings.Join(allHints(err), " "), tt.hint) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
			for _, x := range tt.has {
				if x.For(tt.line.Line) {
					t.Error("it would be leased")
				}
			}
		})
	}
	env := testEnv(&Env{Home: home, Lookup: func(string) (string, bool) { return "", false }}, nil)
	if _, err := env.credentials(t.Context(), engine.Info{Local: false}, true, proxied("http://proxy.example:3128", "corp")); err == nil || CodeOf(err) != CodeRefused || !strings.Contains(err.Error(), "engine elsewhere") {
		t.Errorf("an engine elsewhere: %v", err)
	}
}

func allHints(err error) []string {
	f, _ := errors.AsType[*Failure](err)
	return f.AllHints()
}
