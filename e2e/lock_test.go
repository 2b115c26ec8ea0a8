//go:build linux

package e2e

import (
	"strings"
	"testing"

	"github.com/llmdo/workshop/e2e/scenario"
)

// lockedFiles are a workshop with an image of a registry, of which a worker can read one
// file.
func lockedFiles(image string) map[string]string {
	return map[string]string{
		"workshop.yaml":     "workshop:\n  name: locked\n  container:\n    image: " + image + "\n    mounts: [\"./src:/src\"]\n  workers: [worker]\n",
		"workers/worker.md": "---\nname: worker\ndescription: Reads.\nallowed-tools: Read\n---\nRead.\n",
		"src/a.txt":         "a\n",
	}
}

// TestB46_WhatRunsIsLocked: a tag that moved changes nothing, on the machine where it was
// locked and on one that has neither image nor generated files; what differs from the lock
// is refused with --frozen, also where it runs already.
func TestB46_WhatRunsIsLocked(t *testing.T) {
	s := scenario.At(t, "what runs is what the lock says, whatever its tag means by now", lockedFiles("x"))
	host, push := s.Registry()
	image := host + "/acme/" + s.Project + ":1"
	s.Write("workshop.yaml", lockedFiles(image)["workshop.yaml"])
	first := push(image, layer("etc/version", 0o644, []byte("first\n")))
	runs := func(version string) {
		t.Helper()
		if d := s.Expect(0, "call", "--no-up", "worker", "read_file", `{"path": "/etc/version"}`); !strings.Contains(d.Out, version) {
			t.Errorf("%s runs, want %s", d.Out, version)
		}
	}

	s.Expect(3, "up", "--frozen")
	s.Expect(0, "lock")
	lock := s.Read("workshop.lock")
	if !strings.Contains(lock, "  "+image+": "+first+"\n") {
		t.Fatalf("no digest in\n%s", lock)
	}
	s.Up("--frozen")
	runs("first")
	s.Expect(0, "down")

	second := push(image, layer("etc/version", 0o644, []byte("second\n")))
	s.Up("--frozen")
	runs("first")
	s.Expect(0, "down")
	s.Expect(0, "prune", "--all", "--yes")
	s.Up("--frozen")
	runs("first")
	if s.Read("workshop.lock") != lock {
		t.Error("--frozen wrote the lock")
	}

	// Another grant: refused where it isn't locked, and where it is and runs not yet.
	s.Write("workers/worker.md", strings.Replace(s.Read("workers/worker.md"), "Read\n", "Read, Grep\n", 1))
	if d := s.Expect(4, "up", "--frozen"); !strings.Contains(d.Err, "+ worker tool search_files") {
		t.Error(d.Err)
	}
	s.Expect(4, "call", "--frozen", "worker", "read_file", `{"path": "/src/a.txt"}`)
	if d := s.Expect(4, "restart", "--frozen"); !strings.Contains(d.Err, "+ worker tool search_files") {
		t.Error(d.Err)
	}
	s.Expect(0, "restart", "--frozen=false")
	s.Expect(0, "lock")
	if d := s.Expect(4, "restart", "--frozen", "worker"); !strings.Contains(d.Err, "the running workshop is older than workshop.lock (B46)") {
		t.Error(d.Err)
	}
	if d := s.Expect(4, "call", "--frozen", "worker", "read_file", `{"path": "/src/a.txt"}`); !strings.Contains(d.Err, "the running workshop is older than workshop.lock (B46)") {
		t.Error(d.Err)
	}
	s.Up("--frozen")
	s.Expect(0, "restart", "--frozen")
	s.Expect(0, "call", "--frozen", "worker", "read_file", `{"path": "/src/a.txt"}`)
	runs("first")

	// The newer image comes by a lock alone.
	if d := s.Expect(0, "lock", "--upgrade"); !strings.Contains(d.Out, "image "+image+" is "+second[:len("sha256:")+12]+", locked as "+first[:len("sha256:")+12]) {
		t.Error(d.Out)
	}
	s.Up()
	runs("second")
	s.Expect(0, "down")

	if scenario.DockerAPI() {
		dockerHasAnother(t, s, host, push)
	}
}

// dockerHasAnother: an image of the tag that somebody built on the engine is refused, and
// stays.
func dockerHasAnother(t *testing.T, s *scenario.Scenario, host string, push func(string, []byte) string) {
	image := host + "/acme/" + s.Project + "-own:1"
	s.Write("workshop.yaml", lockedFiles(image)["workshop.yaml"])
	digest := push(image, layer("etc/version", 0o644, []byte("pushed\n")))
	s.Expect(0, "lock")
	s.ImportImage(image, layer("etc/version", 0o644, []byte("built\n")))
	if d := s.Expect(4, "up"); !strings.Contains(d.Err, "docker pull "+image+"@"+digest) {
		t.Error(d.Err)
	}
	if !s.HasImage(image) {
		t.Error("the image of the engine is gone")
	}
}
