//go:build linux

package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/llmdo/workshop/e2e/scenario"
)

// checkoutFiles are a workshop as people share it: commits in their own name, a port that
// the file leaves open, and caches.
func checkoutFiles() map[string]string {
	files := withMount("{source: ., target: /workspace, mode: rw, git: rw}")
	files["workshop.yaml"] = strings.Replace(files["workshop.yaml"], "  workers: [worker]", `    workdir: /workspace
    git_author: host
    network: {mode: restricted, allow: []}
    ports: [{published: auto, target: 8080}]
    caches: [npm, {name: build, target: /home/worker/build}]
  workers: [{name: worker, container: {caches: [npm, build]}}]`, 1)
	return files
}

// together does the same for each checkout at the same time. An error ends the test.
func together(t *testing.T, all []*scenario.Scenario, do func(w *scenario.Scenario) error) {
	t.Helper()
	failed := make([]error, len(all))
	var wait sync.WaitGroup
	for i, w := range all {
		wait.Go(func() { failed[i] = do(w) })
	}
	wait.Wait()
	for i, err := range failed {
		if err != nil {
			t.Errorf("%s: %v", all[i].Dir, err)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
}

// done is an error unless a program ended well.
func done(d scenario.Done) error {
	if d.Code == 0 {
		return nil
	}
	return errors.New(d.Out + d.Err)
}

// A repository, a linked worktree and a clone of it are up at the same time. Each has a
// port, caches and commits of its own, and the same ones after `down` and `up`.
func TestB10_CheckoutsAtOnce(t *testing.T) {
	s := scenario.At(t, "checkouts of one repository are up at once, and share neither ports, caches nor commits", checkoutFiles())
	repository(t, s)
	hostGit(t, s.Dir, "worktree", "add", "-q", "../tree")
	hostGit(t, s.Dir, "clone", "-q", ".", "../clone")
	hostGit(t, filepath.Join(s.Dir, "../clone"), "config", "user.name", "of the repository")
	home := s.TempDir()
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte("[user]\nname = Ann Example\nemail = ann@example.org\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	all := []*scenario.Scenario{s, beside(s, "tree"), beside(s, "clone")}
	for _, w := range all {
		w.Env = []string{"HOME=" + home, "XDG_CONFIG_HOME="}
	}
	up := func(w *scenario.Scenario) error { return done(w.Run("up")) }
	together(t, all, up)
	addresses := servedApart(t, all)
	together(t, all, commitsAndCaches)
	for _, w := range all {
		ownCommits(t, w, all)
		w.Expect(0, "ps", "--strict")
	}
	together(t, all, func(w *scenario.Scenario) error { return done(w.Run("down")) })
	together(t, all, up)
	for i, at := range servedApart(t, all) {
		if at != addresses[i] {
			t.Errorf("%s is published at %s after down and up, before at %s", all[i].Dir, at, addresses[i])
		}
	}
	for _, w := range all {
		if got := sh(w, "worker", "cat /caches/npm/* /home/worker/build/* own.txt; ls /caches/npm /home/worker/build"); got != strings.Repeat(w.Project+"\n", 3)+"/caches/npm:\n"+w.Project+"\n\n/home/worker/build:\n"+w.Project {
			t.Errorf("after down and up the caches of %s have\n%s", w.Project, got)
		}
	}
}

// servedApart serves in all checkouts at once, and reads each at its published address.
func servedApart(t *testing.T, all []*scenario.Scenario) (addresses []string) {
	t.Helper()
	by := map[string]string{}
	for _, w := range all {
		at := published(w)
		if by[at] != "" || !strings.HasPrefix(at, "127.0.0.1:2") {
			t.Errorf("%s is published at %s, as %s", w.Dir, at, by[at])
		}
		by[at] = w.Dir
		addresses = append(addresses, at)
		defer w.Serve("worker", "127.0.0.1:8080", w.Project)()
	}
	for i, w := range all {
		if body, err := get(addresses[i]); err != nil || body != w.Project {
			t.Errorf("%s: got %q, want %q (%v)", w.Dir, body, w.Project, err)
		}
		for _, args := range [][]string{{"ps"}, {"ps", "--format", "json"}} {
			if d := w.Expect(0, args...); !strings.Contains(d.Out, addresses[i]+"->8080/tcp") {
				t.Errorf("%v doesn't show %s:\n%s", args, addresses[i], d.Out)
			}
		}
		if d := w.Expect(0, "config", "--format", "json"); !strings.Contains(d.Out, `"published": `+strings.TrimPrefix(addresses[i], "127.0.0.1:")) {
			t.Errorf("config doesn't show %s:\n%s", addresses[i], d.Out)
		}
	}
	return addresses
}

// commitsAndCaches commits a few times in a checkout, and leaves its name in its caches.
func commitsAndCaches(w *scenario.Scenario) error {
	d := inside(w, `for i in 1 2 3; do git commit -q --allow-empty -m $i; done
		echo `+w.Project+` | tee own.txt $npm_config_cache/`+w.Project+` >/home/worker/build/`+w.Project+`; git add -A; git commit -qm `+w.Project+`; git status --short`)
	if err := done(d); err != nil || d.Out != "" {
		return errors.Join(errors.New(d.Out), err)
	}
	return nil
}

// ownCommits: the host's repository of a checkout is whole, and its branch has the commits
// that were made there, by the user of this machine, and nobody else's.
func ownCommits(t *testing.T, w *scenario.Scenario, all []*scenario.Scenario) {
	t.Helper()
	const who = " Ann Example <ann@example.org> Ann Example <ann@example.org>\n"
	got := hostGit(t, w.Dir, "log", "--format=%s %an <%ae> %cn <%ce>") + "\n"
	if want := w.Project + who + "3" + who + "2" + who + "1" + who + "first host <host@example.org> host <host@example.org>\n"; got != want {
		t.Errorf("%s has the commits\n%swant\n%s", w.Dir, got, want)
	}
	if out := hostGit(t, w.Dir, "fsck", "--strict", "--no-dangling"); out != "" {
		t.Errorf("git fsck in %s: %s", w.Dir, out)
	}
	for _, other := range all {
		shared := strings.HasSuffix(w.Dir, "clone") == strings.HasSuffix(other.Dir, "clone")
		if n := hostGit(t, w.Dir, "log", "--all", "--format=%s", "--grep="+other.Project+"$"); (n != "") != shared {
			t.Errorf("of the commit of %s, the repository of %s has %q", other.Dir, w.Dir, n)
		}
	}
}
