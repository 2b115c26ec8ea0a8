package credential

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/llmdo/workshop/internal/guard/lease"
	"github.com/llmdo/workshop/internal/secretsource"
)

const example = `# what workers may use, and where
github: {command: [/usr/bin/gh, auth, token], hosts: [github.com, api.github.com], as: github, ttl: 50m, use: {push: ask}}
anthropic:
  env: ANTHROPIC_API_KEY
  hosts: [api.anthropic.com]
  as: {header: x-api-key}
npm: {keyring: npm, hosts: ["npm.acme.example:8443"], as: bearer, ca: ~/acme-ca.pem}
work-key: {ssh_agent: "SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU", hosts: [git.acme.example, "ssh.acme.example:2222"], known_hosts: ~/known}
signing: {hosts: [git.acme.example], ssh_agent: "SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU"}
mirror: {file: /home/user/token, hosts: [MIRROR.acme.example], as: {basic: reader}}
`

func TestParse(t *testing.T) {
	got, list := Parse("credentials.yaml", []byte(example), "/home/user")
	if len(list) > 0 {
		t.Fatal(list)
	}
	want := []Credential{
		{Name: "anthropic", Source: secretsource.Source{Env: "ANTHROPIC_API_KEY"}, Hosts: []Host{{"api.anthropic.com", 443}}, As: Form{Header: "x-api-key"}, Line: 3},
		{Name: "github", Source: secretsource.Source{Command: []string{"/usr/bin/gh", "auth", "token"}}, Hosts: []Host{{"github.com", 443}, {"api.github.com", 443}}, As: Form{GitHub: true}, Lifetime: 50 * time.Minute, AskPush: true, Line: 2},
		{Name: "mirror", Source: secretsource.Source{File: "/home/user/token"}, Hosts: []Host{{"mirror.acme.example", 443}}, As: Form{Basic: "reader"}, Line: 10},
		{Name: "npm", Source: secretsource.Source{Keyring: "npm"}, Hosts: []Host{{"npm.acme.example", 8443}}, Authorities: "/home/user/acme-ca.pem", Line: 7},
		{Name: "signing", Agent: "SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU", Hosts: []Host{{"git.acme.example", 22}}, KnownHosts: "/home/user/.ssh/known_hosts", Line: 9},
		{Name: "work-key", Agent: "SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU", Hosts: []Host{{"git.acme.example", 22}, {"ssh.acme.example", 2222}}, KnownHosts: "/home/user/known", Line: 8},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, c := range got {
		again, list := Parse("", []byte(c.Text("/home/user")), "/home/user")
		if len(list) > 0 || len(again) != 1 || !same(again[0], c) {
			t.Errorf("%s: %+v, %v", c.Text("/home/user"), again, list)
		}
	}
	if !got[3].Allowed("npm.acme.example", 8443) || got[3].Allowed("npm.acme.example", 443) || got[1].Allowed("evil.github.com", 443) {
		t.Error("hosts are not exactly those of the file")
	}
	if none, list := Parse("c", []byte("# nothing yet\n"), ""); len(none)+len(list) > 0 {
		t.Error(none, list)
	}
}

// TestParseRefuses: what is wrong has its place, and nothing of such a file counts.
func TestParseRefuses(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"no source", "a: {hosts: [h.example]}", "c:1:1: error: the credential a has no source"},
		{"two sources", "a: {env: A, file: /a, hosts: [h.example]}", "c:1:13: error: the credential has two sources"},
		{"no hosts", "a:\n  env: A\n", "c:1:1: error: the credential a has no hosts"},
		{"an empty list", "a: {env: A, hosts: []}", "c:1:20: error: this is not a list of 1 to 64"},
		{"a wildcard", `a: {env: A, hosts: ["*.example.org"]}`, "is not the name of one host"},
		{"a URL", `a: {env: A, hosts: ["https://example.org"]}`, "has no port from 1 to 65535"},
		{"a path", `a: {env: A, hosts: ["example.org/x"]}`, "is not the name of one host"},
		{"an address", `a: {env: A, hosts: [198.51.100.1]}`, "is not the name of one host"},
		{"a port", `a: {env: A, hosts: ["h.example:0"]}`, "no port from 1 to 65535"},
		{"ports", `a: {env: A, hosts: ["h.example:1-2"]}`, "no port from 1 to 65535"},
		{"a host twice", `a: {env: A, hosts: [h.example, "H.example:443"]}`, "c:1:32: error: the host h.example is given twice"},
		{"a name", "Git: {env: A, hosts: [h.example]}", `c:1:1: error: "Git" is not a name`},
		{"twice", "a: {env: A, hosts: [h.example]}\na: {env: A, hosts: [h.example]}", `c:2:1: error: the key "a" is given twice`},
		{"an unknown key", "a: {env: A, hosts: [h.example], retarget: x}", `c:1:33: error: unknown key "retarget"`},
		{"a program by PATH", "a: {command: [gh, auth, token], hosts: [h.example]}", "must not depend on PATH"},
		{"a shell line", "a: {command: gh auth token, hosts: [h.example]}", "c:1:14: error: this is not a list"},
		{"a relative file", "a: {file: token, hosts: [h.example]}", "is not an absolute path"},
		{"a form", "a: {env: A, hosts: [h.example], as: cookie}", `"cookie" is not a form`},
		{"a proxy without a port", "a: {env: A, as: proxy, hosts: [h.example]}", `c:1:32: error: "h.example" has no port: the host of a proxy is HOST:PORT`},
		{"a proxy without a port, as behind it", "a: {env: A, hosts: [h.example], as: proxy}", `c:1:21: error: "h.example" has no port`},
		{"a proxy with an empty port", `a: {env: A, hosts: ["h.example:"], as: proxy}`, "has no port"},
		{"a proxy with ports", `a: {env: A, hosts: ["h.example:1-2"], as: proxy}`, "no port from 1 to 65535"},
		{"a proxy with a wildcard", `a: {env: A, hosts: ["*.example:3128"], as: proxy}`, "is not the name or the address of one host"},
		{"a proxy with a zone", `a: {env: A, hosts: ["[fe80::1%eth0]:3128"], as: proxy}`, "is not the name or the address of one host"},
		{"a proxy twice", `a: {env: A, hosts: ["h.example:3128", "H.example:3128"], as: proxy}`, "is given twice"},
		{"a proxy's ca", `a: {env: A, hosts: ["h.example:3128"], as: proxy, ca: /a}`, "c:1:51: error: ca is not for `as: proxy`"},
		{"a proxy's use", `a: {env: A, hosts: ["h.example:3128"], as: proxy, use: {push: ask}}`, "use is not for `as: proxy`"},
		{"a proxy as an agent", "a: {ssh_agent: \"SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU\", as: proxy}", "as is not for ssh_agent"},
		{"two forms", "a: {env: A, hosts: [h.example], as: {header: a, basic: b}}", "as has one form"},
		{"no form", "a: {env: A, hosts: [h.example], as: {}}", "as has one form"},
		{"a list of forms", "a: {env: A, hosts: [h.example], as: [bearer]}", "as is not a mapping"},
		{"Host", "a: {env: A, hosts: [h.example], as: {header: Host}}", "the header Host is not for credentials"},
		{"Proxy-Authorization", "a: {env: A, hosts: [h.example], as: {header: Proxy-Authorization}}", "is not for credentials"},
		{"a header in two lines", `a: {env: A, hosts: [h.example], as: {header: "a\nb"}}`, "letters, digits and hyphens"},
		{"a user with a colon", `a: {env: A, hosts: [h.example], as: {basic: "a:b"}}`, "no colon"},
		{"a short lifetime", "a: {env: A, hosts: [h.example], ttl: 5s}", "from 1m to 720h"},
		{"an alias", "a: &x {env: A, hosts: [h.example]}\nb: *x", "without anchors, aliases"},
		{"a merge", "a: &x {env: A, hosts: [h.example]}\nb: {<<: *x}", "without anchors, aliases"},
		{"no mapping", "- a", "the file is not a mapping"},
		{"no credential", "a: b", "the credential is not a mapping"},
		{"two documents", "a: {env: A, hosts: [h.example]}\n---\nb: {}", "c:2:1: error: the file has a second document"},
		{"no YAML", "a: {", "not valid YAML"},
		{"nested", strings.Repeat("[", 5000), "not valid YAML"},
		{"a control character", "a: \x01", "c:1:4"},
		{"too large", strings.Repeat("#", MaxSize+1), "more than 262144"},
		{"no fingerprint", "a: {ssh_agent: work, hosts: [h.example]}", `c:1:16: error: "work" is not the fingerprint of a key`},
		{"an agent with a form", "a: {ssh_agent: \"SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU\", as: bearer}", "as is not for ssh_agent"},
		{"an agent with a lifetime", "a: {ssh_agent: \"SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU\", ttl: 5m}", "ttl is not for ssh_agent"},
		{"a use of an agent", "a: {ssh_agent: \"SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU\", use: {push: ask}}", "use is not for ssh_agent"},
		{"an unknown use", "a: {env: A, hosts: [h.example], use: {pull: ask}}", `c:1:39: error: unknown use "pull"`},
		{"a use that doesn't ask", "a: {env: A, hosts: [h.example], use: {push: deny}}", `c:1:45: error: push is not "deny"`},
		{"a use of nothing", "a: {env: A, hosts: [h.example], use: {push: }}", "this is not text"},
		{"no use", "a: {env: A, hosts: [h.example], use: {}}", "use has no use"},
		{"a word for a use", "a: {env: A, hosts: [h.example], use: ask}", "use is not a mapping"},
		{"an agent and a value", "a: {ssh_agent: \"SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU\", env: A}", "two sources"},
		{"known hosts of a value", "a: {env: A, hosts: [h.example], known_hosts: ~/a}", "known_hosts is for ssh_agent"},
		{"all at once", "a: {hosts: [h.example]}\nb: {env: B}\n", "c:2:1: error: the credential b has no hosts"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, list := Parse("c", []byte(tt.text), "/home/user")
			if len(got) > 0 || !strings.Contains(list.Error(), tt.want) {
				t.Errorf("%d credentials and\n%v\nwant %s", len(got), list.Error(), tt.want)
			}
		})
	}
}

// TestRead: a file that somebody else could have written, or can read, isn't read (attack 43).
func TestRead(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "credentials.yaml")
	if got, list, err := Read(name, ""); got != nil || list != nil || err != nil {
		t.Errorf("no file: %v %v %v", got, list, err)
	}
	if err := os.WriteFile(name, []byte(example), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, list, err := Read(name, "/home/user"); len(got) != 6 || list != nil || err != nil {
		t.Errorf("got %d, %v, %v", len(got), list, err)
	}
	link := filepath.Join(dir, "link.yaml")
	if err := os.Symlink(name, link); err != nil {
		t.Fatal(err)
	}
	for file, mode := range map[string]os.FileMode{name: 0o644, link: 0o600, dir: 0o700} {
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		if got, _, err := Read(file, ""); got != nil || err == nil {
			t.Errorf("%s with mode %o: %d credentials, %v", file, mode, len(got), err)
		}
	}
}

func TestForm(t *testing.T) {
	for _, tt := range []struct {
		form             Form
		host, name, text string
	}{
		{Form{}, "h.example", "Authorization", "Bearer v"},
		{Form{Header: "x-api-key"}, "h.example", "x-api-key", "v"},
		{Form{Basic: "user"}, "h.example", "Authorization", "Basic dXNlcjp2"},
		{Form{GitHub: true}, "github.com", "Authorization", "Basic eC1hY2Nlc3MtdG9rZW46dg=="},
		{Form{GitHub: true}, "api.github.com", "Authorization", "Bearer v"},
		{Form{Proxy: true}, "proxy.example", "Proxy-Authorization", "Basic dg=="},
	} {
		if name, text := tt.form.In(tt.host, "v"); name != tt.name || text != tt.text {
			t.Errorf("%+v at %s: %s: %s, want %s: %s", tt.form, tt.host, name, text, tt.name, tt.text)
		}
	}
}

// An upstream proxy's credential has its ports written out, and goes to its line alone.
func TestProxyForm(t *testing.T) {
	const text = `corp: {env: CORP_PROXY, hosts: ["proxy.example:3128", "proxy.example:443", "198.51.100.80:3128", "[2001:db8::1]:80"], as: proxy}`
	all, list := Parse("c", []byte(text), "")
	if len(list) > 0 || len(all) != 1 || all[0].Text("") != text {
		t.Fatalf("%v, %v", all, list)
	}
	c := all[0]
	if err := errors.Join(c.As.CheckValue([]byte("user:pass:word")), Form{}.CheckValue([]byte("token"))); err != nil {
		t.Error(err)
	}
	if err := c.As.CheckValue([]byte("canary-5d")); err == nil || strings.Contains(err.Error(), "canary") {
		t.Errorf("a value without a colon: %v", err)
	}
	if f, err := ParseForm(c.As.String()); err != nil || f != c.As {
		t.Errorf("%+v, %v", f, err)
	}
	line := lease.Line{Host: "proxy.example", Port: 3128, Credential: "corp"}
	for _, tt := range []struct {
		name   string
		change func(*lease.Line, *Credential)
		may    bool
	}{
		{"its own", func(*lease.Line, *Credential) {}, true},
		{"an address", func(l *lease.Line, _ *Credential) { l.Host, l.Port = "2001:db8::1", 80 }, true},
		{"another port", func(l *lease.Line, _ *Credential) { l.Port = 3129 }, false},
		{"another host", func(l *lease.Line, _ *Credential) { l.Host = "evil.example" }, false},
		{"another name", func(l *lease.Line, _ *Credential) { l.Credential = "other" }, false},
		{"an endpoint", func(l *lease.Line, _ *Credential) { l.Room, l.At = "room", "a" }, false},
		{"another form", func(_ *lease.Line, c *Credential) { c.As = Form{} }, false},
		{"an endpoint, by another form", func(l *lease.Line, c *Credential) { l.Room, l.At, c.As = "room", "a", Form{Basic: "u"} }, true},
		{"a key", func(_ *lease.Line, c *Credential) { c.Agent = "SHA256:x" }, false},
	} {
		l, x := line, c
		tt.change(&l, &x)
		if x.For(l) != tt.may {
			t.Errorf("%s: may it go there: %v", tt.name, !tt.may)
		}
	}
}

// FuzzParse: no text crashes the parser, and what it takes is complete.
func FuzzParse(f *testing.F) {
	f.Add(example)
	f.Add("a: {env: A, hosts: [\"h.example:1\"], as: {basic: b}}")
	f.Add("a: {as: proxy, env: A, hosts: [\"h.example:3128\", \"[2001:db8::1]:80\"]}")
	f.Add("a: &x {file: ~/a, hosts: [h.example]}\nb: *x\n---\n")
	f.Fuzz(func(t *testing.T, text string) {
		all, list := Parse("c", []byte(text), "/home/user")
		if len(list) > 0 && len(all) > 0 {
			t.Error("credentials of a file that is wrong")
		}
		for _, c := range all {
			sources := 0
			for _, is := range []bool{c.Agent != "", c.Source.Env != "", c.Source.File != "", c.Source.Keyring != "", len(c.Source.Command) > 0} {
				if is {
					sources++
				}
			}
			if sources != 1 || len(c.Hosts) == 0 && c.Agent == "" || c.As.Header != "" && c.As.Basic != "" {
				t.Errorf("%+v", c)
			}
			for _, h := range c.Hosts {
				if h.Port == 0 || h.Name == "" || strings.ContainsAny(h.Name, "*/ ") || strings.Contains(h.Name, ":") && !c.As.Proxy {
					t.Errorf("host %+v", h)
				}
			}
		}
	})
}
