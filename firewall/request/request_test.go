package request

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func target(t testing.TB, text string) Target {
	t.Helper()
	x, err := ParseTarget(text, Options{EncodedSlash: true})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func rules(t testing.TB, texts ...string) (out Rules) {
	t.Helper()
	for _, text := range texts {
		r, err := ParseRule(text)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

// B34: what two programs could read in two ways is refused, and what passes is sent as it
// came.
func TestTarget(t *testing.T) {
	for _, text := range []string{
		"/", "/a", "/a/", "/a/b", "/v1/models/x:generate", "/repos/acme/app?per_page=100&q=a%26b", "/a%20b", "/caf%C3%A9", "/@scope%2fname", "/@scope%2Fname",
		"/a/..b/.c/...", "/a?x=/../..", "/a?x=%2e%2e", "/a?x[]=1", "/$metadata", "/a*b",
	} {
		if x := target(t, text); x.String() != text {
			t.Errorf("%s is sent as %s", text, x)
		}
	}
	for _, text := range []string{
		"", "a", "*", "http://other.example.org/", "//other.example.org/", "/a//b", "/a//", "/.", "/..", "/a/../b", "/a/.", "/a/./b", "/a/..",
		"/%2e%2e/b", "/%2E%2e/b", "/%252e%252e", "/a%2e", "/a;b=1", "/a%3bb", `/a\b`, "/a%5cb", "/a%00", "/a%0a", "/a%7f", "/a\x00", "/a\r\nHost:x", "/a b", "/caf\xc3\xa9",
		"/%2F.", "/a%2f..", "/a%2f..%2fb", "/a/..%2fb", "/a/.%2Fb", "/%2f", "/a%2f", "/%2fa", "/a%2f%2fb",
		"/%61", "/%7Eroot", "/a%", "/a%2", "/a%zz", "/a#b", "/a?b#c", "/a?b c", "/a?b\n", "/a?x=%00", "/a?x=\x7f", "/a?a;b", "/a\"", "/a<b>", "/a^", "/a`", "/{a}", "/a|b",
		"/a%2f..%2fb", "/..%2Fb", "/a%2f..", "/a/b%2f.%2fc", "/a%2f%2fb", "/%2fa", "/a%2f", // by %2f, too
		"/a/%c0%ae%c0%ae/b", "/a%c0%afb", "/%e0%80%ae", "/%ff", "/%ed%a0%80", // not UTF-8, longer forms of . and / among it
		"/" + strings.Repeat("a", maxTarget), strings.Repeat("/a", maxSegments+1), "/a?" + strings.Repeat("a&", maxParameters),
	} {
		if x, err := ParseTarget(text, Options{EncodedSlash: true}); err == nil {
			t.Errorf("%q is %+v", text, x)
		}
	}
	if x, err := ParseTarget("/a%2fb", Options{}); err == nil {
		t.Errorf("an encoded slash without its option: %+v", x)
	}
}

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		rule, method, target string
		want                 bool
	}{
		{"*", "DELETE", "/a/b", true},
		{"*", "TRACE", "/", false},
		{"*", "get", "/", false},
		{"GET,HEAD *", "HEAD", "/", true},
		{"GET,HEAD *", "POST", "/", false},
		{"GET /**", "GET", "/a/b/", true},
		{"GET /a", "GET", "/a", true},
		{"GET /a", "GET", "/a?x=1", true},
		{"GET /a", "GET", "/a/", false},
		{"GET /a", "GET", "/A", false},
		{"GET /a", "GET", "/ab", false},
		{"GET /a/*", "GET", "/a/b", true},
		{"GET /a/*", "GET", "/a/", false},
		{"GET /a/*", "GET", "/a/b/c", false},
		{"GET /a/*/c", "GET", "/a/b/c", true},
		{"GET /a/**", "GET", "/a", true},
		{"GET /a/**", "GET", "/a/", true},
		{"GET /a/**", "GET", "/a/b/c", true},
		{"GET /a/**", "GET", "/ab", false},
		{"GET /*/b/**", "GET", "/x/b/c", true},
		{"GET /@scope%2fname", "GET", "/@scope%2Fname", true},
		{"GET /*", "GET", "/@scope%2Fname", false},
		{"GET /**", "GET", "/@scope%2Fname", true},
		{"GET /a/*", "GET", "/a/b%2fc", false},
		{"GET /a/**", "GET", "/a/b%2fc", true},
		{"GET /a%20b", "GET", "/a%20b", true},
	} {
		r := rules(t, c.rule)
		if _, got := r.Match(c.method, target(t, c.target)); got != c.want {
			t.Errorf("%s: %s %s: %v", c.rule, c.method, c.target, got)
		}
	}
	if (Rule{}).Match("GET", target(t, "/")) {
		t.Error("the zero rule matches")
	}
	if _, ok := (Rules)(nil).Match("GET", target(t, "/")); ok {
		t.Error("no rules match")
	}
}

func TestBadRules(t *testing.T) {
	for _, text := range []string{
		"", "/a", "GET", "GET ", "GET  /a", "get /a", "GET, HEAD /a", "GET,GET /a", "CONNECT /a", "TRACE *", "PRI *", "GET a", "GET /a?x=1", "GET /a#x", "GET /a*", "GET /a/**/b", "GET /**/b",
		"GET //a", "GET /a//**", "GET /a/../b", "GET /%2e", "GET /a;b", ", /a", "GET, /a", "GET\t/a", "GET http://x/", "** /a",
	} {
		if r, err := ParseRule(text); err == nil {
			t.Errorf("%q is %+v", text, r)
		}
	}
}

// B40: what is within a line has no request that the line doesn't have.
func TestWithin(t *testing.T) {
	for _, c := range []struct {
		inner, outer []string
		want         bool
	}{
		{[]string{"GET /a/b"}, []string{"GET /a/*"}, true},
		{[]string{"GET,POST /a"}, []string{"GET /a", "POST /**"}, true},
		{[]string{"GET /a/*"}, []string{"GET /a/b"}, false},
		{[]string{"GET /a/**"}, []string{"GET /a/*", "GET /a"}, false},
		{[]string{"GET /a/*/**"}, []string{"GET /a/**"}, true},
		{[]string{"GET /a/"}, []string{"GET /a/*"}, false},
		{[]string{"GET /a/"}, []string{"GET /a/**"}, true},
		{[]string{"GET /a"}, []string{"GET /a/**"}, true},
		{[]string{"*"}, []string{"GET *"}, false},
		{[]string{"GET *"}, []string{"*"}, true},
		{[]string{"*"}, []string{"*"}, true},
		{nil, []string{"GET /a"}, true},
		{[]string{"GET /a"}, nil, false},
		{[]string{"GET /a%2Fb"}, []string{"GET /a%2fb"}, true},
		{[]string{"GET /a%2Fb"}, []string{"GET /*"}, false},
		{[]string{"GET /a%2Fb"}, []string{"GET /**"}, true},
	} {
		if got := rules(t, c.inner...).Within(rules(t, c.outer...)); got != c.want {
			t.Errorf("%q within %q: %v", c.inner, c.outer, got)
		}
	}
}

func TestRuleAsText(t *testing.T) {
	b, err := json.Marshal(rules(t, "GET,HEAD /a/**", "*"))
	if want := `["GET,HEAD /a/**","*"]`; err != nil || string(b) != want {
		t.Errorf("%s, %v, want %s", b, err, want)
	}
	var again Rules
	if err := json.Unmarshal(b, &again); err != nil || !again.Within(rules(t, "*")) || len(again) != 2 {
		t.Errorf("%v, %v", again, err)
	}
	if err := json.Unmarshal([]byte(`["get /a"]`), &again); err == nil {
		t.Error("a rule that is none is read")
	}
}

// Attack 6 of the design's list: a key of the worker's own in the query.
func TestCredentialParameter(t *testing.T) {
	for query, want := range map[string]string{
		"":                         "",
		"page=2&per_page=100":      "",
		"next_token=x&page_token=": "",
		"a=1&access_token=x":       "access_token",
		"Access_Token=x":           "Access_Token",
		"a%63cess_token=x":         "a%63cess_token",
		"key=x":                    "key",
		"key[]=x":                  "key[]",
		"keys=x":                   "",
		"sig=":                     "sig",
		"X-Amz-Signature=x":        "X-Amz-Signature",
		"x-goog-credential=x":      "x-goog-credential",
		"a=1?token=x":              "token",
		"+token=x":                 "+token",
		"accessToken=x":            "accessToken",
		"access.token=x":           "access.token",
		"access[token=x":           "access[token",
		"api_token=x":              "api_token",
		"x_amz_signature=x":        "x_amz_signature",
		"filter[token_type]=x":     "",
	} {
		if got := target(t, "/a?"+query).CredentialParameter(); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
}

// Attack 9 of the design's list: a parameter that names another method, or headers.
func TestOverridingParameter(t *testing.T) {
	for query, want := range map[string]string{
		"":                            "",
		"method=x&_methods=y":         "",
		"a=1&_method=DELETE":          "_method",
		"%5fMethod=DELETE":            "%5fMethod",
		".method=DELETE":              ".method",
		"$httpMethod=DELETE":          "$httpMethod",
		"%24httpHeaders=x":            "%24httpHeaders",
		"X-HTTP-Method-Override=x":    "X-HTTP-Method-Override",
		"x_http_method_override[]=x":  "x_http_method_override[]",
		"a?x-method-override=DELETE&": "x-method-override",
	} {
		if got := target(t, "/a?"+query).OverridingParameter(); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
}

// FuzzTarget: whatever is accepted is sent as it came, has the path that it is checked for
// however often it is decoded, and no rule has it that has not all of its segments.
func FuzzTarget(f *testing.F) {
	for _, s := range []string{"/", "/a/b?c=d", "/%2e%2e/", "/a//b", "/@s%2fn", "/a;b", "/%25%32%65", "/a%", "/a%2f..%2fb", "/a/%c0%ae"} {
		f.Add(s, "GET /a/*")
	}
	f.Fuzz(func(t *testing.T, text, rule string) {
		x, err := ParseTarget(text, Options{EncodedSlash: true})
		if err != nil {
			return
		}
		if x.String() != text {
			t.Fatalf("%q is sent as %q", text, x)
		}
		path := x.Path()
		for range 3 { // whoever decodes it again sees no other segments
			if slices.ContainsFunc(strings.Split(path, "/"), func(s string) bool { return s == "." || s == ".." }) || strings.ContainsAny(path, "\\;\x00\r\n") || strings.Contains(path, "//") {
				t.Fatalf("%q: %q", text, path)
			}
			path = decoded(path)
		}
		r, err := ParseRule(rule)
		if err != nil {
			return
		}
		if again, err := ParseRule(r.String()); err != nil || again.Match("GET", x) != r.Match("GET", x) {
			t.Fatalf("%q isn't read again: %v", r, err)
		}
	})
}

// FuzzWithin: what is within another matches no more.
func FuzzWithin(f *testing.F) {
	f.Add("GET /a/*", "GET /a/**", "/a/b")
	f.Add("*", "GET *", "/")
	f.Fuzz(func(t *testing.T, inner, outer, text string) {
		a, err := ParseRule(inner)
		b, err2 := ParseRule(outer)
		x, err3 := ParseTarget(text, Options{EncodedSlash: true})
		if err != nil || err2 != nil || err3 != nil || !(Rules{a}).Within(Rules{b}) {
			return
		}
		for _, m := range []string{"GET", "POST", "X"} {
			if a.Match(m, x) && !b.Match(m, x) {
				t.Fatalf("%q is within %q, and has %s %s", inner, outer, m, text)
			}
		}
	})
}
