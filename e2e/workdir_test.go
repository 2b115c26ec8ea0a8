//go:build linux

package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/llmdo/workshop/e2e/scenario"
)

func TestB06_WorkdirIsEnteredFromInside(t *testing.T) {
	s := scenario.At(t, "everything of a worker runs in its working directory, and nothing goes through a magic link that the worker puts there", map[string]string{
		"workshop.yaml": "workshop:\n  name: workdir\n  container:\n    image: host\n    workdir: /in/a/b\n    mounts:\n      - ./in:/in:rw\n  workers: [worker]\n",
		// b is missing and will be made.
		"in/a/.keep":        "",
		"workers/worker.md": "---\nname: worker\ndescription: works\ntools: Read\n---\nYou run what the test says.\n",
	})
	s.Env = append(s.Env, "HOME="+s.TempDir(), "XDG_STATE_HOME="+s.TempDir(), "XDG_CONFIG_HOME=")
	s.Up()
	as := fmt.Sprintf("%d:%d", scenario.UID, scenario.UID)
	if scenario.DockerAPI() { // its own user's commands aren't the engine's
		as = fmt.Sprintf("%d:%d", scenario.UID+1, scenario.UID+1)
	}
	if main, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", s.Inspect("worker").Pid)); err != nil || main != "/in/a/b" {
		t.Errorf("the main process is in %s, %v", main, err)
	}
	for _, args := range [][]string{{"worker", "--", "sh", "-c", "pwd; echo text >here.txt"}, {"--user", as, "worker", "--", "pwd"}, {"-w", "/in/a/b", "--user", as, "worker", "--", "pwd"}, {"-w", "../b", "worker", "--", "pwd"}} {
		if d := s.Expect(0, append([]string{"exec"}, args...)...); d.Out != "/in/a/b\n" {
			t.Errorf("exec %v is in %q", args, d.Out)
		}
	}
	if d := s.Expect(0, "call", "worker", "read_file", "path=here.txt"); !strings.Contains(d.Out, "text") {
		t.Errorf("a call elsewhere: %s", d.Out)
	}
	if got := s.Expect(0, "exec", "worker", "--", "stat", "-c", "%u", "/in/a/b").Out; got != fmt.Sprintln(scenario.UID) {
		t.Errorf("what was made belongs to %s", got)
	}
	s.Expect(127, "exec", "--user", as, "worker", "--", "no-such-program")

	// /proc/self/root is whatever root the process has that follows it.
	s.Expect(0, "exec", "worker", "--", "sh", "-c", "mkdir /tmp/b && mv /in/a /in/old && ln -s /proc/self/root/tmp /in/a")
	for _, args := range [][]string{
		{"exec", "worker", "--", "pwd"}, {"exec", "--user", as, "worker", "--", "pwd"},
		{"exec", "-w", "/in/a/b", "worker", "--", "pwd"}, {"exec", "-w", "/in/a/b", "--user", as, "worker", "--", "pwd"},
		{"shell", "worker"}, {"call", "worker", "read_file", "path=here.txt"}, {"restart", "worker"},
	} {
		if d := s.Run(args...); d.Code == 0 || !strings.Contains(d.Err, "/in/a/b: ") || !strings.Contains(d.Err, "magic link") {
			t.Errorf("%v: %d, %s%s", args, d.Code, d.Out, d.Err)
		}
	}
	if err := os.Remove(s.Dir + "/in/a"); err != nil {
		t.Fatal(err)
	}
	s.Up()
	// What is absolute goes on where the directory is gone.
	s.Expect(0, "exec", "worker", "--", "rm", "-r", "/in/a")
	if d := s.Run("exec", "worker", "--", "pwd"); d.Code != 125 || !strings.Contains(d.Err, "workdir /in/a/b: there is no such directory") || !strings.Contains(d.Err, "exec -w / worker -- ls -la") {
		t.Errorf("%d, %s", d.Code, d.Err)
	}
	s.Expect(0, "exec", "-w", "/in", "worker", "--", "mkdir", "-p", "/in/a/b")
	s.Expect(0, "exec", "worker", "--", "pwd")
}
