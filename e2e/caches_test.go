//go:build linux

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmdo/workshop/e2e/scenario"
)

// withCaches is a workshop of two workers that each have the cache npm.
func withCaches(container, worker string) map[string]string {
	text := "---\nname: %\ndescription: Installs things.\nallowed-tools: []\n---\nYou run what the test says.\n"
	return map[string]string{
		"workshop.yaml": "workshop:\n  name: cached\n  container:\n    image: host\n    mounts: [./src:/workspace/src]\n    secrets: [{name: token, file: ./token}]\n" + container +
			"  workers:\n    - name: coder\n      container: {caches: [npm, models]" + worker + "}\n    - name: other\n      container: {caches: [npm]}\n",
		"workers/coder.md": strings.Replace(text, "%", "coder", 1),
		"workers/other.md": strings.Replace(text, "%", "other", 1),
		"src/main.js":      "",
		"token":            "s3cret",
	}
}

const cachesOf = "    caches: [npm, {name: models, target: /home/worker/.models, prune_above: 1M}]\n"

// sh runs a line in a worker and returns what it prints.
func sh(s *scenario.Scenario, worker, line string) string {
	s.Helper()
	return strings.TrimSpace(s.Expect(0, "exec", worker, "--", "sh", "-c", line).Out)
}

func TestB03_CacheBelongsToOneWorkerAndOneGrant(t *testing.T) {
	s := scenario.At(t, "a cache outlives its worker and down, no other worker has it, and any change of the grants starts an empty one", withCaches(cachesOf, ""))
	check := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: got %q, want %q", what, got, want)
		}
	}
	has := func() string {
		t.Helper()
		return sh(s, "coder", "cat /caches/npm/package 2>/dev/null || echo empty")
	}
	s.Up()
	check("variable, mode and owner", sh(s, "coder", `echo $npm_config_cache $(stat -c %a:%u /caches/npm /home/worker/.models) $(id -u)`),
		"/caches/npm "+strings.Repeat("700:"+sh(s, "coder", "id -u")+" ", 2)+sh(s, "coder", "id -u"))
	sh(s, "coder", "echo of coder > /caches/npm/package")
	check("beside the caches", sh(s, "coder", "touch /caches/x 2>/dev/null || echo refused"), "refused")
	check("another worker's", sh(s, "other", "ls -A /caches /caches/npm; ls -d /home/worker/.models 2>/dev/null || true"), "/caches:\nnpm\n\n/caches/npm:")
	s.Expect(0, "restart", "coder")
	check("after a restart", has(), "of coder")
	s.Expect(0, "cp", "coder:/caches/npm/package", "./copied")
	check("copied out", s.Read("copied"), "of coder\n")
	s.Expect(0, "cp", "./copied", "coder:/caches/npm/in")
	check("copied in", sh(s, "coder", "cat /caches/npm/in; stat -c %u /caches/npm/in; rm /caches/npm/in"), "of coder\n"+sh(s, "coder", "id -u"))
	s.Expect(0, "down")
	s.Up("other")
	s.Up()
	check("after down and up", has(), "of coder")
	sh(s, "other", "echo of other > /caches/npm/package")
	check("beside another worker's", has(), "of coder")

	for _, tt := range []struct{ name, container, worker string }{
		{"a secret", cachesOf, ", secrets: [token]"},
		{"a host", cachesOf + "    network: {mode: restricted, allow: [allowed.example.org]}\n", ""},
		{"a host more", cachesOf + "    network: {mode: restricted, allow: [allowed.example.org, \"**.example.org\"]}\n", ""},
		{"narrower again", cachesOf, ""},
	} {
		s.Write("workshop.yaml", withCaches(tt.container, tt.worker)["workshop.yaml"])
		if d := s.Up(); !strings.Contains(d.Err, "coder: its caches npm, models start empty, as what it is granted changed") &&
			!strings.Contains(d.Err, "coder: its caches models, npm start empty, as what it is granted changed") {
			t.Errorf("%s: up doesn't say that the cache is a fresh one\n%s", tt.name, d.Err)
		}
		check(tt.name, has(), "empty")
		sh(s, "coder", "echo of "+strings.ReplaceAll(tt.name, " ", "-")+" > /caches/npm/package")
	}
	if d := s.Up(); strings.Contains(d.Err, "empty") {
		t.Errorf("an up that changes nothing says\n%s", d.Err)
	}
	check("limits aren't grants", func() string {
		s.Write("workshop.yaml", withCaches(cachesOf+"    resources: {memory: 1G}\n", "")["workshop.yaml"])
		s.Up()
		return has()
	}(), "of narrower-again")
	if d := s.Expect(0, "down", "-v"); !strings.Contains(d.Err, "caches stay: ") || !strings.Contains(d.Err, "`workshop down --volumes` removes them") {
		t.Errorf("down -v doesn't say how caches are removed\n%s", d.Err)
	}
	s.Expect(0, "down", "--volumes")
	s.Up()
	check("after down --volumes", has(), "empty")
	s.Expect(0, "down", "--volumes")
	if l := left(s); l != nil {
		t.Errorf("left: %v", l)
	}
}

// Another user never has what the former one wrote (B4).
func TestB03_CacheOfAnotherUser(t *testing.T) {
	scenario.NotRootless(t, "without root there is one user")
	s := scenario.At(t, "a worker with another uid has a cache of its own", withCaches(cachesOf+"    user: \"1234:1234\"\n", ""))
	s.Up()
	sh(s, "coder", "echo x > /caches/npm/package")
	s.Write("workshop.yaml", withCaches(cachesOf+"    user: \"1235:1235\"\n", "")["workshop.yaml"])
	s.Up()
	if got := sh(s, "coder", "stat -c %a:%u /caches/npm; ls -A /caches/npm"); got != "700:1235" {
		t.Errorf("got %q", got)
	}
}

// What a worker leaves in its cache makes neither its next start nor the removal hang,
// fail or touch what is outside (B60).
func TestB60_HostileCache(t *testing.T) {
	s := scenario.At(t, "a worker fills its cache with links, pipes, closed and deep directories: the next start empties it, and down --volumes removes it", withCaches(cachesOf, ""))
	outside := filepath.Join(s.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("mine"), 0o666); err != nil {
		t.Fatal(err)
	}
	_ = os.Chmod(outside, 0o666)
	fill := func(dir string) {
		t.Helper()
		sh(s, "coder", "cd "+dir+` && mkdir a b c && ln -s `+outside+` link && ln -s / root && mkfifo pipe && cp /bin/true suid && chmod 4755 suid
			(mknod dev c 1 3 2>/dev/null && echo made a device) || true
			perl -e 'for (1..2500) { mkdir "d" or die $!; chdir "d" or die $! }'
			echo x > b/file; chmod 0 b; dd if=/dev/zero of=c/large bs=1M count=3 2>/dev/null; chmod 0 c; chmod 0 .`)
	}
	s.Up()
	fill("/home/worker/.models")
	fill("/caches/npm")
	s.Expect(0, "down")
	d := s.Up()
	if !strings.Contains(d.Err, "coder: the cache /home/worker/.models was emptied: ") {
		t.Errorf("up doesn't say that a cache was emptied\n%s", d.Err)
	}
	if got := sh(s, "coder", "stat -c %a /caches/npm /home/worker/.models; ls -A /home/worker/.models"); got != "700\n700" {
		t.Errorf("got %q", got)
	}
	fill("/home/worker/.models")
	s.Expect(0, "down", "--volumes")
	if l := left(s); l != nil {
		t.Errorf("left: %v", l)
	}
	if b, err := os.ReadFile(outside); err != nil || string(b) != "mine" {
		t.Errorf("outside: %q, %v", b, err)
	}
	s.Up()
	if got := sh(s, "coder", "ls -A /caches/npm /home/worker/.models"); got != "/caches/npm:\n\n/home/worker/.models:" {
		t.Errorf("got %q", got)
	}
	s.Expect(0, "down", "--volumes")
}

func TestPlainCompose_Caches(t *testing.T) {
	scenario.OnlyDocker(t, plainCompose)
	s := scenario.At(t, "a project that docker-compose starts has the caches that up has", withCaches(cachesOf, ""))
	s.Up()
	sh(s, "coder", "echo of coder > /caches/npm/package")
	s.Expect(0, "down")
	composeUp(t, s)
	s.Eventually("the worker is there", func() bool { return runs(s, "coder") })
	if got := sh(s, "coder", "cat /caches/npm/package; stat -c %a:%u /caches/npm"); got != "of coder\n700:"+sh(s, "coder", "id -u") {
		t.Errorf("got %q", got)
	}
	if got := sh(s, "other", "ls -A /caches/npm"); got != "" {
		t.Errorf("another worker has %q", got)
	}
}
