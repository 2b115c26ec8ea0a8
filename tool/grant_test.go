package tool

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
)

func offers(list ...string) []Offer {
	var out []Offer
	for _, s := range list {
		name, limit, _ := strings.Cut(strings.TrimSuffix(s, ")"), "(")
		out = append(out, Offer{name, limit})
	}
	return out
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		tools []Offer
		name  string
		args  string
		want  string // part of the error; empty: offered
	}{
		{nil, "shell", `{"argv":["git"]}`, "the worker w has no tool shell; it has no tools"},
		{offers("read_file", "shell(git:*)"), "write_file", `{}`, "has no tool write_file; it has read_file, shell(git:*)"},
		{offers("read_file"), "read_file", `{"path":"x"}`, ""},
		{offers("read_file"), "read_file", `nonsense`, ""},
		{offers("read_file"), "", `{}`, "the call names no tool; it has read_file"},
		{offers("read_file"), "Read_file", `{}`, "has no tool"},
		{offers("read_file(src/**)"), "read_file", `{"path":"src/a"}`, "unknown"},
		{offers("shell"), "shell", `{"command":"rm -rf /","env":{"A":"b"}}`, ""},
		{offers("shell(git:*)", "shell"), "shell", `{"command":"rm"}`, ""},

		{offers("shell(git:*)"), "shell", `{"argv":["git"]}`, ""},
		{offers("shell(git:*)"), "shell", `{"argv":["git","push","--force"],"cwd":"/src","stdin":"x","timeout_seconds":1}`, ""},
		{offers("shell(git *)"), "shell", `{"argv":["git","push"]}`, ""},
		{offers("shell(git log:*)"), "shell", `{"argv":["git","log","-p"]}`, ""},
		{offers("shell(git log *)"), "shell", `{"argv":["git","log"]}`, ""},
		{offers("shell(git log:*)"), "shell", `{"argv":["git","logs"]}`, "not one of those"},
		{offers("shell(git log:*)"), "shell", `{"argv":["git"]}`, "not one of those"},
		{offers("shell(git log:*)"), "shell", `{"argv":["git","-C","/x","log"]}`, "not one of those"},
		{offers("shell(git:*)"), "shell", `{"argv":["/tmp/git","log"]}`, "not one of those"},
		{offers("shell(git:*)"), "shell", `{"argv":["./git"]}`, "not one of those"},
		{offers("shell(git:*)"), "shell", `{"argv":["git log"]}`, "not one of those"},
		{offers("shell(git:*)"), "shell", `{"argv":[" git"]}`, "not one of those"},
		{offers("shell(git:*)"), "shell", `{"argv":["GIT"]}`, "not one of those"},
		{offers("shell(git:*)"), "shell", `{"argv":["gitx"]}`, "not one of those"},
		{offers("shell(git:*)"), "shell", `{"argv":["git\u0000"]}`, "not one of those"},
		{offers("shell(git:*)"), "shell", `{"argv":[]}`, "argv is empty"},
		{offers("shell(git:*)"), "shell", `{}`, "argv is empty"},
		{offers("shell(git:*)"), "shell", ``, "argv is empty"},
		{offers("shell(git:*)"), "shell", `null`, "want a JSON object"},
		{offers("shell(git:*)"), "shell", `{"command":"git log"}`, "as argv"},
		{offers("shell(git:*)"), "shell", `{"command":"rm x","argv":["git"]}`, "as argv"},
		{offers("shell(git:*)"), "shell", `{"argv":["git"],"env":{"PATH":"/tmp"}}`, "env could turn"},
		{offers("shell(git:*)"), "shell", `{"argv":["git"],"env":{"GIT_SSH":"/tmp/x"}}`, "env could turn"},
		{offers("shell(git:*)"), "shell", `{"argv":["git"],"argv":["rm"]}`, `"argv" is given twice`},
		{offers("shell(git:*)"), "shell", `{"argv":["git"],"ARGV":["rm"]}`, `unknown argument "ARGV"`},
		{offers("shell(git:*)"), "shell", `{"argv":["git"],"\u017ftdin":"x"}`, `unknown argument`},
		{offers("shell(git:*)"), "shell", `{"argv":["git"],"program":"rm"}`, `unknown field`},
		{offers("shell(git:*)"), "shell", `{"argv":["git"]}{"argv":["rm"]}`, "trailing data"},
		{offers("shell(git:*)"), "shell", `{"argv":"git"}`, "can't be read"},
		{offers("shell(npm run test)"), "shell", `{"argv":["npm","run","test"]}`, ""},
		{offers("shell(npm run test)"), "shell", `{"argv":["npm","run","test","--x"]}`, "not one of those"},
		{offers("shell(npm run test:*)"), "shell", `{"argv":["npm","run","test","--x"]}`, ""},
		{offers("shell(npm run test:*)"), "shell", `{"argv":["npm","run","test:unit"]}`, "not one of those"},
		{offers("shell(./gradlew:*)"), "shell", `{"argv":["./gradlew","build"]}`, ""},
		{offers("shell(./gradlew:*)"), "shell", `{"argv":["./gradlew","build"],"cwd":"/tmp"}`, "cwd would change"},
		{offers("shell(/usr/bin/make:*)"), "shell", `{"argv":["/usr/bin/make"],"cwd":"/tmp"}`, ""},
		{offers("shell(git:*)", "shell(go test:*)"), "shell", `{"argv":["go","test","./..."]}`, ""},
		{offers("shell(*)"), "shell", `{"argv":["rm"]}`, "names no program"},
		{offers("shell(g*)"), "shell", `{"argv":["git"]}`, "has a star"},

		{offers("fetch_url"), "fetch_url", `{"url":"https://anything.example"}`, ""},
		{offers("fetch_url(domain:example.org)"), "fetch_url", `{"url":"https://example.org/x?y#z"}`, ""},
		{offers("fetch_url(domain:example.org)"), "fetch_url", `{"url":"http://EXAMPLE.org:8080/"}`, ""},
		{offers("fetch_url(domain:example.org)"), "fetch_url", `{"url":"https://a.example.org/"}`, "a.example.org is not one of those"},
		{offers("fetch_url(domain:example.org)"), "fetch_url", `{"url":"https://example.org@evil.example/"}`, "evil.example is not one"},
		{offers("fetch_url(domain:example.org)"), "fetch_url", `{"url":"https://evil.example/example.org"}`, "evil.example is not one"},
		{offers("fetch_url(domain:example.org)"), "fetch_url", `{"url":"https://evilexample.org/"}`, "evilexample.org is not one"},
		{offers("fetch_url(domain:example.org)"), "fetch_url", `{"url":"https://example.org./"}`, "trailing dot"},
		{offers("fetch_url(domain:example.org)"), "fetch_url", `{"url":"https://198.51.100.1/"}`, "an address"},
		{offers("fetch_url(domain:example.org)"), "fetch_url", `{"url":"https://\u0000/"}`, "is not valid"},
		{offers("fetch_url(domain:example.org)"), "fetch_url", `{}`, "empty"},
		{offers("fetch_url(domain:*.example.org)"), "fetch_url", `{"url":"https://a.example.org/"}`, ""},
		{offers("fetch_url(domain:*.example.org)"), "fetch_url", `{"url":"https://a.b.example.org/"}`, "not one of those"},
		{offers("fetch_url(domain:**.example.org)"), "fetch_url", `{"url":"https://a.b.example.org/"}`, ""},
		{offers("fetch_url(domain:*.github.io)"), "fetch_url", `{"url":"https://a.github.io/"}`, ""},
		{offers("fetch_url(example.org)"), "fetch_url", `{"url":"https://example.org/"}`, "doesn't know"},

		{offers("mcp__ci"), "mcp__ci__run", `{}`, ""},
		{offers("mcp__ci__*"), "mcp__ci__run", `{}`, ""},
		{offers("mcp__ci__run"), "mcp__ci__run", `{}`, ""},
		{offers("mcp__ci__run"), "mcp__ci__run__x", `{}`, "has no tool"},
		{offers("mcp__ci__run"), "mcp__ci__log", `{}`, "has no tool"},
		{offers("mcp__ci"), "mcp__cix__run", `{}`, "has no tool"},
		{offers("mcp__ci"), "mcp__ci", `{}`, "has no tool"},
		{offers("mcp__ci__*"), "mcp__ci__*", `{}`, "has no tool"},
		{offers("mcp__ci"), "mcp__ci__", `{}`, "has no tool"},
		{offers("mcp__ci(x)"), "mcp__ci__run", `{}`, "unknown"},
	} {
		g := Grant{Worker: "w", Tools: c.tools}
		err := g.Check(c.name, json.RawMessage(c.args))
		var no *NotOfferedError
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%v: %s %s: %v", c.tools, c.name, c.args, err)
		case c.want != "" && (!errors.As(err, &no) || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%v: %s %s: %v, want %q", c.tools, c.name, c.args, err, c.want)
		}
	}
}

func TestCheckURL(t *testing.T) {
	g := Grant{Tools: offers("fetch_url(domain:a.example)", "fetch_url(domain:b.example)")}
	for url, want := range map[string]bool{"https://a.example/": true, "https://b.example/": true, "https://c.example/": false, "": false} {
		if err := g.CheckURL(url); (err == nil) != want {
			t.Errorf("%q: %v", url, err)
		}
	}
	if (&Grant{}).CheckURL("https://a.example") == nil {
		t.Error("a grant of nothing lets a URL through")
	}
}

func TestCheckServer(t *testing.T) {
	g := Grant{Tools: offers("mcp__a", "mcp__b__run", "mcp__c(x)")}
	for server, want := range map[string]bool{"a": true, "b": true, "c": false, "d": false, "": false, "b__run": false} {
		if err := g.CheckServer(server); (err == nil) != want {
			t.Errorf("%q: %v", server, err)
		}
	}
}

func TestCheckOffer(t *testing.T) {
	for text, want := range map[string]string{
		"read_file": "", "shell": "", "fetch_url": "", "mcp__a": "", "mcp__a__b": "", "mcp__a__*": "",
		"shell(git:*)": "", "shell(git *)": "", "shell(git log -n 3)": "", "shell(git show HEAD~3:*)": "",
		"fetch_url(domain:bücher.example)": "",

		"Read":                          "is not a tool",
		"":                              "is not a tool",
		"mcp__":                         "is not a tool",
		"read_file(src/**)":             "its boundary is what is mounted; write read_file",
		"list_files(x)":                 "what is mounted",
		"mcp__a(x)":                     "don't have",
		"shell(:*)":                     "names no program",
		"shell( )":                      "names no program",
		"shell(git*)":                   "a star",
		"shell(git * main)":             "a star",
		"shell(git:*:*)":                "a star",
		"shell(a && b)":                 `the character "&"`,
		"shell(git commit -m 'x')":      `the character "'"`,
		"shell($HOME/x:*)":              `the character "$"`,
		"shell(A=b git:*)":              "begins with a variable",
		"fetch_url(example.org)":        "doesn't know",
		"fetch_url(domain:)":            "can't be read",
		"fetch_url(domain:*)":           "every name",
		"fetch_url(domain:*.org)":       "can't be read",
		"fetch_url(domain:a, domain:b)": "can't be read",
	} {
		err := CheckOffer(offers(text)[0])
		var bad *OfferError
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", text, err)
		case want != "" && (!errors.As(err, &bad) || bad.Hint == "" || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestExcess(t *testing.T) {
	for _, c := range []struct{ delegate, caller, want []Offer }{
		{offers("read_file"), offers("read_file", "shell"), nil},
		{offers("read_file", "shell"), offers("read_file"), offers("shell")},
		{offers("shell(git log:*)"), offers("shell(git:*)"), nil},
		{offers("shell(git log)"), offers("shell(git log *)"), nil},
		{offers("shell(git:*)"), offers("shell(git log:*)"), offers("shell(git:*)")},
		{offers("shell(git:*)"), offers("shell(git)"), offers("shell(git:*)")},
		{offers("shell(git)"), offers("shell(git)"), nil},
		{offers("shell"), offers("shell(git:*)"), offers("shell")},
		{offers("shell(git:*)", "shell(go:*)"), offers("shell"), nil},
		{offers("fetch_url(domain:a.example.org)"), offers("fetch_url(domain:*.example.org)"), nil},
		{offers("fetch_url(domain:*.example.org)"), offers("fetch_url(domain:**.example.org)"), nil},
		{offers("fetch_url(domain:example.org)"), offers("fetch_url(domain:*.example.org)"), offers("fetch_url(domain:example.org)")},
		{offers("mcp__a__b", "mcp__a"), offers("mcp__a"), nil},
		{offers("mcp__a__*"), offers("mcp__a"), nil},
		{offers("mcp__a"), offers("mcp__a__*"), nil},
		{offers("mcp__a"), offers("mcp__a__b"), offers("mcp__a")},
		{offers("mcp__ab__b"), offers("mcp__a"), offers("mcp__ab__b")},
		{offers("shell(a*)"), offers("shell(a*)"), offers("shell(a*)")},
		{nil, nil, nil},
	} {
		if got := Excess(c.delegate, c.caller); !slices.Equal(got, c.want) {
			t.Errorf("%v in %v: %v, want %v", c.delegate, c.caller, got, c.want)
		}
	}
}

// FuzzCheck: what a limit lets through begins with its words and brings nothing
// that could make another program of them.
func FuzzCheck(f *testing.F) {
	f.Add("git:*", `{"argv":["git","log"]}`)
	f.Add("npm run test", `{"argv":["npm","run","test"],"env":{}}`)
	f.Add("git *", `{"argv":["git"],"argv":["rm"]}`)
	f.Add("./x:*", `{"argv":["./x"],"cwd":"/"}`)
	f.Fuzz(func(t *testing.T, limit, args string) {
		g := Grant{Tools: []Offer{{Shell, limit}}}
		if limit == "" || g.Check(Shell, json.RawMessage(args)) != nil {
			return
		}
		if err := CheckOffer(g.Tools[0]); err != nil {
			t.Fatalf("a limit that is refused allows: %v", err)
		}
		var m map[string]any // another reader of the same call
		if err := json.Unmarshal([]byte(args), &m); err != nil {
			t.Fatal(err)
		}
		argv, _ := m["argv"].([]any)
		first := strings.Fields(strings.NewReplacer(":*", "", "*", "").Replace(limit))
		if len(argv) < len(first) || m["command"] != nil && m["command"] != "" {
			t.Fatalf("%s lets %s through", limit, args)
		}
		for i, want := range first {
			if argv[i] != want {
				t.Fatalf("%s lets %s through", limit, args)
			}
		}
		if env, _ := m["env"].(map[string]any); len(env) > 0 {
			t.Fatalf("env under the limit %s: %s", limit, args)
		}
	})
}

// FuzzCheckOffer: an entry that is good covers itself, lies inside the whole
// tool, and doesn't cover that.
func FuzzCheckOffer(f *testing.F) {
	for _, s := range []string{"git:*", "npm run test", "domain:*.example.org", "domain:xn--bcher-kva.example", "*", "a|b"} {
		f.Add(Shell, s)
		f.Add(FetchURL, s)
	}
	f.Add("mcp__a__*", "")
	f.Fuzz(func(t *testing.T, name, limit string) {
		o := Offer{name, limit}
		if CheckOffer(o) != nil {
			return
		}
		self, whole := []Offer{o}, []Offer{{Name: name}}
		if len(Excess(self, self)) != 0 || len(Excess(self, whole)) != 0 {
			t.Errorf("%v isn't inside of itself", o)
		}
		if limit != "" && len(Excess(whole, self)) == 0 {
			t.Errorf("%v covers the whole tool", o)
		}
	})
}
