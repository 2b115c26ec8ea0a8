//go:build linux

package e2e

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/llmdo/workshop/e2e/scenario"
	"github.com/llmdo/workshop/internal/dev/testutil"
)

// In `workshop shell` a denial is a line of its own above the prompt, which is
// written again with what a person has typed so far.
func TestShellOnATerminal(t *testing.T) {
	scenario.NotRootless(t, "the terminal is the person's, whoever runs the worker")
	tmux, err := exec.LookPath("tmux")
	testutil.Require(t, err == nil, "tmux is not installed: scripts/need tmux=tmux")
	s := scenario.At(t, "a shell on a real terminal shows denials above its prompt", map[string]string{
		"workshop.yaml":  "workshop:\n  name: shell\n  container:\n    image: host\n    network: {mode: restricted, allow: [allowed.example.org]}\n  workers: [one]\n",
		"workers/one.md": "---\nname: one\ndescription: Works\nallowed-tools: Bash\n---\nWork.\n",
	})
	s.Up()
	socket := filepath.Join(s.TempDir(), "tmux")
	run := func(args ...string) string {
		t.Helper()
		cmd := s.Program(t.Context(), tmux, append([]string{"-S", socket, "-f", "/dev/null"}, args...)...)
		cmd.Env = append(cmd.Env, "TERM=xterm")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("tmux %s: %v\n%s", args[0], err, out)
		}
		return string(out)
	}
	run("new-session", "-d", "-x", "160", "-y", "40", s.Workshop()+" --no-color shell one")
	t.Cleanup(func() { _ = s.Program(t.Context(), tmux, "-S", socket, "kill-server").Run() })
	const prompt = `worker@workshop:/workspace\$`
	shows := func(what, pattern string) {
		t.Helper()
		var screen string
		want := regexp.MustCompile(pattern)
		defer func() {
			if t.Failed() {
				t.Logf("the screen:\n%s", screen)
			}
		}()
		s.Eventually(what, func() bool {
			screen = strings.TrimRight(run("capture-pane", "-p"), "\n ")
			return want.MatchString(screen)
		})
	}
	shows("a prompt", `(?m)^`+prompt+`\z`)
	run("send-keys", "curl -sS -o /dev/null http://denied.example.org/", "Enter")
	shows("a denial above the prompt", `(?m)^workshop: refused denied\.example\.org:80 \(not allowed\); to allow it: .workshop firewall allow denied\.example\.org[^\n]*\n`+prompt+`\z`)
	run("send-keys", "clear; ssh git@git.example.org", "Enter")
	shows("the port of ssh", `(?m)^workshop: refused git\.example\.org:22 \(not allowed\); to allow it: .workshop firewall allow git\.example\.org:22 [^\n]*\n`+prompt+`\z`)
	run("send-keys", "(sleep 1; exec curl -s -o /dev/null http://later.example.org/) & echo unfin", "Enter")
	shows("the next prompt", `(?m)^unfin\n`+prompt+`\z`)
	run("send-keys", "echo unfin")
	shows("a denial above what is typed", `(?m)^workshop: refused later\.example\.org:80 [^\n]*\n`+prompt+` echo unfin\z`)
	run("send-keys", "ished", "Enter")
	shows("the finished line runs", `(?m)^unfinished\n(?:[^\n]*\n)*`+prompt+`\z`)
}
