package request

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// gitRules reads "read acme/app; push acme/app: agent/*, refs/tags/*".
func gitRules(t testing.TB, text string) (g Git) {
	t.Helper()
	for rule := range strings.SplitSeq(text, "; ") {
		word, rest, _ := strings.Cut(rule, " ")
		name, refs, _ := strings.Cut(rest, ": ")
		r, err := ParseRepository(name)
		if err != nil {
			t.Fatal(err)
		}
		if word == "read" {
			g.Read = append(g.Read, r)
			continue
		}
		x := RefsOf{Repository: r}
		for ref := range strings.SplitSeq(refs, ", ") {
			y, err := ParseRef(ref)
			if err != nil {
				t.Fatal(err)
			}
			x.Refs = append(x.Refs, y)
		}
		if word == "push" {
			g.Push = append(g.Push, x)
		} else {
			g.Delete = append(g.Delete, x)
		}
	}
	return g
}

func TestRefs(t *testing.T) {
	for _, c := range []struct {
		pattern, ref string
		want         bool
	}{
		{"agent/*", "refs/heads/agent/x", true},
		{"agent/*", "refs/heads/agent/x/y", false},
		{"agent/*", "refs/heads/agent", false},
		{"agent/*", "refs/heads/Agent/x", false},
		{"agent/*", "refs/heads/agent/../main", false},
		{"agent/*", "refs/tags/agent/x", false},
		{"agent/*", "agent/x", false},
		{"agent/**", "refs/heads/agent/x/y", true},
		{"main", "refs/heads/main", true},
		{"main", "refs/heads/main/x", false},
		{"**", "refs/heads/main", true},
		{"**", "refs/tags/v1", false},
		{"*", "refs/heads/main", true},
		{"*", "refs/heads/a/b", false},
		{"refs/tags/*", "refs/tags/v1", true},
		{"refs/tags/*", "refs/heads/v1", false},
		{"refs/for/main", "refs/for/main", true},
		{"refs/for/main", "refs/for/main%submit", false},
	} {
		r, err := ParseRef(c.pattern)
		if err != nil {
			t.Error(err)
		}
		if got := r.Match(c.ref); got != c.want {
			t.Errorf("%s has %s: %v", c.pattern, c.ref, got)
		}
	}
	for _, text := range []string{"", "/", "/x", "x/", "a//b", "refs/heads/x", "refs/*", "refs/**", "refs/*/x", "refs/tags", "agent-*", "a/**/b", "../x", "a b", "a:b", "+main", "x.lock", "HEAD^", "^main", "a\nb"} {
		if r, err := ParseRef(text); err == nil && text != "+main" {
			t.Errorf("%q is read: %+v", text, r)
		}
	}
	if (Ref{}).Match("refs/heads/x") || (Repository{}).Match("a/b") {
		t.Error("the zero value has something")
	}
}

func TestRepositories(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"acme/app", "acme/app", true},
		{"acme/app", "acme/App", false},
		{"acme/app", "acme/app/x", false},
		{"acme/*", "acme/app", true},
		{"acme/*", "acme/a/b", false},
		{"group/**", "group/a/b", true},
		{"group/**", "other/a", false},
		{"**", "a/b", true},
		{"tools", "tools", true},
		{"acme/.github", "acme/.github", true},
	} {
		r, err := ParseRepository(c.pattern)
		if err != nil {
			t.Error(err)
		}
		if got := r.Match(c.name); got != c.want {
			t.Errorf("%s has %s: %v", c.pattern, c.name, got)
		}
	}
	for _, text := range []string{"", "*", "/acme/app", "acme/", "acme//app", "acme/app.git", "acme.GIT/app", "https://github.com/acme/app", "acme/..", "acme/a-*", "acme/**/x", "acme/a%2fb", "acme/git-receive-pack", "acme/info/refs", "a b/c", "é/a", strings.Repeat("a/", 300) + "a"} {
		if r, err := ParseRepository(text); err == nil {
			t.Errorf("%q is read: %+v", text, r)
		}
	}
}

// Attack 34 of the design's list: which request of git a target is, and nothing else.
func TestGitTarget(t *testing.T) {
	id := strings.Repeat("0a", 32)
	for text, want := range map[string]GitRequest{
		"GET /acme/app/info/refs?service=git-upload-pack":                  {GitRefs, "acme/app", false},
		"GET /acme/app.git/info/refs?service=git-receive-pack":             {GitRefs, "acme/app", true},
		"POST /acme/app.git/git-upload-pack":                               {GitFetch, "acme/app", false},
		"POST /acme/app/git-receive-pack":                                  {GitPush, "acme/app", true},
		"POST /g/sub/app.git/git-receive-pack":                             {GitPush, "g/sub/app", true},
		"POST /tools/git-upload-pack":                                      {GitFetch, "tools", false},
		"POST /acme/info/git-upload-pack":                                  {GitFetch, "acme/info", false},
		"POST /acme/app.git/info/lfs/objects/batch":                        {LFSBatch, "acme/app", false},
		"GET /acme/app.git/info/lfs/objects/" + id:                         {LFSGet, "acme/app", false},
		"PUT /acme/app.git/info/lfs/objects/" + id + "/123":                {LFSPut, "acme/app", true},
		"PUT /acme/app.git/gitlab-lfs/objects/" + id + "/123":              {LFSPut, "acme/app", true},
		"POST /acme/app.git/info/lfs/verify":                               {LFSPut, "acme/app", true},
		"GET /acme/app/info/refs":                                          {},
		"GET /acme/app/info/refs?service=git-upload-pack&x=y":              {},
		"GET /acme/app/info/refs?x=y&service=git-upload-pack":              {},
		"GET /acme/app/info/refs?service=git-upload-archive":               {},
		"GET /acme/app/info/refs?service=git%2Dupload-pack":                {},
		"HEAD /acme/app/info/refs?service=git-upload-pack":                 {},
		"POST /acme/app/info/refs?service=git-upload-pack":                 {},
		"GET /acme/app/git-upload-pack":                                    {},
		"POST /acme/app/git-receive-pack?service=git-upload-pack":          {},
		"POST /acme/app/git-receive-pack?":                                 {},
		"POST /acme/app/git-upload-archive":                                {},
		"POST /git-receive-pack":                                           {},
		"POST /acme/app.git/.git/git-receive-pack":                         {},
		"POST /acme/app.git.git/git-receive-pack":                          {},
		"POST /acme/app.GIT/git-receive-pack":                              {},
		"POST /acme/app.git/x/git-receive-pack":                            {},
		"POST /acme/.git/git-receive-pack":                                 {},
		"POST /acme/app/git-receive-pack/git-receive-pack":                 {},
		"GET /acme/app/info/refs/info/refs?service=git-upload-pack":        {},
		"POST /acme/a%C3%A9/git-receive-pack":                              {},
		"POST /acme/app/git-receive-pack/":                                 {},
		"GET /acme/app/HEAD":                                               {},
		"GET /acme/app/objects/info/http-alternates":                       {},
		"GET /acme/app.git/objects/info/packs":                             {},
		"GET /acme/app":                                                    {},
		"GET /acme/app/archive/main.tar.gz":                                {},
		"GET /":                                                            {},
		"POST /acme/app/info/lfs/objects/batch":                            {},
		"POST /acme/app.git/info/lfs/objects/batch?x=y":                    {},
		"POST /acme/app.git/info/lfs/locks":                                {},
		"POST /acme/app.git/info/lfs/locks/verify":                         {},
		"GET /acme/app.git/info/lfs/locks":                                 {},
		"GET /acme/app.git/info/lfs/objects/" + id[1:]:                     {},
		"GET /acme/app.git/info/lfs/objects/" + strings.ToUpper(id):        {},
		"GET /acme/app.git/info/lfs/objects/" + id + "/":                   {},
		"GET /acme/app.git/info/lfs/objects/" + id + "/x":                  {},
		"PUT /acme/app.git/info/lfs/objects/" + id + "?x":                  {},
		"DELETE /acme/app.git/info/lfs/objects/" + id:                      {},
		"GET /acme/app.git/info/lfs/objects/" + id + "/info/lfs/objects/x": {},
	} {
		method, path, _ := strings.Cut(text, " ")
		got, err := target(t, path).Git(method)
		if got != want || (err == nil) != (want.Kind != 0) {
			t.Errorf("%s: %+v %v, want %+v", text, got, err, want)
		}
	}
}

func TestGitWithin(t *testing.T) {
	for _, c := range []struct {
		inner, outer string
		want         bool
	}{
		{"read acme/app", "read acme/*", true},
		{"read acme/app", "push acme/app: agent/*", true},
		{"push acme/app: agent/x", "read x/y; push acme/**: agent/*", true},
		{"push acme/app: agent/*", "read acme/app", false},
		{"read acme/*", "read acme/app", false},
		{"push acme/app: agent/**", "push acme/app: agent/*", false},
		{"push acme/app: refs/tags/*", "push acme/app: **", false},
		{"push acme/*: agent/x", "push acme/app: agent/*", false},
		{"push acme/app: a, b", "push acme/app: a; push acme/*: b", true},
		{"delete acme/app: agent/x", "push acme/app: agent/*", false},
		{"delete acme/app: agent/x", "delete acme/app: agent/*", true},
		{"push acme/app: agent/x", "delete acme/app: agent/*", false},
		{"read **", "read acme/**", false},
	} {
		if got := gitRules(t, c.inner).Within(gitRules(t, c.outer)); got != c.want {
			t.Errorf("%q within %q: %v", c.inner, c.outer, got)
		}
	}
	if !(Git{}).Within(Git{}) || gitRules(t, "read a/b").Within(Git{}) {
		t.Error("no rules")
	}
}

func TestGitDecides(t *testing.T) {
	g := gitRules(t, "read acme/lib; push acme/app: agent/*, refs/tags/v1; delete acme/old: gone")
	for _, c := range []struct {
		what string
		got  bool
		want bool
	}{
		{"reads acme/lib", g.Reads("acme/lib"), true},
		{"writes acme/lib", g.Writes("acme/lib"), false},
		{"reads acme/app", g.Reads("acme/app"), true},
		{"writes acme/old", g.Writes("acme/old"), true},
		{"reads acme/other", g.Reads("acme/other"), false},
		{"pushes agent/x", g.Push.Has("acme/app", "refs/heads/agent/x"), true},
		{"pushes main", g.Push.Has("acme/app", "refs/heads/main"), false},
		{"pushes the tag", g.Push.Has("acme/app", "refs/tags/v1"), true},
		{"pushes what is deleted", g.Push.Has("acme/old", "refs/heads/gone"), false},
		{"deletes what is pushed", g.Delete.Has("acme/app", "refs/heads/agent/x"), false},
		{"takes objects of LFS", g.Match(GitRequest{LFSPut, "acme/app", true}), true},
		{"takes objects of LFS where it only deletes", g.Match(GitRequest{LFSPut, "acme/old", true}), false},
		{"deletes", g.Delete.Has("acme/old", "refs/heads/gone"), true},
	} {
		if c.got != c.want {
			t.Errorf("%s: %v", c.what, c.got)
		}
	}
	owners, ok := g.Owners()
	if !ok || !slices.Equal(owners, []string{"acme"}) || g.Any() {
		t.Errorf("owners: %v %v", owners, ok)
	}
	if _, ok := gitRules(t, "read */app").Owners(); ok {
		t.Error("every owner is no owner")
	}
	b, err := json.Marshal(g)
	if want := `{"read":["acme/lib"],"push":[{"repository":"acme/app","refs":["agent/*","refs/tags/v1"]}],"delete":[{"repository":"acme/old","refs":["gone"]}]}`; err != nil || string(b) != want {
		t.Errorf("%s %v, want %s", b, err, want)
	}
	var again Git
	if err := json.Unmarshal(b, &again); err != nil || !again.Within(g) || !g.Within(again) || !slices.Equal(again.Texts(), g.Texts()) {
		t.Errorf("%+v %v", again, err)
	}
	for _, bad := range []string{`{"push":[{"repository":"acme/app.git","refs":["x"]}]}`, `{"push":[{"repository":"acme/app","refs":["refs/*"]}]}`, `{"read":["*"]}`} {
		if err := json.Unmarshal([]byte(bad), &again); err == nil {
			t.Errorf("%s is read", bad)
		}
	}
	many := Git{Read: slices.Repeat(g.Read, MaxRules+1)}
	for _, bad := range []Git{{}, many, {Push: Refs{{Repository: g.Read[0]}}}, {Read: g.Read, AnyRepository: true}} {
		if bad.Check() == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
	if err := g.Check(); err != nil {
		t.Error(err)
	}
}

// FuzzGitTarget: what is taken for a request of git names its repository as the path does, and
// no two of git's addresses are in one path.
func FuzzGitTarget(f *testing.F) {
	f.Add("GET", "/acme/app.git/info/refs?service=git-upload-pack")
	f.Add("POST", "/acme/app/git-receive-pack")
	f.Add("POST", "/acme/git-receive-pack-app/git-receive-pack") // another word
	f.Add("PUT", "/a.git/info/lfs/objects/"+strings.Repeat("0", 64)+"/1")
	f.Fuzz(func(t *testing.T, method, text string) {
		x, err := ParseTarget(text, Options{})
		if err != nil {
			return
		}
		g, err := x.Git(method)
		if err != nil {
			return
		}
		if !strings.HasPrefix(text, "/"+g.Repository+"/") && !strings.HasPrefix(text, "/"+g.Repository+".git/") || strings.ContainsAny(g.Repository, "%?*\\") {
			t.Fatalf("%q is for %q", text, g.Repository)
		}
		n := 0
		for _, own := range []string{"/info/refs/", "/" + UploadPack + "/", "/" + ReceivePack + "/", "/info/lfs/", "/gitlab-lfs/"} {
			n += strings.Count(x.Path()+"/", own)
		}
		if n != 1 {
			t.Fatalf("%q: %d of git's addresses", text, n)
		}
		if r, err := ParseRepository(g.Repository); err != nil || !r.Match(g.Repository) {
			t.Fatalf("%q can't be named: %v", g.Repository, err)
		}
	})
}

// FuzzGitRefs: what is within another matches no more, and nothing matches what isn't a ref.
func FuzzGitRefs(f *testing.F) {
	f.Add("agent/*", "agent/**", "refs/heads/agent/x")
	f.Add("refs/tags/*", "**", "refs/tags/v1")
	f.Fuzz(func(t *testing.T, inner, outer, ref string) {
		a, err := ParseRef(inner)
		b, err2 := ParseRef(outer)
		if err != nil || err2 != nil {
			return
		}
		if a.Match(ref) && CheckRef(ref) != nil {
			t.Fatalf("%q has %q", inner, ref)
		}
		if !strings.HasPrefix(inner, "refs/") && a.Match(ref) && !strings.HasPrefix(ref, heads) {
			t.Fatalf("%q has %q, which is no branch", inner, ref)
		}
		if a.name.within(b.name) && a.Match(ref) && !b.Match(ref) {
			t.Fatalf("%q is within %q, and has %q", inner, outer, ref)
		}
	})
}
