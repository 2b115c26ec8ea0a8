package firewall

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/llmdo/workshop/firewall/request"
)

func requests(t testing.TB, texts ...string) (out request.Rules) {
	t.Helper()
	for _, text := range texts {
		r, err := request.ParseRule(text)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

func endpoint(t testing.TB, host, at string, port uint16, rules ...string) Rule {
	t.Helper()
	return Rule{
		Host: pattern(t, host), Ports: ports(t, "443"), Line: "workshop.yaml:7",
		Endpoint: Endpoint{At: at, Port: port, Requests: requests(t, rules...)},
	}
}

// gitEndpoint is an endpoint for git: it reads repositories, and pushes branches to the first.
func gitEndpoint(t testing.TB, host, at string, port uint16, branches string, repositories ...string) Rule {
	t.Helper()
	r := endpoint(t, host, at, port)
	for _, text := range repositories {
		x, err := request.ParseRepository(text)
		if err != nil {
			t.Fatal(err)
		}
		r.Endpoint.Git.Read = append(r.Endpoint.Git.Read, x)
	}
	if branches != "" {
		x, err := request.ParseRef(branches)
		if err != nil {
			t.Fatal(err)
		}
		r.Endpoint.Git.Push = request.Refs{{Repository: r.Endpoint.Git.Read[0], Refs: []request.Ref{x}}}
	}
	return r
}

func policyOf(allow ...Rule) *Policy {
	return &Policy{Version: PolicyVersion, Workshop: "w", Rooms: []RoomPolicy{{Room: "room", Mode: Restricted, Allow: allow}}}
}

// B33, attack 4 of the design's list: a host with an endpoint is reached by that alone,
// whatever else the room may reach.
func TestEndpointOwnsItsName(t *testing.T) {
	all := pattern(t, "**.example.org")
	p := policyOf(Rule{Host: all, Ports: ports(t, "22,443")}, endpoint(t, "api.example.org", "api", 600, "GET /**"))
	if _, err := ParsePolicy(EncodePolicy(p)); err != nil {
		t.Fatal(err)
	}
	p.Rooms[0].Learn = true
	m := p.Rooms[0].Compile()
	api, other := name(t, "api.example.org"), name(t, "x.example.org")
	for _, port := range []uint16{22, 80, 443} {
		if d := m.Name(api, port); d.Allowed || d.Reason != ReasonEndpoint || d.Rule == nil || d.Suggest != "" {
			t.Errorf("port %d: %+v", port, d)
		}
	}
	if d := m.Resolvable(api); d.Allowed || d.Reason != ReasonEndpoint {
		t.Errorf("its address: %+v", d)
	}
	if d := m.Name(other, 443); !d.Allowed {
		t.Errorf("a name beside it: %+v", d)
	}
	if line, d := m.Endpoint("api"); line == nil || !d.Allowed || d.Rule.Endpoint.At != "api" {
		t.Errorf("at the endpoint: %+v", d)
	}
	if line, d := m.Endpoint("b"); line != nil || d.Allowed {
		t.Errorf("an endpoint that there isn't: %+v", d)
	}
	if got := RedirectPorts(policyOf(endpoint(t, "api.example.org", "api", 600, "*")).Rooms[0]); len(got) != 0 {
		t.Errorf("ports that are redirected: %v", got)
	}
	p.Rooms[0].Deny = []Rule{{Host: all, Ports: []PortRange{AllPorts}, Line: "workshop.yaml:9"}}
	m = p.Rooms[0].Compile()
	if line, d := m.Endpoint("api"); line == nil || d.Allowed || d.Reason != ReasonDenied || d.Rule.Line != "workshop.yaml:9" {
		t.Errorf("denied: %+v", d)
	}
	if Why(ReasonEndpoint, "", "") == "" || Why(ReasonRequest, "", "") == "" {
		t.Error("a reason without a text")
	}
}

func TestEndpointsRefused(t *testing.T) {
	with := func(change func(*Rule)) *Policy {
		r := endpoint(t, "api.example.org", "api", 600, "GET /a/**")
		change(&r)
		return policyOf(r)
	}
	rule := endpoint(t, "api.example.org", "api", 600, "GET /a/**")
	git := gitEndpoint(t, "api.example.org", "api", 600, "agent/*", "acme/app")
	two := policyOf(rule)
	two.Rooms = append(two.Rooms, RoomPolicy{Room: "two", Mode: Restricted, Allow: []Rule{endpoint(t, "other.example.org", "api", 600, "*")}})
	open := policyOf(rule)
	open.Rooms[0].Mode = Open
	deny := policyOf()
	deny.Rooms[0].Deny = []Rule{rule}
	template := policyOf(rule, Rule{Template: "${HOST:?}", Ports: ports(t, "443")})
	var many []Rule
	for i := range MaxEndpoints + 1 {
		many = append(many, endpoint(t, fmt.Sprintf("h%d.example.org", i), fmt.Sprintf("h%d", i), uint16(FirstEndpoint+i), "*"))
	}
	for _, c := range []struct {
		name, want string
		p          *Policy
	}{
		{"a name with capitals", "is not a lower-case", with(func(r *Rule) { r.Endpoint.At = "Api" })},
		{"a wildcard", "one host", with(func(r *Rule) { r.Host = pattern(t, "*.example.org") })},
		{"a template", "one host", with(func(r *Rule) { r.Host, r.Template = HostPattern{}, "${X:?}" })},
		{"ech", "ech", with(func(r *Rule) { r.ECH = true })},
		{"two ports", "one port", with(func(r *Rule) { r.Ports = ports(t, "443,8443") })},
		{"a range of ports", "one port", with(func(r *Rule) { r.Ports = ports(t, "443-444") })},
		{"another port of the room", "not one of", with(func(r *Rule) { r.Endpoint.Port = PortProxy })},
		{"no requests", "no requests", with(func(r *Rule) { r.Endpoint.Requests = nil })},
		{"too many requests", "more than 256", with(func(r *Rule) { r.Endpoint.Requests = slices.Repeat(r.Endpoint.Requests, 257) })},
		{"git and requests", "both requests and git", with(func(r *Rule) { r.Endpoint.Git = git.Endpoint.Git })},
		{"git with slashes", "encoded_slash", with(func(r *Rule) { *r = git; r.Endpoint.EncodedSlash = true })},
		{"git of two with one owner", "different first segments", policyOf(git, gitEndpoint(t, "api.example.org", "b", 601, "", "acme/other"))},
		{"git and requests for one owner", "different first segments", policyOf(git, endpoint(t, "api.example.org", "b", 601, "GET /acme/**"))},
		{"git of every owner", "different first segments", policyOf(git, gitEndpoint(t, "api.example.org", "b", 601, "", "**"))},
		{"git of every owner with a credential", "every owner", with(func(r *Rule) {
			*r = gitEndpoint(t, "api.example.org", "api", 600, "", "*/app")
			r.Endpoint.Credential = "key"
		})},
		{"git with a confirmation of nothing", "any_repository", with(func(r *Rule) { *r = git; r.Endpoint.Git.AnyRepository = true })},
		{"a credential that is no name", "the credential's name", with(func(r *Rule) { r.Endpoint.Credential = "Git Hub" })},
		{"a line of deny", "for lines of allow", deny},
		{"mode open", "mode open", open},
		{"another line with its name", "no other line", policyOf(rule, Rule{Host: pattern(t, "api.example.org"), Ports: ports(t, "22")})},
		{"its name twice", "name or the port", policyOf(rule, endpoint(t, "api.example.org", "api", 601, "GET /b"))},
		{"its port twice", "name or the port", policyOf(rule, endpoint(t, "api.example.org", "b", 600, "GET /b"))},
		{"requests of both", "different first segments", policyOf(rule, endpoint(t, "api.example.org", "b", 601, "GET /a/x"))},
		{"another host in another room", "another one", two},
		{"too many", "65 endpoints", policyOf(many...)},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := ParsePolicy(EncodePolicy(c.p)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
	if _, err := Expand(template, func(string) (string, bool) { return "api.example.org", true }); err == nil || !strings.Contains(err.Error(), "no other line") {
		t.Errorf("a template that is its name: %v", err)
	}
	roots := policyOf()
	roots.Roots = [][]byte{make([]byte, MaxRoot+1)}
	if _, err := ParsePolicy(EncodePolicy(roots)); err == nil || !strings.Contains(err.Error(), "roots") {
		t.Errorf("a root without end: %v", err)
	}
	confirmed := gitEndpoint(t, "api.example.org", "api", 600, "", "**")
	confirmed.Endpoint.Credential, confirmed.Endpoint.Git.AnyRepository = "key", true
	for _, p := range []*Policy{policyOf(confirmed), policyOf(git, gitEndpoint(t, "api.example.org", "b", 601, "", "other/app"))} {
		if _, err := ParsePolicy(EncodePolicy(p)); err != nil {
			t.Error(err)
		}
	}
	apart := policyOf(rule, endpoint(t, "api.example.org", "b", 601, "GET /b/**"))
	q, err := ParsePolicy(EncodePolicy(apart))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(EncodePolicy(apart)), string(EncodePolicy(q))); diff != "" {
		t.Error(diff)
	}
	if text := string(EncodePolicy(apart)); !strings.Contains(text, `"endpoint":{"at":"api","port":600,"requests":["GET /a/**"]}`) {
		t.Error(text)
	}
	for old, text := range map[string]string{`"GET /a/**"`: `"get /a/**"`, `"at":"api"`: `"at":""`} {
		if _, err := ParsePolicy([]byte(strings.Replace(string(EncodePolicy(apart)), old, text, 1))); err == nil {
			t.Errorf("%s is read", text)
		}
	}
}

// B40: nothing is inside of an endpoint but the same one with less.
func TestEndpointCovers(t *testing.T) {
	wide := endpoint(t, "api.example.org", "api", 600, "GET,POST /a/**")
	slash := wide
	slash.Endpoint.EncodedSlash = true
	keyed, other := wide, wide
	keyed.Endpoint.Credential, other.Endpoint.Credential = "key", "other"
	keyedMore := endpoint(t, "api.example.org", "api", 600, "GET /b")
	keyedMore.Endpoint.Credential = "key"
	git := gitEndpoint(t, "api.example.org", "api", 600, "agent/*", "acme/app")
	bare := Rule{Host: pattern(t, "api.example.org"), Ports: ports(t, "443")}
	for _, c := range []struct {
		name         string
		outer, inner Rule
		want         bool
	}{
		{"itself", wide, wide, true},
		{"fewer requests", wide, endpoint(t, "api.example.org", "api", 600, "GET /a/b"), true},
		{"the port of the room is assigned later", wide, endpoint(t, "api.example.org", "api", 0, "GET /a/b"), true},
		{"other requests", wide, endpoint(t, "api.example.org", "api", 600, "GET /b"), false},
		{"another method", wide, endpoint(t, "api.example.org", "api", 600, "*"), false},
		{"another name", wide, endpoint(t, "api.example.org", "b", 600, "GET /a/b"), false},
		{"another host", wide, endpoint(t, "b.example.org", "api", 600, "GET /a/b"), false},
		{"encoded slashes", wide, slash, false},
		{"none", slash, wide, true},
		{"the same credential", keyed, keyed, true},
		{"without the credential", keyed, wide, true},
		{"with a credential", wide, keyed, false},
		{"another credential", keyed, other, false},
		{"the same credential for other requests", keyed, keyedMore, false},
		{"a bare line", wide, bare, false},
		{"git with less", git, gitEndpoint(t, "api.example.org", "api", 600, "agent/x", "acme/app"), true},
		{"git that only reads", git, gitEndpoint(t, "api.example.org", "api", 600, "", "acme/app"), true},
		{"git with other branches", git, gitEndpoint(t, "api.example.org", "api", 600, "main", "acme/app"), false},
		{"git with more repositories", git, gitEndpoint(t, "api.example.org", "api", 600, "", "acme/app", "acme/b"), false},
		{"git in requests", endpoint(t, "api.example.org", "api", 600, "*"), git, false},
		{"requests in git", git, endpoint(t, "api.example.org", "api", 600, "GET /acme/app"), false},
		{"in a bare line", bare, wide, false},
		{"in a wildcard", Rule{Host: pattern(t, "*.example.org"), Ports: ports(t, "443")}, wide, false},
	} {
		if got := CoveredBy(c.inner, []Rule{c.outer}); got != c.want || c.outer.Covers(c.inner) != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// A credential is read and written, told apart, and may change while the guard runs.
func TestEndpointCredential(t *testing.T) {
	r := endpoint(t, "api.example.org", "api", 600, "GET /a/**")
	bare := policyOf(r)
	r.Endpoint.Credential = "github"
	p := policyOf(r)
	q, err := ParsePolicy(EncodePolicy(p))
	if err != nil || q.Rooms[0].Allow[0].Endpoint.Credential != "github" {
		t.Errorf("%v, %+v", err, q)
	}
	if got, want := r.Endpoint.String(), "at api [GET /a/**] credential github"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if diff := cmp.Diff(string(EncodePolicy(bare.Fixed())), string(EncodePolicy(p.Fixed()))); diff != "" {
		t.Errorf("fixed: %s", diff)
	}
	nameless := strings.Replace(string(EncodePolicy(p)), `"at":"api","port":600,"requests":["GET /a/**"]`, `"at":"","port":0,"requests":[]`, 1)
	if _, err := ParsePolicy([]byte(nameless)); err == nil || !strings.Contains(err.Error(), "has no name") {
		t.Errorf("a credential without an endpoint: %v", err)
	}
	if got := Deciding([]Rule{r, bare.Rooms[0].Allow[0]}); len(got) != 1 || got[0].Endpoint.Credential != "github" {
		t.Errorf("the first line decides: %+v", got)
	}
}

func TestEndpointTexts(t *testing.T) {
	git := gitEndpoint(t, "api.example.org", "api", 600, "agent/*", "acme/app").Endpoint
	if got, want := git.String(), "at api [git: read acme/app; git: push acme/app: agent/*]"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestEndpointsApart(t *testing.T) {
	for _, c := range []struct {
		a, b []string
		want bool
	}{
		{[]string{"GET /a/**", "POST /b"}, []string{"GET /c/**"}, true},
		{[]string{"GET /a/**", "POST /b"}, []string{"GET /c/**", "DELETE /b/x"}, false},
		{[]string{"GET /a"}, []string{"*"}, false},
		{[]string{"GET /*/x"}, []string{"GET /a"}, false},
		{[]string{"GET /a"}, []string{"GET /**"}, false},
		{[]string{"GET /a"}, []string{"GET /A"}, true},
		{nil, []string{"GET /a"}, true},
	} {
		if got := (Endpoint{Requests: requests(t, c.a...)}).Apart(Endpoint{Requests: requests(t, c.b...)}); got != c.want {
			t.Errorf("%q and %q: %v", c.a, c.b, got)
		}
	}
}

func TestAssignEndpoints(t *testing.T) {
	got, err := AssignEndpoints([]string{"npm", "github", "a", "npm"}, ports(t, "600,602-700"))
	if want := map[string]uint16{"a": 601, "github": 701, "npm": 702}; err != nil || !cmp.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	if _, err := AssignEndpoints([]string{"a", "b"}, ports(t, "600-998")); err == nil || !strings.Contains(err.Error(), `"b"`) {
		t.Errorf("got %v", err)
	}
}

func TestValidEndpointName(t *testing.T) {
	for s, want := range map[string]bool{
		"a": true, "github-api": true, "s3": true, strings.Repeat("a", 40): true,
		"": false, "A": false, "3s": false, "-a": false, "a-": false, "a--b": false, "a_b": false, "a.b": false, "ä": false, strings.Repeat("a", 41): false,
	} {
		if got := ValidEndpointName(s); got != want {
			t.Errorf("%q: %v", s, got)
		}
	}
}
