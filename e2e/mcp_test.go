//go:build linux

package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/e2e/scenario"
	"github.com/llmdo/workshop/internal/testutil"
)

// mcpClient is the directory of e2e/mcpclient with the TypeScript SDK installed
// as the lock file says, kept for the next run.
func mcpClient(t *testing.T, root string) string {
	t.Helper()
	for _, program := range []string{"node", "npm"} {
		_, err := exec.LookPath(program)
		testutil.Require(t, err == nil, "there is no "+program+" (scripts/need npm=npm)")
	}
	source := filepath.Join(root, "e2e", "mcpclient")
	lock, err := os.ReadFile(filepath.Join(source, "package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(lock)
	dir := filepath.Join(root, ".workshop-cache", "mcpclient-"+hex.EncodeToString(sum[:6]))
	copied := func(to string, names ...string) {
		for _, name := range names {
			b, err := os.ReadFile(filepath.Join(source, name))
			if err == nil {
				err = os.WriteFile(filepath.Join(to, name), b, 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := os.Stat(dir); err != nil {
		half := dir + ".half"
		if err := os.RemoveAll(half); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(half, 0o755); err != nil {
			t.Fatal(err)
		}
		copied(half, "package.json", "package-lock.json")
		npm := exec.CommandContext(t.Context(), "npm", "ci", "--prefer-offline", "--ignore-scripts", "--no-audit", "--no-fund")
		npm.Dir = half
		npm.WaitDelay = time.Minute
		out, err := npm.CombinedOutput()
		testutil.Require(t, err == nil, "npm can't install the TypeScript SDK of MCP (is its registry reached?): "+lastLines(string(out)))
		if err := os.Rename(half, dir); err != nil {
			t.Fatal(err)
		}
	}
	copied(dir, "client.mjs")
	return dir
}

func lastLines(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], " / ")
}

// play runs one play of the client against `workshop tools`, and makes a test of
// each of its checks.
func play(t *testing.T, s *scenario.Scenario, dir, what string, args ...string) {
	t.Helper()
	server := s.Command(t.Context(), append([]string{"tools"}, args...)...)
	env := map[string]string{}
	for _, e := range server.Env {
		k, v, _ := strings.Cut(e, "=")
		env[k] = v
	}
	arg, err := json.Marshal(map[string]any{"command": server.Path, "args": server.Args[1:], "cwd": server.Dir, "env": env, "what": what})
	if err != nil {
		t.Fatal(err)
	}
	node := exec.CommandContext(t.Context(), "node", "client.mjs", string(arg))
	node.Dir = dir
	var errs strings.Builder
	node.Stderr = &errs
	start := time.Now()
	out, err := node.Output()
	t.Logf("%s: %v", what, time.Since(start).Round(time.Millisecond))
	checks := 0
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "ok "); ok {
			checks++
			t.Run(what+": "+name, func(*testing.T) {})
		} else if failed, ok := strings.CutPrefix(line, "not ok "); ok {
			name, why, _ := strings.Cut(failed, ": ")
			t.Run(what+": "+name, func(t *testing.T) { t.Error(strings.ReplaceAll(why, " | ", "\n")) })
		}
	}
	if err != nil || checks == 0 {
		t.Errorf("%s: %v, %d checks\n%s%s", what, err, checks, out, errs.String())
	}
}

// A client that we did not write lists and calls every tool.
func TestMCP(t *testing.T) {
	s := by(scenario.New(t, "mcp", "the TypeScript SDK's client lists and calls every tool against a live workshop, is asked for approvals, cancels, delegates, and gets nothing that isn't offered"))
	dir := mcpClient(t, s.Root)
	s.Env = append(s.Env, "XDG_CONFIG_HOME="+s.TempDir())
	s.Write("out/.keep", "")
	play(t, s, dir, "tools", "builder") // starts the workshop
	if got := s.Read("out/a.txt"); got != "one\nthree\n" {
		t.Errorf("what the tools wrote: %q", got)
	}
	play(t, s, dir, "approvals", "builder")
	play(t, s, dir, "mute", "builder")
	play(t, s, dir, "all")
	for _, name := range []string{"refused", "mute"} {
		if _, err := os.Stat(filepath.Join(s.Dir, "out", name)); err == nil {
			t.Errorf("out/%s was written although nobody allowed it", name)
		}
	}
}
