//go:build linux

package e2e

import (
	"strings"
	"testing"

	"github.com/llmdo/workshop/e2e/scenario"
)

// TestRootlessDocker: what can't hold is refused by name, everything else runs.
func TestRootlessDocker(t *testing.T) {
	scenario.OnlyDocker(t, "an engine of another user")
	scenario.HasRootless(t, "rootlesskit", "slirp4netns", "newuidmap")
	if !scenario.Alone(t) {
		return
	}
	scenario.AsUser(t)
	scenario.NewRootlessEngine(t)
	s := scenario.New(t, "restricted", "rootless Docker: rw mounts and secrets are refused, as ids in containers aren't the user's; the rest runs")
	refused := func(want string, args ...string) {
		t.Helper()
		if d := s.Expect(4, append([]string{"up"}, args...)...); !strings.Contains(d.Err, want) {
			t.Errorf("up %v: the error is not %q:\n%s", args, want, d.Err)
		}
		if l := left(s); l != nil {
			t.Errorf("it left %v", l)
		}
	}
	refused("memory, swap, cpu, pids: a worker's memory is limited (B5)") // no service manager delegates a cgroup
	const waive = "--without-limits"
	file := s.Read("workshop.yaml")
	s.Write("workshop.yaml", strings.Replace(file, "./ca.pem:/ca.pem", "./ca.pem:/ca.pem\n      - ./out:/out:rw", 1))
	refused("what the worker writes to ./out would not belong to 1000:1000, as Docker is rootless (B4)", waive)
	s.Write("token", "secret")
	s.Write("workshop.yaml", strings.Replace(file, "    network:", "    secrets: [{name: token, file: ./token}]\n    network:", 1))
	s.Write("workshop.yaml", strings.Replace(s.Read("workshop.yaml"), "    - worker\n", "    - name: worker\n      container: {secrets: [token]}\n", 1))
	refused("the worker could not read the secret token, as Docker is rootless (B11)", waive)
	s.Write("workshop.yaml", file)

	s.Up(waive)
	s.Sees("worker",
		"interfaces -> lo",
		"http https://allowed.example.org/ ca=/ca.pem -> 200",
		"http http://169.254.169.254/ -> 403",
	)
	if d := s.Run("ps"); !strings.Contains(d.Out+d.Err, "without limits: worker may use all memory") {
		t.Errorf("ps:\n%s%s", d.Out, d.Err)
	}
	if d := s.Expect(0, "exec", "worker", "--", "id", "-u"); strings.TrimSpace(d.Out) != "1000" {
		t.Errorf("exec: %q", d.Out)
	}
	s.Expect(0, "down")
	if l := left(s); l != nil {
		t.Errorf("down left %v", l)
	}
}
