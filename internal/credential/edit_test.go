package credential

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/llmdo/workshop/internal/secretsource"
)

var npm = Credential{Name: "npm", Source: secretsource.Source{Keyring: "npm"}, Hosts: []Host{{"npm.acme.example", 8443}}, Authorities: "/home/user/acme-ca.pem"}

const npmLine = `npm: {keyring: npm, hosts: ["npm.acme.example:8443"], as: bearer, ca: ~/acme-ca.pem}`

// TestAdd: what is there stays byte for byte, and the new entry is a line below it.
func TestAdd(t *testing.T) {
	const a = "a: {env: A, hosts: [h.example]}"
	for _, tt := range []struct{ name, before, after, err string }{
		{"no file", "", npmLine + "\n", ""},
		{"comments alone", "# mine\n", "# mine\n" + npmLine + "\n", ""},
		{"another one", a + "   # why\n\n# end\n", a + "   # why\n\n# end\n" + npmLine + "\n", ""},
		{"no last line end", a, a + "\n" + npmLine + "\n", ""},
		{"CRLF", a + "\r\n", a + "\r\n" + npmLine + "\r\n", ""},
		{"a block", "a:\n  env: A\n  hosts:\n  - h.example\n", "a:\n  env: A\n  hosts:\n  - h.example\n" + npmLine + "\n", ""},
		{"indented", "  " + a + "\n", "  " + a + "\n  " + npmLine + "\n", ""},
		{"a document's mark", "---\n" + a + "\n", "---\n" + a + "\n" + npmLine + "\n", ""},
		{"a document's end", a + "\n...\n", "", "add the line `npm: {keyring: npm"},
		{"braces", "{" + a + "}\n", "", "add the line `npm: {keyring: npm"},
		{"it is there", "npm:\n  env: A\n  hosts: [h.example]\n", "", ErrExists.Error()},
		{"a wrong file", "a: {}\n", "", "the credential a has no source"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Add([]byte(tt.before), "/home/user", npm)
			if diff := cmp.Diff(tt.after, string(got)); diff != "" {
				t.Error(diff, err)
			}
			if (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("error %v, want %q", err, tt.err)
			}
		})
	}
}

// TestText: whatever a source, a host and a form can be is read back as it is.
func TestText(t *testing.T) {
	source := func(words ...string) secretsource.Source { return secretsource.Source{Command: words} }
	for want, c := range map[string]Credential{
		npmLine: npm,
		`g: {command: [/usr/bin/gh, auth, token], hosts: [github.com, api.github.com], as: github, ttl: 50m}`: {
			Name: "g", Source: source("/usr/bin/gh", "auth", "token"), Hosts: []Host{{"github.com", 443}, {"api.github.com", 443}}, As: Form{GitHub: true}, Lifetime: 50 * time.Minute},
		`x: {env: KEY, hosts: ["1.example"], as: {header: x-api-key}}`: {
			Name: "x", Source: secretsource.Source{Env: "KEY"}, Hosts: []Host{{"1.example", 443}}, As: Form{Header: "x-api-key"}},
		`x: {file: "/a b/#c", hosts: [h.example], as: {basic: __token__}, ttl: 1h30m}`: {
			Name: "x", Source: secretsource.Source{File: "/a b/#c"}, Hosts: []Host{{"h.example", 443}}, As: Form{Basic: "__token__"}, Lifetime: 90 * time.Minute},
		`x: {command: [/p, "null", "-v", "a: \"b\\", "\u00E4\u202E\u000A", "12", "yes"], hosts: [h.example], as: bearer}`: {
			Name: "x", Source: source("/p", "null", "-v", `a: "b\`, "ä\u202e\n", "12", "yes"), Hosts: []Host{{"h.example", 443}}},
	} {
		t.Run(want, func(t *testing.T) {
			if got := c.Text("/home/user"); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			out, err := Add(nil, "/home/user", c)
			if err != nil {
				t.Fatal(err)
			}
			if all, list := Parse("", out, "/home/user"); len(all) != 1 || len(list) > 0 || !same(all[0], c) {
				t.Errorf("read back as %+v, %v", all, list)
			}
		})
	}
	for _, wrong := range []Credential{
		{Name: "x", Source: source("/a\xff"), Hosts: npm.Hosts},
		{Name: "x", Source: source("p"), Hosts: npm.Hosts},
		{Name: "X", Source: npm.Source, Hosts: npm.Hosts},
		{Name: "x", Source: npm.Source},
		{Name: "x", Source: npm.Source, Hosts: []Host{{"*.example", 443}}},
		{Name: "x", Source: npm.Source, Hosts: npm.Hosts, As: Form{Header: "Host"}},
		{Name: "x", Source: npm.Source, Hosts: npm.Hosts, As: Form{Basic: "a:b"}},
		{Name: "x", Source: npm.Source, Hosts: npm.Hosts, Lifetime: time.Second},
		{Name: "x", Source: npm.Source, Hosts: npm.Hosts, Authorities: "ca.pem"},
	} {
		if out, err := Add(nil, "/home/user", wrong); err == nil {
			t.Errorf("%+v was added: %s", wrong, out)
		}
	}
}

// TestRemove: the lines of one entry go, and no other byte.
func TestRemove(t *testing.T) {
	const a, c = "a: {env: A, hosts: [h.example]}\n", "c:\n  env: C\n  hosts:\n  - h.example\n"
	for _, tt := range []struct{ name, before, after string }{
		{"the first", "npm: {env: B, hosts: [h.example]} # b\n" + a + c, a + c},
		{"between", "# all\n" + a + "# of npm\nnpm:\n  env: B\n  # inside\n  hosts: [h.example]\n  # below\n\n# of c\n" + c, "# all\n" + a + "# of npm\n\n# of c\n" + c},
		{"the last", a + npmLine + "\n\n# end\n", a + "\n# end\n"},
		{"the last, without a line end", a + npmLine, a},
		{"the only one", "# mine\n" + npmLine + "\n", "# mine\n"},
		{"on several lines", a + "npm: {env: B,\n  hosts: [h.example],\n}\n" + c, a + c},
		{"CRLF", "a: {env: A, hosts: [h.example]}\r\n" + npmLine + "\r\n# x\r\n", "a: {env: A, hosts: [h.example]}\r\n# x\r\n"},
		{"a document's end", a + npmLine + "\n...\n", a + "...\n"},
		{"in quotes", `"npm": {env: B, hosts: [h.example]}` + "\n" + a, a},
		{"an explicit key", "? npm\n: {env: B, hosts: [h.example]}\n" + a, a},
		{"indented", "  " + a + "  " + npmLine + "\n", "  " + a},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Remove([]byte(tt.before), "/home/user", "npm")
			if diff := cmp.Diff(tt.after, string(got)); diff != "" || err != nil {
				t.Error(diff, err)
			}
		})
	}
	if _, err := Remove([]byte(a), "", "npm"); !errors.Is(err, ErrAbsent) {
		t.Error(err)
	}
	for text, want := range map[string]string{
		"{npm: {env: B, hosts: [h.example]}}\n":         "remove line 1 by hand",
		"---\nnpm: {env: B,\n  hosts: [h.example]}\n":   "remove the lines 2 to 3 by hand", // nothing but the mark would be left
		"!!map {\n  npm: {env: B, hosts: [h.example]}}": "by hand",
	} {
		if out, err := Remove([]byte(text), "", "npm"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %q, %v; want %s", text, out, err, want)
		}
	}
}

// FuzzEdit: what an edit returns is valid, has the other credentials as they were, and all
// of the text but one piece.
func FuzzEdit(f *testing.F) {
	f.Add(example, "npm")
	f.Add("a:\n  env: A # x\n  hosts:\n  - h.example\n# b\nb: {env: \"A\n  # b\", hosts: [h.example]}\n...\n", "b")
	f.Add("  \"a\": {env: A,\n  hosts: [h.example]\n}\r\n\r\n? b\n: {env: B, hosts: [h.example]}", "a")
	f.Add("---\na: &x {file: ~/a, hosts: [h.example]}\n", "a")
	f.Fuzz(func(t *testing.T, text, name string) {
		const home = "/home/user"
		before, list := Parse("", []byte(text), home)
		c := npm
		c.Name = "added"
		out, err := Add([]byte(text), home, c)
		if err == nil {
			if rest, ok := bytes.CutPrefix(out, []byte(text)); !ok || bytes.Count(rest, []byte("\n")) > 2 {
				t.Errorf("other bytes than the line's differ:\n%q\n%q", text, out)
			}
			after, list := Parse("", out, home)
			if len(list) > 0 || !sameAll(after, append(before, c)) {
				t.Errorf("%v: %+v", list, after)
			}
			back, err := Remove(out, home, c.Name)
			if err == nil && strings.TrimRight(string(back), "\r\n") != strings.TrimRight(text, "\r\n") {
				t.Errorf("removed again:\n%q\n%q", text, back)
			}
		}
		out, err = Remove([]byte(text), home, name)
		if err != nil {
			if out != nil || errors.Is(err, ErrAbsent) && len(list) > 0 {
				t.Errorf("%q, %v", out, err)
			}
			return
		}
		head := 0
		for head < len(out) && out[head] == text[head] {
			head++
		}
		for tail := 0; tail < len(out)-head; tail++ { // one piece is gone
			if out[len(out)-1-tail] != text[len(text)-1-tail] {
				t.Errorf("other bytes than the entry's differ:\n%q\n%q", text, out)
				break
			}
		}
		after, list := Parse("", out, home)
		if len(list) > 0 || len(after) != len(before)-1 {
			t.Errorf("%v: %+v", list, after)
		}
		for _, x := range after {
			if x.Name == name {
				t.Errorf("%s is still there", name)
			}
		}
	})
}

// TestTemplates: each is complete, in order, and its lines name it.
func TestTemplates(t *testing.T) {
	last := ""
	for _, x := range Templates() {
		if x.Name <= last || x.Env == "" || x.At == "" || len(x.Requests) == 0 && x.Git == "" {
			t.Errorf("%+v", x)
		}
		last = x.Name
		c := Credential{Name: x.Name, Source: secretsource.Source{Env: x.Env}, As: x.As}
		for _, h := range append(x.Hosts, "h.example")[:max(1, len(x.Hosts))] {
			c.Hosts = append(c.Hosts, Host{h, 443})
		}
		if _, err := Add(nil, "", c); err != nil {
			t.Errorf("%s: %v", x.Name, err)
		}
	}
	page, err := os.ReadFile("../../docs/credentials.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range Templates() {
		value, hosts := "`"+x.Env+"`", strings.Join(x.Hosts, ", ")
		if len(x.Command) > 0 {
			value = "`" + strings.Join(x.Command, " ") + "` where " + x.Command[0] + " is installed, else " + value
		}
		if hosts == "" {
			hosts = "`--host`, that of your index"
		}
		if row := fmt.Sprintf("| `%s` | %s | %s | `%s` |\n", x.Name, value, hosts, x.As); !strings.Contains(string(page), row) {
			t.Errorf("docs/credentials.md doesn't have %s", row)
		}
	}
	x, _ := TemplateNamed("github")
	got := x.Lines(Credential{Name: "mine", Hosts: []Host{{"github.com", 443}, {"api.github.com", 443}}})
	want := []string{`- {host: github.com, at: github, git: {read: [OWNER/REPO], push: {OWNER/REPO: ["agent/*"]}}, credential: mine}`, `- {host: api.github.com, at: github-api, requests: ["GET,HEAD /repos/OWNER/REPO/**"], credential: mine}`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	got = Template{}.Lines(Credential{Name: "mine", Hosts: []Host{{"a.example", 443}, {"b.example", 8443}}})
	want = []string{`- {host: a.example, at: mine, requests: ["GET,HEAD *"], credential: mine}`, `- {host: b.example, port: 8443, at: mine-2, requests: ["GET,HEAD *"], credential: mine}`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestFormText(t *testing.T) {
	for text, f := range map[string]Form{"bearer": {}, "github": {GitHub: true}, "header:x-api-key": {Header: "x-api-key"}, "basic:u": {Basic: "u"}} {
		if got, err := ParseForm(text); err != nil || got != f || f.String() != text {
			t.Errorf("%s: %+v %v %s", text, got, err, f)
		}
	}
	for _, text := range []string{"", "Bearer", "header", "header:", "basic:", "cookie:x", "bearer:x"} {
		if f, err := ParseForm(text); err == nil {
			t.Errorf("%q: %+v", text, f)
		}
	}
	for _, tt := range []struct {
		f          Form
		host, want string
	}{
		{Form{}, "h.example", "Authorization: Bearer"},
		{Form{Header: "x-api-key"}, "h.example", "x-api-key"},
		{Form{Basic: "u"}, "h.example", "Authorization: Basic, with the user u"},
		{Form{GitHub: true}, "github.com", "Authorization: Basic, with the user x-access-token"},
		{Form{GitHub: true}, "api.github.com", "Authorization: Bearer"},
	} {
		if got := tt.f.Describe(tt.host); got != tt.want {
			t.Errorf("%+v at %s: %s, want %s", tt.f, tt.host, got, tt.want)
		}
	}
}
