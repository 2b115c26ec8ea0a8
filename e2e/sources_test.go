//go:build linux

package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/llmdo/workshop/e2e/scenario"
	"github.com/llmdo/workshop/internal/dev/testutil"
)

// The repositories of others: a base, and workers to import.
var (
	sharedBase = map[string]string{
		"go-review/workshop.yaml": `workshop:
  name: go-review
  open: {images: [host], workers: true}
  container:
    network: {mode: restricted, allow: [allowed.example.org, denied.example.org], dns: [198.51.100.53]}
    mounts: ["./src:/workspace/src"]
    secrets: [{name: token, env: TOKEN_OF_THE_BASE}]
  workers: [reviewer]
`,
		"go-review/workers/reviewer.md": "---\nname: reviewer\ntools: Read, Bash(cat:*)\n---\nYou review.\n",
	}
	sharedImport = map[string]string{
		"workshop.yaml": `workshop:
  name: sast
  needs:
    network: {mode: restricted, allow: [allowed.example.org]}
    secrets: [token]
    mounts: [{target: /workspace/src}]
  workers: [scanner]
`,
		"workers/scanner.md": "---\nname: scanner\ntools: Read, Bash(cat:*)\n---\nYou scan.\n",
	}
)

// publish makes a repository that is served, with a tag; a second time a newer commit.
func publish(t *testing.T, served, name, tag string, files map[string]string) {
	t.Helper()
	bare, work := filepath.Join(served, name+".git"), filepath.Join(t.TempDir(), name)
	if _, err := os.Stat(bare); err != nil {
		testutil.Git(t, served, "init", "--quiet", "--bare", bare)
	}
	testutil.Git(t, served, "clone", "--quiet", bare, work)
	for file, text := range files {
		file = filepath.Join(work, file)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	testutil.Git(t, work, "add", "--all")
	testutil.Git(t, work, "commit", "--quiet", "--allow-empty", "-m", tag)
	testutil.Git(t, work, "tag", "--force", tag)
	testutil.Git(t, work, "push", "--quiet", "--force", "origin", "HEAD:refs/heads/main", "refs/tags/"+tag)
}

// TestB47_SharedWorkshops: a project whose base and import come from other repositories runs
// what its lock has, from a cold cache and without any network; the imported worker has
// what it was granted, and nothing else.
func TestB47_SharedWorkshops(t *testing.T) {
	served := t.TempDir()
	for name, files := range map[string]map[string]string{"workshops": sharedBase, "sast": sharedImport} {
		publish(t, served, name, "v1.0.0", files)
	}
	address := testutil.ServeGit(t, served)
	config, err := os.ReadFile(filepath.Join(os.Getenv("HOME"), ".gitconfig"))
	if err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(filepath.Join(os.Getenv("HOME"), "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	s := quiet(scenario.At(t, "a project with a base and an import of other repositories runs what its lock has: cold cache, vendored, offline; the import has what it was granted", map[string]string{
		"workshop.yaml": `workshop:
  name: shared
  extends: {from: "git+` + address + `/workshops//go-review", version: ^1}
  imports:
    - {as: sast, from: "git+` + address + `/sast", version: ^1}
  grant:
    sast:
      network: {mode: restricted, allow: [allowed.example.org]}
      secrets: [token]
      mounts: ["./src:/workspace/src"]
  container:
    image: host
    secrets: [{name: token, env: E2E_TOKEN}]
`,
		"src/a.txt": "a line\n",
	}))
	home := s.TempDir()
	for file, text := range map[string]string{
		"git/config":           strings.Replace(string(config), os.Getenv("HOME"), home+"/git", 1),
		"git/ca.pem":           string(ca),
		"workshop/config.yaml": "sources: {allow: [\"" + strings.TrimPrefix(address, "https://") + "\"]}\n",
	} {
		file = filepath.Join(home, file)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cache := s.TempDir()
	s.Env = append(s.Env, "XDG_CONFIG_HOME="+home, "XDG_CACHE_HOME="+cache)

	// Nothing runs unlocked, and nothing is asked by itself.
	if d := s.Expect(4, "up"); !strings.Contains(d.Err, "isn't in workshop.lock") {
		t.Error(d.Err)
	}
	s.Expect(0, "lock", "--yes")
	lock := s.Read("workshop.lock")
	for _, line := range []string{"/workshops//go-review:\n", "ref: refs/tags/v1.0.0\n", "  - sast--scanner allow allowed.example.org tcp/80,443\n", "  - sast--scanner secret token from $E2E_TOKEN\n"} {
		if !strings.Contains(lock, line) {
			t.Errorf("no %q in\n%s", line, lock)
		}
	}
	runs := func(how ...string) {
		t.Helper()
		s.Up(how...)
		s.Sees("reviewer", "read /workspace/src/a.txt -> ok", "read /run/secrets/token -> ENOENT", "dns 198.51.100.53 denied.example.org A -> 198.51.100.11")
		s.Sees("sast--scanner", "read /workspace/src/a.txt -> ok", "write /workspace/src/a.txt text=x -> EROFS", "read /run/secrets/token -> ok", "dns 198.51.100.53 allowed.example.org A -> 198.51.100.10", "dns 198.51.100.53 denied.example.org A -> NXDOMAIN")
		says(s, s.Expect(0, "firewall", "allow", "more.example.org"), "--save doesn't keep it: the base ", " neither allows nor opens more.example.org; who keeps it can")
		says(s, s.Expect(0, "firewall", "allow", "denied.example.org", "--worker", "sast--scanner"), "--save doesn't keep it: an import gets what its `needs` name")
		s.Expect(0, "down")
		if s.Read("workshop.lock") != lock {
			t.Error("the lock was written")
		}
	}
	runs("--frozen")

	// A tag that moved, and a cold cache: what was locked runs.
	publish(t, served, "sast", "v1.0.0", map[string]string{"workshop.yaml": strings.Replace(sharedImport["workshop.yaml"], "allowed.example.org", "denied.example.org", 1)})
	publish(t, served, "sast", "v1.1.0", map[string]string{"workshop.yaml": strings.Replace(sharedImport["workshop.yaml"], "[allowed.example.org]", "[allowed.example.org, evil.example.org]", 1)})
	if err := os.RemoveAll(filepath.Join(cache, "workshop/sources")); err != nil {
		t.Fatal(err)
	}
	runs("--frozen")

	// Another machine: its settings agree to nothing.
	s.Env = append(s.Env, "XDG_STATE_HOME="+s.TempDir(), "XDG_CONFIG_HOME="+s.TempDir())
	if err := os.RemoveAll(filepath.Join(cache, "workshop/sources")); err != nil {
		t.Fatal(err)
	}
	if d := s.Expect(4, "up", "--frozen"); !strings.Contains(d.Err, "nothing was fetched") {
		t.Error(d.Err)
	}
	s.Env = append(s.Env, "XDG_CONFIG_HOME="+home)

	// A release that needs more is refused, and the lock stays.
	if d := s.Expect(4, "update", "--yes"); !strings.Contains(d.Err, "evil.example.org") {
		t.Error(d.Err)
	}
	if s.Read("workshop.lock") != lock {
		t.Error("the lock was written")
	}

	// What is allowed is what is published: here nobody agreed to the commit itself.
	if d := s.Expect(4, "vendor"); !strings.Contains(d.Err, "no branch or tag of it points at the commit") {
		t.Error(d.Err)
	}
	commit := regexp.MustCompile(`(?s)/sast:.*?commit: ([0-9a-f]{40})`).FindStringSubmatch(lock)
	if commit == nil {
		t.Fatal(lock)
	}
	testutil.Git(t, filepath.Join(served, "sast.git"), "tag", "-f", "v1.0.0", commit[1])

	// Vendored, without a server and a cache.
	s.Expect(0, "vendor")
	s.Expect(0, "vendor", "--check")
	for _, gone := range []string{filepath.Join(cache, "workshop/sources"), filepath.Join(served, "workshops.git"), filepath.Join(served, "sast.git")} {
		if err := os.RemoveAll(gone); err != nil {
			t.Fatal(err)
		}
	}
	runs("--frozen", "--offline")

	// What somebody changed there doesn't run.
	vendored, err := filepath.Glob(filepath.Join(s.Dir, ".workshop/_vendor/*sast*/workers/scanner.md"))
	if err != nil || len(vendored) != 1 {
		t.Fatal(vendored, err)
	}
	if err := os.WriteFile(vendored[0], []byte(strings.Replace(sharedImport["workers/scanner.md"], "Bash(cat:*)", "Bash", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	if d := s.Expect(4, "up", "--offline"); !strings.Contains(d.Err, "not what workshop.lock has") {
		t.Error(d.Err)
	}
}
