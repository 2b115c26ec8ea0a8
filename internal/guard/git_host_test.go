package guard

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/firewall/request"
	"github.com/llmdo/workshop/internal/dev/testnet"
	"github.com/llmdo/workshop/internal/guard/lease"
)

// gitPolicy has an endpoint of git: "read acme/lib", "push acme/app: agent/*".
func gitPolicy(t testing.TB, rules ...string) firewall.Policy {
	t.Helper()
	line := at(t, "git 600 allowed.example.org")
	for _, rule := range rules {
		word, rest, _ := strings.Cut(rule, " ")
		name, refs, _ := strings.Cut(rest, ": ")
		r, err := request.ParseRepository(name)
		if err != nil {
			t.Fatal(err)
		}
		x := request.RefsOf{Repository: r}
		for _, text := range strings.Fields(refs) {
			ref, err := request.ParseRef(text)
			if err != nil {
				t.Fatal(err)
			}
			x.Refs = append(x.Refs, ref)
		}
		switch g := &line.Endpoint.Git; word {
		case "read":
			g.Read = append(g.Read, r)
		case "push":
			g.Push = append(g.Push, x)
		default:
			g.Delete = append(g.Delete, x)
		}
	}
	p := restricted(t, "**.example.org:22,80,443,8443")
	p.Rooms[0].Allow = append(p.Rooms[0].Allow, line)
	return p
}

// gitWorld is a world whose host has the repositories acme/app, acme/lib and acme/other, each
// with a commit on main, and a worker's directory.
type gitWorld struct {
	*world
	host *testnet.Repositories
	work string
}

func newGitWorld(t testing.TB, rules ...string) *gitWorld {
	t.Helper()
	return gitWorldOf(t, gitPolicy(t, rules...))
}

func gitWorldOf(t testing.TB, p firewall.Policy) *gitWorld {
	t.Helper()
	w := &gitWorld{world: apiWorld(t, p), work: t.TempDir()}
	var err error
	if w.host, err = testnet.NewRepositories(t.TempDir(), "acme/app", "acme/lib", "acme/other"); err != nil {
		t.Fatal(err)
	}
	w.in.Site("allowed.example.org", w.host)
	seed := filepath.Join(w.work, "seed")
	w.git(0, "init", "-q", "--initial-branch=main", seed)
	w.git(0, "-C", seed, "commit", "-q", "--allow-empty", "-m", "before")
	w.git(0, "-C", seed, "commit", "-q", "--allow-empty", "-m", "first")
	for _, name := range []string{"acme/app", "acme/lib", "acme/other"} {
		w.git(0, "-C", seed, "push", "-q", filepath.Join(w.host.Dir, name+".git"), "main", "main:gone", "main:agent/old")
	}
	return w
}

// git runs git as a worker of the room does, and returns what it says.
func (w *gitWorld) git(code int, args ...string) string {
	w.Helper()
	cmd := w.gitCommand(args...)
	var out []byte
	err := w.rooms["room"].ns.Do(func() (err error) { out, err = cmd.CombinedOutput(); return err })
	if got := cmd.ProcessState.ExitCode(); got != code {
		w.Fatalf("git %s: exit code %d, want %d (%v)\n%s", strings.Join(args, " "), got, code, err, out)
	}
	return string(out)
}

func (w *gitWorld) gitCommand(args ...string) *exec.Cmd {
	cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"}, args...)...)
	cmd.Dir = w.work
	cmd.Env = append(os.Environ(), "HOME="+w.work, "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_COUNT=1",
		"GIT_CONFIG_KEY_0=url.http://"+apiAddr+"/.insteadOf", "GIT_CONFIG_VALUE_0=https://allowed.example.org/")
	return cmd
}

// refs are those of a repository of the host.
func (w *gitWorld) refs(name string) string {
	return w.git(0, "-C", filepath.Join(w.host.Dir, name+".git"), "for-each-ref", "--format=%(refname)")
}

// pushed reports whether the host got a push or the question before one.
func (w *gitWorld) pushed() bool {
	return slices.ContainsFunc(w.host.Journal(), func(s string) bool { return strings.HasPrefix(s, "POST") && strings.HasSuffix(s, "git-receive-pack") })
}

// TestB34_Git: real git clones, fetches and pushes what the line has, in each version of the
// protocol, and is told what it has where it hasn't; then the host hears nothing.
func TestB34_Git(t *testing.T) {
	for _, version := range []string{"0", "1", "2"} {
		t.Run("version "+version, func(t *testing.T) {
			w := newGitWorld(t, "read acme/lib", "push acme/app: agent/* refs/tags/agent/*", "delete acme/app: agent/*")
			v := "protocol.version=" + version
			w.git(0, "-c", v, "clone", "-q", "https://allowed.example.org/acme/lib.git")
			w.git(0, "-c", v, "clone", "-q", "--depth=1", "https://allowed.example.org/acme/app")
			app := filepath.Join(w.work, "app")
			large := make([]byte, 3<<20)
			for i := range large {
				large[i] = byte(i * i >> 7)
			}
			if err := os.WriteFile(filepath.Join(app, "large"), large, 0o644); err != nil {
				t.Fatal(err)
			}
			w.git(0, "-C", app, "add", "-A")
			w.git(0, "-C", app, "commit", "-qm", "work")
			push := func(code int, args ...string) string {
				t.Helper()
				return w.git(code, append([]string{"-C", app, "-c", v, "push"}, args...)...)
			}
			w.host.Journal()
			if out := push(1, "origin", "HEAD:agent/x"); !strings.Contains(out, "run git fetch --unshallow first") || w.pushed() {
				t.Errorf("32: from a shallow clone:\n%s", out)
			}
			w.git(0, "-C", app, "-c", v, "fetch", "-q", "--unshallow")
			push(0, "origin", "HEAD:agent/x", "HEAD:refs/tags/agent/v1")
			w.git(0, "-C", app, "config", "http.postBuffer", "4096")
			push(0, "--force", "origin", "HEAD:refs/heads/agent/chunked")
			w.git(0, "-C", app, "config", "--unset", "http.postBuffer")
			push(0, "--force", "origin", "HEAD~0:agent/x")
			push(0, "origin", "--delete", "agent/old")
			if !w.pushed() {
				t.Error("the host got no push")
			}
			before := w.refs("acme/app")
			for _, want := range []string{"refs/heads/agent/x\n", "refs/heads/agent/chunked\n", "refs/tags/agent/v1\n"} {
				if !strings.Contains(before, want) {
					t.Errorf("no %q in %s", want, before)
				}
			}
			if strings.Contains(before, "agent/old") {
				t.Error("agent/old wasn't deleted")
			}
			for _, x := range []struct {
				name string
				args []string
				want []string
			}{
				{"28: main", []string{"HEAD:main"}, []string{"remote: workshop: this push was not sent to allowed.example.org", "push: agent/*, refs/tags/agent/*", "! [remote rejected]", "(workshop: not allowed to be pushed)"}},
				{"28: a tag", []string{"HEAD:refs/tags/v1"}, []string{"not allowed to be pushed"}},
				{"28: refs/for/main", []string{"HEAD:refs/for/main"}, []string{"not allowed to be pushed"}},
				{"28: a pull request", []string{"HEAD:refs/pull/1/head"}, []string{"not allowed to be pushed"}},
				{"28: below a branch", []string{"HEAD:agent/y/z"}, []string{"not allowed to be pushed"}},
				{"29: a list with one bad", []string{"HEAD:agent/good", "HEAD:main"}, []string{"not allowed to be pushed", "not sent, for another ref of this push"}},
				{"30: delete", []string{"--delete", "gone"}, []string{"not allowed to be deleted"}},
				{"30: delete a tag", []string{"--delete", "refs/tags/agent/v1"}, []string{"not allowed to be deleted"}},
				{"30: force", []string{"--force", "HEAD:main"}, []string{"not allowed to be pushed"}},
				{"29: atomic", []string{"--atomic", "HEAD:agent/good", "HEAD:main"}, []string{"not allowed to be pushed"}},
			} {
				out := push(1, append([]string{"origin"}, x.args...)...)
				for _, want := range x.want {
					if !strings.Contains(out, want) {
						t.Errorf("%s: no %q in:\n%s", x.name, want, out)
					}
				}
			}
			for option, want := range map[string]string{"--push-option=x": "does not support push options", "--signed": "does not support --signed push"} {
				if out := push(1, option, "origin", "HEAD:agent/y"); !strings.Contains(out, want) {
					t.Errorf("32: %s:\n%s", option, out)
				}
			}
			if w.pushed() {
				t.Error("the host got a push that was refused")
			}
			if after := w.refs("acme/app"); after != before {
				t.Errorf("refs now:\n%s", after)
			}
			w.guard.eventually(11, "the refused pushes", func(e event) bool {
				return e.Kind == "endpoint" && e.Verdict == "deny" && e.Reason == firewall.ReasonRequest && e.Name == "allowed.example.org"
			})
			// Attack 36: what isn't the line's isn't reached from what is.
			for _, args := range [][]string{
				{"clone", "-q", "https://allowed.example.org/acme/other"},
				{"-C", filepath.Join(w.work, "lib"), "push", "origin", "HEAD:agent/x"},
				{"ls-remote", "https://allowed.example.org/acme/app.git/.git"},
			} {
				if out := w.git(128, args...); !strings.Contains(out, "remote: workshop: GET") || !strings.Contains(out, "git: push acme/app: agent/*") {
					t.Errorf("%v:\n%s", args, out)
				}
			}
			if j := w.host.Journal(); slices.ContainsFunc(j, func(s string) bool {
				return strings.Contains(s, "other") || strings.Contains(s, "lib.git/info/refs?service=git-receive-pack")
			}) {
				t.Errorf("the host got %q", j)
			}
			// A request with many haves is compressed by git, and goes on.
			for range 40 {
				w.git(0, "-C", app, "commit", "-q", "--allow-empty", "-m", "x")
			}
			w.git(0, "-C", filepath.Join(w.work, "seed"), "commit", "-q", "--allow-empty", "-m", "second")
			w.git(0, "-C", filepath.Join(w.work, "seed"), "push", "-q", filepath.Join(w.host.Dir, "acme/app.git"), "HEAD:refs/heads/main")
			w.git(0, "-C", app, "-c", v, "fetch", "-q", "origin", "main")
		})
	}
}

// TestB33_GitCredential: the guard adds the credential to git's requests, also after git has packed
// its refs, and none to a push that is refused; git sees nothing of it.
func TestB33_GitCredential(t *testing.T) {
	p := gitPolicy(t, "push acme/app: agent/*")
	p.Rooms[0].Allow[1].Endpoint.Credential = "key"
	w := gitWorldOf(t, p)
	b, _ := w.attach()
	line := keyLine
	line.At = "git"
	b.say(&lease.Lease{Line: line, Generation: 1, Header: "Authorization", Value: lease.Value(canary)})
	var keyed, bare atomic.Int32
	w.in.Site("allowed.example.org", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != canary {
			bare.Add(1)
			rw.Header().Set("WWW-Authenticate", "Basic")
			rw.WriteHeader(401)
			return
		}
		keyed.Add(1)
		w.host.ServeHTTP(rw, r)
	}))
	t.Setenv("GIT_TRACE_CURL", "1")
	said := w.git(0, "clone", "https://allowed.example.org/acme/app")
	app := filepath.Join(w.work, "app")
	w.git(0, "-C", app, "commit", "-q", "--allow-empty", "-m", "x")
	w.git(0, "-C", app, "branch", "agent/x")
	w.git(0, "-C", app, "pack-refs", "--all")
	said += w.git(0, "-C", app, "push", "origin", "agent/x")
	before := keyed.Load()
	said += w.git(1, "-C", app, "push", "origin", "main", "agent/x:agent/y")
	if n := keyed.Load() - before; n != 1 || bare.Load() != 0 { // info/refs
		t.Errorf("%d requests of a refused push with the credential, %d without", n, bare.Load())
	}
	if strings.Contains(said, "canary") {
		t.Error("git sees the credential")
	}
	if !strings.Contains(w.refs("acme/app"), "refs/heads/agent/x\n") {
		t.Error("nothing was pushed")
	}
}
