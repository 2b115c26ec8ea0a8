//go:build linux

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/e2e/scenario"
)

const (
	notReached = "the worker editor doesn't run, or can't be reached: tell the person, who can read why in the log of this server\n"
	takenAway  = "files in /tmp, /scratch and its home directory, and processes in the background, are gone"
)

// While a worker can't be used its client stays connected: the model is told to tell the
// person, who reads why once, and the calls after the repair work.
func TestUnreachedIsTold(t *testing.T) {
	scenario.Once(t, "what tells it doesn't depend on who runs it")
	s := callScenario(t, "a call of a worker that doesn't run tells the model nothing of this machine, and works again once the person has mended it")
	s.Up("editor")
	s.Write("out/.envrc", "true\n") // as a worker may
	s.Stop("editor")
	c := newRPC(t, s, "editor")
	list := func() string {
		t.Helper()
		text, _ := answerOf(t, c.ask("tools/call", `{"name": "list_files", "arguments": {}}`).Result)
		return text
	}
	for range 2 {
		if got := list(); got != notReached {
			t.Errorf("not started: %q", got)
		}
	}
	s.Up("editor")
	if got := list(); !strings.Contains(got, "src/") {
		t.Errorf("after up: %q", got)
	}
	for range 2 {
		s.Stop("editor")
		for range 2 {
			if got := list(); got != notReached {
				t.Errorf("stopped: %q", got)
			}
		}
		s.Up("editor")
		if got := list(); !strings.Contains(got, "src/") || !strings.Contains(got, "[The worker was restarted since the last call: "+takenAway+".]") {
			t.Errorf("after another up: %q", got)
		}
	}
	if got := list(); strings.Contains(got, "restarted") {
		t.Errorf("a restart is told twice: %q", got)
	}
	c.end()
	if code := c.ended(); code != 0 {
		t.Errorf("it ends with %d", code)
	}
	for text, want := range map[string]int{
		"watched files (B8): 1 change since the first `up`; nothing was started": 1,
		" ps` names them": 1,
		"editor of project " + s.Project + ": exited": 2,
		"workshop: hint: start it with `workshop ":    2,
	} {
		if n := strings.Count(c.errs.String(), text); n != want {
			t.Errorf("the person was told %d times of %q, want %d\n%s", n, text, want, c.errs)
		}
	}
}

// An `up` that recreates a worker during a call of its is no killed process.
func TestRecreatedIsTold(t *testing.T) {
	scenario.NotRootless(t, "what tells it doesn't depend on who runs it")
	s := callScenario(t, "a call during which `up` recreates the worker is told that the worker was restarted")
	s.Up("editor")
	c := newRPC(t, s, "--approve-all", "editor")
	c.ask("tools/call", `{"name": "shell", "arguments": {"command": "true"}}`)
	file := s.Read("workshop.yaml")
	up := make(chan scenario.Done)
	go func() {
		time.Sleep(time.Second)
		s.Write("workshop.yaml", strings.Replace(file, "    image: host\n", "    image: host\n    resources: {memory: 1G}\n", 1))
		up <- s.Run("up", "editor")
	}()
	a := c.ask("tools/call", `{"name": "shell", "arguments": {"command": "sleep 20"}}`)
	text, _ := answerOf(t, a.Result)
	if d := <-up; d.Code != 0 {
		t.Fatal(d.Err)
	}
	want := fmt.Sprintf("shell of editor was lost: the worker was restarted, and %s. ", takenAway)
	if strings.HasSuffix(text, "[ended by SIGTERM]") { // its last answer: the next one says why
		text, _ = answerOf(t, c.ask("tools/call", `{"name": "shell", "arguments": {"command": "true"}}`).Result)
		want = "[The worker was restarted since the last call: " + takenAway + ".]"
	}
	if !strings.Contains(text, want) {
		t.Errorf("%q, want %q", text, want)
	}
}

// A worker whose room was killed has no network: the model is told so, and the person
// what repairs it.
func TestNoRoomIsTold(t *testing.T) {
	scenario.OnlyNamespace(t, "on Docker a room that was killed leaves its worker the network that it has")
	s := callScenario(t, "a call without a network, since the room was killed, is told so")
	s.Up()
	c := newRPC(t, s, "--approve-all", "editor")
	c.ask("tools/call", `{"name": "list_files", "arguments": {}}`)
	s.Crash("room")
	s.Eventually("the guard has seen it", func() bool {
		return strings.Contains(s.Run("firewall", "show").Out, "the guard doesn't have its sockets")
	})
	const want = "[The worker's network doesn't run: tell the person.]"
	s.Eventually("the model is told", func() bool { // a busy machine may not answer in [app.AskTime]
		text, _ := answerOf(t, c.ask("tools/call", `{"name": "shell", "arguments": {"command": "curl -sS http://allowed.example.org/"}}`).Result)
		return strings.Contains(text, want)
	})
	c.end()
	c.ended()
	if n := strings.Count(c.errs.String(), "the room of editor is not running, so it has no network: `workshop "); n != 1 {
		t.Errorf("the person was told %d times\n%s", n, c.errs)
	}
}
