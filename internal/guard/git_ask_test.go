package guard

import (
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/lease"
)

// askWorld is a world whose endpoint of git has a credential with which each push is asked
// about; app is a clone of acme/app with a commit on agent/x, agent/y and agent/z.
type askWorld struct {
	*gitWorld
	b   *hostBroker
	app string
}

func newAskWorld(t *testing.T) *askWorld {
	p := gitPolicy(t, "push acme/app: agent/*", "delete acme/app: agent/*")
	raw := at(t, "raw 601 allowed.example.org", "POST /raw/**")
	p.Rooms[0].Allow[1].Endpoint.Credential, raw.Endpoint.Credential = "key", "key"
	p.Rooms[0].Allow = append(p.Rooms[0].Allow, raw)
	w := &askWorld{gitWorld: gitWorldOf(t, p)}
	w.lease()
	w.in.Site("allowed.example.org", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != canary {
			t.Errorf("%s %s without the credential", r.Method, r.URL)
		}
		w.host.ServeHTTP(rw, r)
	}))
	w.git(0, "clone", "-q", "https://allowed.example.org/acme/app")
	w.app = filepath.Join(w.work, "app")
	w.git(0, "-C", w.app, "commit", "-q", "--allow-empty", "-m", "x")
	for _, name := range []string{"x", "y", "z"} {
		w.git(0, "-C", w.app, "branch", "agent/"+name)
	}
	w.host.Journal()
	return w
}

// lease attaches a broker and leases the value for both lines.
func (w *askWorld) lease() {
	w.Helper()
	b, lines := w.attach()
	if w.b = b; len(lines) != 2 {
		w.Fatalf("%+v", lines)
	}
	for _, l := range lines {
		w.b.say(&lease.Lease{Line: l, Generation: 1, Header: "Authorization", Value: lease.Value(canary), AskPush: true})
	}
}

// said is how git ended.
type said struct {
	code int
	out  string
}

// push runs git push, and returns what comes of it and what ends it.
func (w *askWorld) push(refs ...string) (chan said, func()) {
	cmd := w.gitCommand(append([]string{"-C", w.app, "push", "origin"}, refs...)...)
	out, started := make(chan said, 1), make(chan struct{})
	var text strings.Builder
	cmd.Stdout, cmd.Stderr = &text, &text
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // its helper is killed with it
	go func() {
		_ = w.rooms["room"].ns.Do(func() error {
			defer close(started)
			return cmd.Start()
		})
		_ = cmd.Wait()
		out <- said{cmd.ProcessState.ExitCode(), text.String()}
	}()
	<-started
	kill := func() { _ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
	w.Cleanup(func() {
		if cmd.ProcessState == nil {
			kill()
		}
	})
	return out, kill
}

// asked reads the question, which comes before anything of a push reaches the host.
func (w *askWorld) asked() *lease.Ask {
	w.Helper()
	m, err := w.b.r.FromGuard()
	q, ok := m.(*lease.Ask)
	if err != nil || !ok {
		w.Fatalf("%+v, %v, want a question", m, err)
	}
	if w.pushed() {
		w.Error("the host got a push before the answer")
	}
	return q
}

func (w *askWorld) ends(what string, got chan said, code int, want string) {
	w.Helper()
	var x said
	select {
	case x = <-got:
	case <-time.After(20 * time.Second):
		w.Fatalf("%s: git waits", what)
	}
	if x.code != code || !strings.Contains(x.out, want) {
		w.Errorf("%s: exit code %d, want %d with %q:\n%s", what, x.code, code, want, x.out)
	}
	if w.pushed() != (code == 0) {
		w.Errorf("%s: the host got a push, or none", what)
	}
}

// TestB33_AskPush is attack 47: with a credential that has pushes asked about, the guard holds
// each until a person said yes to exactly these refs, and all else than a yes is a no.
func TestB33_AskPush(t *testing.T) {
	w := newAskWorld(t)
	id := strings.TrimSpace(w.git(0, "-C", w.app, "rev-parse", "agent/x"))
	old := strings.TrimSpace(w.git(0, "-C", w.app, "rev-parse", "origin/agent/old"))
	zero := strings.Repeat("0", 40)

	got, _ := w.push("agent/x", "agent/x:agent/old")
	q := w.asked()
	want := []lease.Pushed{{Ref: "refs/heads/agent/old", Old: old, New: id}, {Ref: "refs/heads/agent/x", Old: zero, New: id}}
	if q.Credential != "key" || q.At != "git" || q.Repository != "acme/app" || len(q.Refs) != 2 || q.Refs[0] != want[0] && q.Refs[0] != want[1] || q.Refs[0] == q.Refs[1] {
		t.Errorf("the question is %+v", q)
	}
	// One question of a room at a time (B60).
	second, _ := w.push("agent/y")
	w.ends("a second one", second, 1, "is being asked about another push")
	w.b.say(&lease.Answer{ID: q.ID, Answer: lease.Yes})
	w.ends("yes", got, 0, "[new branch]")
	if now := strings.TrimSpace(w.git(0, "-C", filepath.Join(w.host.Dir, "acme/app.git"), "rev-parse", "agent/x")); now != id {
		t.Errorf("agent/x is %s, want %s", now, id)
	}
	refs := w.refs("acme/app")

	// What the line doesn't have isn't asked about, and what couldn't be isn't pushed.
	got, _ = w.push("agent/y:main")
	w.ends("not allowed", got, 1, "not allowed to be pushed")
	if resp, body := w.send("127.0.0.1:601", "POST /raw/app/git-receive-pack HTTP/1.1\r\nHost: 127.0.0.1:601\r\nContent-Length: 4\r\n\r\n0000"); resp.StatusCode != 400 || !strings.Contains(body, "needs a line with `git`") {
		t.Errorf("by requests: %s %s", resp.Status, body)
	}
	many := []string{"agent/y"}
	for _, c := range "abcdefghijklmnop" {
		many = append(many, "agent/y:agent/many-"+string(c))
	}
	got, _ = w.push(many...)
	w.ends("many refs", got, 1, "of at most 16 refs")

	for _, x := range []struct {
		name string
		do   func(*lease.Ask)
		want string
	}{
		{"nobody can be asked", func(q *lease.Ask) { w.b.say(&lease.Answer{ID: q.ID, Answer: lease.Nobody}) }, "approvals_command or approvals_socket"},
		{"revoked", func(*lease.Ask) { w.b.say(&lease.Revoke{Credential: "key"}) }, "isn't there any more"},
		{"the broker is gone", func(*lease.Ask) { w.b.c.Close() }, "isn't there any more"},
		{"the line is gone", func(*lease.Ask) {
			p := w.policy
			p.Rooms = append([]firewall.RoomPolicy{}, p.Rooms...)
			p.Rooms[0].Allow = append([]firewall.Rule{}, p.Rooms[0].Allow...)
			p.Rooms[0].Allow[1].Endpoint.Credential = "another"
			w.replace(p)
		}, "isn't there any more"},
	} {
		got, _ := w.push("agent/y")
		x.do(w.asked())
		w.ends(x.name, got, 1, x.want)
		w.b.c.Close()
		w.replace(w.policy)
		w.lease()
	}
	got, _ = w.push("agent/y")
	w.b.say(&lease.Answer{ID: w.asked().ID, Answer: lease.No})
	w.ends("no", got, 1, "a person was asked and said no")
	got, _ = w.push("agent/y")
	w.ends("again", got, 1, "just didn't agree")
	if now := w.refs("acme/app"); now != refs {
		t.Errorf("refs now:\n%s", now)
	}
	w.guard.eventually(5, "that pushes weren't approved", func(e event) bool {
		return e.Kind == "endpoint" && e.Verdict == "deny" && e.Reason == "not-approved" && e.Name == "allowed.example.org"
	})
}

// TestB60_AskGone: a worker that goes takes its question with it, and a yes after it sends nothing.
func TestB60_AskGone(t *testing.T) {
	w := newAskWorld(t)
	got, kill := w.push("agent/x")
	q := w.asked()
	kill()
	<-got
	if m, err := w.b.r.FromGuard(); err != nil || *m.(*lease.AskEnded) != (lease.AskEnded{ID: q.ID}) {
		t.Errorf("the broker hears %+v, %v", m, err)
	}
	w.b.say(&lease.Answer{ID: q.ID, Answer: lease.Yes})
	if w.pushed() {
		t.Error("the host got a push")
	}
}
