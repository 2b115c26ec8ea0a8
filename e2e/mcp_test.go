//go:build linux

package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"github.com/llmdo/workshop/e2e/scenario"
	"github.com/llmdo/workshop/internal/dev/testutil"
)

// mcpClient is the directory of e2e/mcpclient with the TypeScript SDK installed
// as the lock file says, kept for the next run.
func mcpClient(t *testing.T, root string) string {
	t.Helper()
	for _, program := range []string{"node", "npm"} {
		_, err := exec.LookPath(program)
		testutil.Require(t, err == nil, "there is no "+program+" (scripts/need npm=npm)")
	}
	dir, err := installClient(root)
	testutil.Require(t, err == nil, fmt.Sprint(err))
	return dir
}

// installClient installs it, unless it is there; one process at a time.
func installClient(root string) (string, error) {
	source, cache := filepath.Join(root, "e2e", "mcpclient"), filepath.Join(root, ".workshop-cache")
	lock, err := os.ReadFile(filepath.Join(source, "package-lock.json"))
	if err != nil {
		return "", err
	}
	client, err := os.ReadFile(filepath.Join(source, "client.mjs"))
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(append(lock, client...))
	dir := filepath.Join(cache, "mcpclient-"+hex.EncodeToString(sum[:6]))
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	turn := flock.New(filepath.Join(cache, "mcpclient.lock"))
	if err := turn.Lock(); err != nil {
		return "", err
	}
	defer turn.Close()
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	half := dir + ".half"
	if err := os.RemoveAll(half); err != nil {
		return "", err
	}
	if err := os.MkdirAll(half, 0o755); err != nil {
		return "", err
	}
	for _, name := range []string{"package.json", "package-lock.json", "client.mjs"} {
		if b, err := os.ReadFile(filepath.Join(source, name)); err != nil {
			return "", err
		} else if err := os.WriteFile(filepath.Join(half, name), b, 0o644); err != nil {
			return "", err
		}
	}
	npm := exec.Command("npm", "ci", "--prefer-offline", "--ignore-scripts", "--no-audit", "--no-fund")
	npm.Dir = half
	npm.WaitDelay = time.Minute
	if out, err := npm.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm can't install the TypeScript SDK of MCP (is its registry reached?): %s", lastLines(string(out)))
	}
	return dir, os.Rename(half, dir)
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
	scenario.NotRootless(t, "nothing of it depends on who runs it")
	s := by(scenario.New(t, "mcp", "the TypeScript SDK's client lists and calls every tool against a live workshop, is asked for approvals, cancels, delegates, and gets nothing that isn't offered"))
	dir := mcpClient(t, s.Root)
	s.Env = append(s.Env, "XDG_CONFIG_HOME="+s.TempDir())
	s.Write("out/.keep", "")
	play(t, s, dir, "tools", "--structured", "builder") // starts the workshop
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
