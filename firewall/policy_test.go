package firewall

import (
	"bytes"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/llmdo/workshop/firewall/request"
)

func pattern(t testing.TB, s string) HostPattern {
	t.Helper()
	p, err := ParseHostPattern(s)
	if p.IsZero() {
		t.Fatalf("ParseHostPattern(%q): %v", s, err)
	}
	return p
}

func ports(t testing.TB, s string) []PortRange {
	t.Helper()
	p, err := ParsePorts(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func name(t testing.TB, s string) Name {
	t.Helper()
	n, err := ParseName(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func samplePolicy(t testing.TB) *Policy {
	return &Policy{
		Version:         PolicyVersion,
		Workshop:        "code-review",
		Resolvers:       []string{"198.51.100.53", "${DNS:-[2001:db8::53]:5353}"},
		Proxy:           "${EGRESS_PROXY:-}",
		ProxyCredential: "corp",
		Roots:           [][]byte{{0x30, 0x82}, {0x30}},
		Rooms: []RoomPolicy{
			{
				Room: "room", Mode: Restricted, Workers: []string{"a", "b"},
				Allow: []Rule{
					{Host: pattern(t, "api.example.org"), Ports: DefaultAllowPorts(), Line: "workshop.yaml:9", Preset: "github"},
					{Host: pattern(t, "**.example.org"), Ports: ports(t, "22,8000-8010"), Private: true},
					{Host: pattern(t, "*.github.io"), Ports: ports(t, "443"), AnyTenant: true},
					{CIDR: netip.MustParsePrefix("10.20.0.0/16"), Ports: ports(t, "5432")},
					endpoint(t, "git.example.net", "git", 600, "GET,HEAD /acme/**", "POST /acme/app"),
					{Template: "${DB_HOST:?}", Ports: ports(t, "5432"), Line: "workshop.yaml:14"},
				},
				Deny: []Rule{{Host: pattern(t, "gist.example.org"), Ports: []PortRange{AllPorts}}},
			},
			{Room: "room-open", Mode: Open, Workers: []string{"c"}},
		},
		Publish: []Publish{{Room: "room", Listen: 20000, Target: 8080, Worker: "a"}},
	}
}

func TestPolicyRoundTrip(t *testing.T) {
	p := samplePolicy(t)
	data := EncodePolicy(p)
	q, err := ParsePolicy(data)
	if err != nil {
		t.Fatalf("%v in\n%s", err, data)
	}
	opts := cmp.Options{cmp.AllowUnexported(HostPattern{}), cmp.Comparer(func(a, b request.Rule) bool { return a.String() == b.String() }), cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }), cmpopts.EquateEmpty()}
	if diff := cmp.Diff(p, q, opts); diff != "" {
		t.Errorf("decoded policy differs:\n%s", diff)
	}
	if again := EncodePolicy(q); !bytes.Equal(again, data) {
		t.Errorf("encoding is not stable:\n%s\n%s", data, again)
	}
	// The order in which rooms were compiled leaves no trace.
	p.Rooms[0], p.Rooms[1] = p.Rooms[1], p.Rooms[0]
	if again := EncodePolicy(p); !bytes.Equal(again, data) {
		t.Error("the encoding depends on the order of rooms")
	}
}

func TestParsePolicyRefuses(t *testing.T) {
	good := string(EncodePolicy(samplePolicy(t)))
	replace := func(old, new string) string {
		if !strings.Contains(good, old) {
			t.Fatalf("no %q in\n%s", old, good)
		}
		return strings.Replace(good, old, new, 1)
	}
	for what, c := range map[string]struct{ data, want string }{
		"empty":              {"", "EOF"},
		"not JSON":           {"version: 1", "invalid character"},
		"another version":    {replace(`"version": 1`, `"version": 2`), "version 2"},
		"a later version":    {`{"version": 2, "new": {}}`, "version 2"},
		"no version":         {`{"rooms": []}`, "version 0"},
		"unknown key":        {replace(`"workshop"`, `"workshops"`), "unknown field"},
		"unknown rule key":   {replace(`"private":true`, `"privat":true`), "unknown field"},
		"key twice":          {replace(`"version": 1,`, `"version": 1, "version": 1,`), "duplicate"},
		"key in other case":  {replace(`"workshop"`, `"Workshop"`), "lower case"},
		"something behind":   {good + "{}", "trailing data"},
		"room twice":         {replace(`"room-open"`, `"room"`), "duplicate"},
		"room is a path":     {replace(`"room": "room-open"`, `"room": "../room"`), "name must be"},
		"mode":               {replace(`"open"`, `"free"`), "not a network mode"},
		"port 0":             {replace(`"8000-8010"`, `"0"`), "out of range"},
		"port 53":            {replace(`"8000-8010"`, `"50-60"`), "port 53"},
		"no ports":           {replace(`"ports":["22","8000-8010"]`, `"ports":[]`), "ports are missing"},
		"host and cidr":      {replace(`"cidr":"10.20.0.0/16"`, `"host":"a.example","cidr":"10.20.0.0/16"`), "exactly one"},
		"no target":          {replace(`"cidr":"10.20.0.0/16",`, ``), "exactly one"},
		"host bits":          {replace(`"10.20.0.0/16"`, `"10.20.0.1/16"`), "beyond its mask"},
		"mapped range":       {replace(`"10.20.0.0/16"`, `"::ffff:10.20.0.0/112"`), "IPv4 range"},
		"too many budgets":   {replace(`{"cidr":"10.20.0.0/16"`, strings.Repeat(`{"cidr":"10.20.0.0/16","ports":["22"],"upload":"1K/d"},`, MaxBudgets+1)+`{"cidr":"10.20.0.0/16"`), "513 lines with an upload budget, at most 512"},
		"any tenant":         {replace(`,"any_tenant":true`, ``), "anybody"},
		"public suffix":      {replace(`"*.github.io"`, `"*.com"`), "registry"},
		"resolver is a name": {replace(`"198.51.100.53"`, `"dns.example"`), "not an address"},
		"publish elsewhere":  {replace(`{"room":"room","listen"`, `{"room":"rooms","listen"`), "no room"},
		"deep":               {strings.Repeat("[", 100_000), "exceeded max depth"},
		"escaped key":        {replace(`"workshop":`, `"workshop": "x", "w\u006frkshop":`), "unknown"},
	} {
		_, err := ParsePolicy([]byte(c.data))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error with %q", what, err, c.want)
		}
	}
}

func TestExpand(t *testing.T) {
	env := map[string]string{"DB_HOST": "db.internal:5432", "EGRESS_PROXY": "http://proxy.example:3128"}
	lookup := func(s string) (string, bool) { v, ok := env[s]; return v, ok }
	p := samplePolicy(t)
	q, err := Expand(p, lookup)
	if err != nil {
		t.Fatal(err)
	}
	if got := q.Rooms[0].Allow[5]; got.Host != pattern(t, "db.internal") || got.Template != "" || got.Line != "workshop.yaml:14" {
		t.Errorf("host template became %+v", got)
	}
	if q.Proxy != env["EGRESS_PROXY"] || q.Resolvers[1] != "[2001:db8::53]:5353" {
		t.Errorf("proxy %q, resolvers %q", q.Proxy, q.Resolvers)
	}
	if p.Rooms[0].Allow[5].Template == "" || strings.Contains(string(EncodePolicy(p)), "db.internal") {
		t.Error("Expand changed its argument")
	}
	for what, v := range map[string]string{
		"other port":  "db.internal:5433",
		"an address":  "10.0.0.1",
		"unset":       "",
		"star":        "*",
		"bad range":   "10.0.0.1/99",
		"not a host":  "a b",
		"range+bits":  "10.0.0.1/8",
		"any tenant":  "*.github.io",
		"public":      "**.co.uk",
		"bad proxy":   "",
		"port 53":     "db.internal:53",
		"extra colon": "db.internal:5432:1",
	} {
		env["DB_HOST"] = v
		if _, err := Expand(p, lookup); err == nil {
			t.Errorf("%s: %q was accepted", what, v)
		}
	}
	env["DB_HOST"] = "10.1.0.0/16"
	if q, err = Expand(p, lookup); err != nil || q.Rooms[0].Allow[5].CIDR.String() != "10.1.0.0/16" {
		t.Errorf("a range as value: %v", err)
	}
	// All problems at once, and never the credentials of a proxy.
	env["DB_HOST"], env["EGRESS_PROXY"] = "", "http://user:secret@host:70000"
	_, err = Expand(p, lookup)
	if err == nil || !strings.Contains(err.Error(), "DB_HOST") || !strings.Contains(err.Error(), "proxy") || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
	for _, s := range []string{"$X", "${X}", "${X-a}", "${X:+a}", "${:?}", "${X", "${1:?}", "${X:}"} {
		if v, err := expandText(s, lookup); err == nil {
			t.Errorf("template %q gave %q", s, v)
		}
	}
	if v, err := expandText("a$$b${X:-c$$d}", lookup); err != nil || v != "a$bc$d" {
		t.Errorf("got %q, %v", v, err)
	}
}

// A proxy's credential is a name beside one proxy, whose URL has no user; where a variable
// names none, there is no credential either.
func TestProxyCredential(t *testing.T) {
	with := func(proxy, name string) *Policy {
		return &Policy{Version: PolicyVersion, Proxy: proxy, ProxyCredential: name}
	}
	for _, c := range []struct {
		proxy, name, value string
		ok                 bool
	}{
		{"http://proxy.example:3128", "corp", "", true},
		{"http://[2001:db8::1]", "corp", "", true},
		{"${P:-}", "corp", "http://proxy.example:3128", true},
		{"${P:-}", "corp", "", true},
		{"", "corp", "", false},
		{"http://proxy.example:3128", "Corp", "", false},
		{"http://u:canary@proxy.example:3128", "corp", "", false},
		{"${P:-}", "corp", "http://u:canary@proxy.example:3128", false},
		{"http://[fe80::1%25eth0]:3128", "corp", "", false},
		{"http://a_b..c:3128", "corp", "", false},
	} {
		p, err := ParsePolicy(EncodePolicy(with(c.proxy, c.name)))
		if err == nil {
			p, err = Expand(p, func(string) (string, bool) { return c.value, c.value != "" })
		}
		switch {
		case (err == nil) != c.ok:
			t.Errorf("%q %q with %q: %v", c.proxy, c.name, c.value, err)
		case err != nil && strings.Contains(err.Error(), "canary"):
			t.Errorf("the error has the password: %v", err)
		case err == nil && (p.ProxyCredential != "") != (p.Proxy != ""):
			t.Errorf("%q with %q: %+v", c.proxy, c.value, p)
		}
	}
}

// manyNames is a policy with n different names.
func manyNames(t testing.TB, n int) *Policy {
	p := &Policy{Version: PolicyVersion, Workshop: "big", Rooms: []RoomPolicy{{Room: "room", Mode: Restricted}}}
	for i := range n {
		form := []string{"h%d.example.org", "*.h%d.example.net", "**.h%d.example.com"}[i%3]
		p.Rooms[0].Allow = append(p.Rooms[0].Allow, Rule{Host: pattern(t, fmt.Sprintf(form, i)), Ports: DefaultAllowPorts(), Line: "workshop.yaml:1"})
	}
	return p
}

func TestTenThousandNames(t *testing.T) {
	data := EncodePolicy(manyNames(t, 10_000))
	start := time.Now()
	p, err := ParsePolicy(data)
	if err != nil {
		t.Fatal(err)
	}
	m := p.Rooms[0].Compile()
	t.Logf("%d bytes loaded in %v", len(data), time.Since(start))
	for s, want := range map[string]bool{
		"h9999.example.org": true, "a.h9997.example.net": true, "a.b.h9998.example.com": true,
		"a.b.h9997.example.net": false, "h9998.example.com": false, "h10000.example.org": false,
	} {
		if got := m.Name(name(t, s), 443); got.Allowed != want {
			t.Errorf("%s: %+v", s, got)
		}
	}
}

func BenchmarkPolicyLoad(b *testing.B) {
	for _, n := range []int{0, 100, 10_000} {
		data := EncodePolicy(manyNames(b, n))
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				p, err := ParsePolicy(data)
				if err != nil {
					b.Fatal(err)
				}
				p.Rooms[0].Compile()
			}
		})
	}
}

func BenchmarkMatch(b *testing.B) {
	for _, n := range []int{0, 100, 10_000} {
		m := manyNames(b, n).Rooms[0].Compile()
		asked := name(b, "a.b.h9998.example.com")
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				m.Name(asked, 443)
			}
		})
	}
}

func FuzzParsePolicy(f *testing.F) {
	f.Add(EncodePolicy(samplePolicy(f)))
	f.Add(EncodePolicy(manyNames(f, 3)))
	f.Add([]byte(`{"version":1,"rooms":[{"room":"r","mode":"open","workers":[],"deny":[{"host":"a.example","ports":["1-65535"]}]}]}`))
	f.Add([]byte(`{"version":1,"rooms":[],"rooms":[]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := ParsePolicy(data)
		if err != nil {
			return
		}
		again, err := ParsePolicy(EncodePolicy(p))
		if err != nil {
			t.Fatalf("own encoding refused: %v", err)
		}
		if !bytes.Equal(EncodePolicy(p), EncodePolicy(again)) {
			t.Fatal("encoding is not stable")
		}
		if q, err := Expand(p, func(string) (string, bool) { return "x.example", true }); err == nil {
			for _, r := range q.Rooms {
				r.Compile().Name(Name{"x.example"}, 443)
				NewRuleset(RulesetOptions{Ports: RedirectPorts(r)}).Text(V4)
			}
		}
	})
}
