//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/e2e/scenario"
)

// deskFiles are a workshop that people check out several times: it publishes a port that
// the file leaves open and has a cache.
func deskFiles() map[string]string {
	files := gitWorkshop("mode: rw, git: rw")
	files["workshop.yaml"] = strings.Replace(files["workshop.yaml"], "  workers:", `    network: {mode: restricted, allow: []}
    ports: ["0:8080"]
    caches: [{name: build, target: /home/worker/build}]
  workers:`, 1)
	files["workshop.yaml"] = strings.Replace(files["workshop.yaml"], "[worker]", "[{name: worker, container: {caches: [build]}}]", 1)
	return files
}

// get reads what is served at an address of this machine.
func get(address string) (string, error) {
	client := http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := client.Get("http://" + address + "/")
	if err != nil {
		return "", err
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	return string(b), err
}

// published is where the worker's port is published.
func published(s *scenario.Scenario) string {
	s.Helper()
	return strings.TrimSpace(s.Expect(0, "port", "worker", "8080").Out)
}

// A port that a workshop came up with is never exchanged: taken is an error, until
// somebody gives it up.
func TestOpenPortStays(t *testing.T) {
	scenario.NotRootless(t, "nothing of it depends on who runs it")
	s := scenario.At(t, "an open port that another program has taken is an error that says what to do", deskFiles())
	s.Up()
	at := published(s)
	s.Expect(0, "down")
	l := listen(t, at)
	d := s.Expect(5, "up")
	says(s, d, "port "+at+", which worker publishes, is taken by another program or container", "`workshop port --release worker 8080`")
	if left := withoutCaches(s.Leftovers()); len(left) > 0 {
		t.Errorf("the failed up left %v", left)
	}
	s.Expect(0, "port", "--release", "worker", "8080")
	s.Up()
	another := published(s)
	if another == at {
		t.Errorf("%s again, which is taken", at)
	}
	l.Close()
	s.Up()
	if now := published(s); now != another {
		t.Errorf("got %s, want %s: the former one is free again, and nobody asked", now, another)
	}
}

// desks are scenarios of several directories in a state of their own, with an engine of
// its own where others share the machine's.
func desks(t *testing.T, intent string, names ...string) (all []*scenario.Scenario, ok bool) {
	t.Helper()
	if scenario.DockerAPI() {
		if !scenario.Alone(t) {
			return nil, false
		}
		scenario.NewEngine(t)
	}
	s := scenario.At(t, intent, deskFiles())
	env := []string{"XDG_STATE_HOME=" + s.TempDir(), "XDG_CACHE_HOME=" + s.TempDir()}
	if !scenario.DockerAPI() {
		env = append(env, "DOCKER_HOST=") // there is none, which differs from one that doesn't answer
	}
	for _, name := range names {
		w := beside(s, name)
		w.Env = env
		if err := os.Mkdir(w.Dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for file, text := range deskFiles() {
			w.Write(file, text)
		}
		w.Chown()
		all = append(all, w)
	}
	return all, true
}

// withoutCaches leaves out of what exists of a project what `down` keeps.
func withoutCaches(left []string) []string {
	return slices.DeleteFunc(left, func(name string) bool { return strings.Contains(name, "_cache-") })
}

// moveAway renames the directory of a scenario until the test ends.
func moveAway(s *scenario.Scenario) {
	s.Helper()
	if err := os.Rename(s.Dir, s.Dir+"-moved"); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = os.Rename(s.Dir+"-moved", s.Dir) })
}

// listed are the workshops that `ls` shows, by project.
func listed(s *scenario.Scenario, args ...string) map[string]map[string]any {
	s.Helper()
	d := s.Expect(0, append([]string{"ls", "--format", "json"}, args...)...)
	var list []map[string]any
	if err := json.Unmarshal([]byte(d.Out), &list); err != nil {
		s.Fatal(err, d.Out)
	}
	out := map[string]map[string]any{}
	for _, w := range list {
		out[fmt.Sprint(w["project"])] = w
	}
	return out
}

// `ls` shows what runs, wherever it is called; also what is partly up, whose directory is
// gone, and with --all what is down. `down --all` ends all of it.
func TestListAndDownAll(t *testing.T) {
	all, ok := desks(t, "every workshop of a user is listed, and ended by one command", "a", "b", "c")
	if !ok {
		return
	}
	a, b, c := all[0], all[1], all[2]
	if d := a.Expect(0, "ls", "-q"); d.Out != "" {
		t.Errorf("nothing is up: %q", d.Out)
	}
	for _, w := range all {
		w.Up()
	}
	elsewhere := *a
	elsewhere.Dir = a.TempDir()
	list := listed(&elsewhere)
	for _, w := range all {
		l := list[w.Project]
		if l["state"] != "up" || l["directory"] != w.Dir || l["memory_bytes"] == nil || l["since"] == nil || fmt.Sprint(l["network"]) != "map[mode:restricted]" {
			t.Errorf("%s: %v", w.Project, l)
		}
	}
	a.Kill("worker", "KILL")
	a.Eventually("a is partly up", func() bool { return listed(&elsewhere)[a.Project]["state"] == "partly up" })
	moveAway(b)
	if l := listed(&elsewhere)[b.Project]; l["directory_gone"] != true || !strings.Contains(fmt.Sprint(l["state"]), "up") { // a worker whose mount is gone ends (B8)
		t.Errorf("its directory is gone: %v", l)
	}
	c.Expect(0, "down")
	if l := listed(&elsewhere); l[c.Project] != nil || len(l) != 2 {
		t.Errorf("it is down: %v", l)
	}
	if l := listed(&elsewhere, "-a")[c.Project]; l["state"] != "down" || fmt.Sprint(l["kept"]) != "[caches ports]" {
		t.Errorf("it is down, and has kept something: %v", l)
	}
	d := elsewhere.Expect(4, "down", "--all")
	says(&elsewhere, d, "2 workshops would be stopped and removed", "`workshop down --all --yes`")
	if l := listed(&elsewhere); len(l) != 2 {
		t.Errorf("refused, and done: %v", l)
	}
	elsewhere.Expect(0, "down", "--all", "--yes")
	if l := listed(&elsewhere); len(l) != 0 {
		t.Errorf("still up: %v", l)
	}
	for _, w := range []*scenario.Scenario{a, b} {
		if left := withoutCaches(w.Leftovers()); len(left) > 0 {
			t.Errorf("%s left %v", w.Project, left)
		}
	}
}

// `prune` removes what belongs to directories that are gone, with --all the caches of
// workshops that are down, and nothing of one that runs.
func TestPrune(t *testing.T) {
	all, ok := desks(t, "prune removes what nothing uses, and nothing that is in use", "runs", "down", "gone", "killed")
	if !ok {
		return
	}
	runs, down, gone, killed := all[0], all[1], all[2], all[3]
	for _, w := range all {
		w.Up()
		inside(w, "echo "+w.Project+" > /home/worker/build/own")
	}
	at, was := published(runs), published(down)
	down.Expect(0, "down")
	gone.Expect(0, "down")
	for _, service := range []string{"worker", "outlet", "guard", "room"} {
		if _, there := killed.Containers()[service]; there {
			killed.Stop(service)
		}
	}
	for _, w := range []*scenario.Scenario{gone, killed} {
		moveAway(w)
	}
	before := listed(runs, "-a")
	d := runs.Expect(0, "prune", "--dry-run")
	for _, want := range []string{killed.Project, gone.Dir, "its directory is gone"} {
		if !strings.Contains(d.Out, want) {
			t.Errorf("%s is not in:\n%s", want, d.Out)
		}
	}
	for _, not := range []string{runs.Dir, down.Dir} {
		if strings.Contains(d.Out, not+"\n") || strings.Contains(d.Out, not+" ") {
			t.Errorf("%s is in:\n%s", not, d.Out)
		}
	}
	if after := listed(runs, "-a"); len(after) != len(before) {
		t.Errorf("a dry run removed something: %v", after)
	}
	says(runs, runs.Expect(4, "prune"), "`workshop prune --yes`")
	if d = runs.Expect(0, "prune", "--yes"); !strings.Contains(d.Err, "freed ") {
		t.Errorf("it doesn't say how much it freed: %s", d.Err)
	}
	list := listed(runs, "-a")
	if list[gone.Project] != nil || list[killed.Project] != nil || list[down.Project] == nil || list[runs.Project]["state"] != "up" {
		t.Errorf("after prune: %v", list)
	}
	if left := killed.Leftovers(); len(left) > 0 {
		t.Errorf("%s left %v", killed.Project, left)
	}
	runs.Expect(0, "prune", "--all", "--yes")
	if l := listed(runs, "-a")[down.Project]; fmt.Sprint(l["kept"]) != "[ports]" {
		t.Errorf("after prune --all: %v", l)
	}
	if d := inside(runs, "cat /home/worker/build/own"); d.Out != runs.Project+"\n" || published(runs) != at {
		t.Errorf("what runs lost its cache or port: %q %s", d.Out, d.Err)
	}
	down.Up()
	if now := published(down); now != was {
		t.Errorf("published at %s, want %s as before", now, was)
	}
	if d := inside(down, "ls /home/worker/build"); d.Out != "" {
		t.Errorf("the cache wasn't removed: %q", d.Out)
	}
}

// `wait` returns the exit code of a worker that ends.
func TestWait(t *testing.T) {
	s := scenario.At(t, "wait ends with the worker, with its exit code", deskFiles())
	says(s, s.Expect(125, "wait"), "is not up")
	s.Up()
	ended := make(chan scenario.Done, 1)
	go func() { ended <- s.Run("wait", "worker") }()
	select {
	case d := <-ended:
		t.Fatalf("it doesn't wait: %d %s%s", d.Code, d.Out, d.Err)
	case <-time.After(time.Second):
	}
	s.Kill("worker", "KILL")
	select {
	case d := <-ended:
		if want := fmt.Sprintf("container %q exited with status code 137\n", s.Project+"-worker-1"); d.Code != 137 || d.Out != want {
			t.Errorf("exit code %d, %q, want %q\n%s", d.Code, d.Out, want, d.Err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("it waits on")
	}
	if d := s.Run("wait", "worker"); d.Code != 137 {
		t.Errorf("of one that has ended: exit code %d\n%s", d.Code, d.Err)
	}
}
