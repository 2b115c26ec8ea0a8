//go:build linux

package e2e

import (
	"strings"
	"syscall"
	"testing"

	"github.com/llmdo/workshop/e2e/scenario"
)

// TestUpElsewhere: a workshop that is up on one engine is never taken for one that isn't,
// whatever engine the environment names, and whatever became of the first one.
func TestUpElsewhere(t *testing.T) {
	scenario.OnlyDocker(t, "two engines of Docker, and namespaces")
	if !scenario.Alone(t) {
		return
	}
	second := scenario.NewEngine(t, "--bip", "10.214.254.1/24")
	first := scenario.NewEngine(t) // the one of the tests from here on
	s := scenario.New(t, "none", "a workshop is up on the engine where it was brought up, until down")
	on := func(host string, args ...string) scenario.Done {
		before := s.Env
		defer func() { s.Env = before }()
		s.Env = append(s.Env, "DOCKER_HOST="+host)
		return s.Run(args...)
	}
	expect := func(name string, d scenario.Done, code int, says ...string) {
		t.Helper()
		for _, text := range says {
			if !strings.Contains(d.Out+d.Err, text) {
				t.Errorf("%s: it doesn't say %q:\n%s%s", name, text, d.Out, d.Err)
			}
		}
		if d.Code != code {
			t.Errorf("%s: exit code %d, want %d\n%s%s", name, d.Code, code, d.Out, d.Err)
		}
	}
	upOn := "project " + s.Project + " is up on docker at " + first.Host() + ", since "
	s.Up()
	expect("up elsewhere", on(second.Host(), "up"), 4, upOn, "; not on docker at "+second.Host(), "`workshop -p "+s.Project+" down`")
	expect("up on namespaces", s.Run("up", "--engine", "namespace"), 4, upOn, "; not on namespace")
	expect("ps of namespaces", s.Run("ps", "--engine", "namespace"), 4, upOn, "leave --engine out")
	expect("ps", on(second.Host(), "ps"), 0, "worker", "up ")
	expect("exec", on(second.Host(), "exec", "worker", "--", "true"), 0)
	expect("ls", on(second.Host(), "ls"), 0, s.Project)
	expect("forget what answers", s.Run("down", "--forget"), 4, upOn, "which answers")

	first.Stop(syscall.SIGTERM)
	for _, args := range [][]string{{"up"}, {"ps"}, {"exec", "worker", "--", "true"}, {"down"}, {"logs"}} {
		for _, host := range []string{first.Host(), second.Host()} {
			code := 4
			if args[0] == "exec" {
				code = 125 // as of docker exec
			}
			expect(args[0]+" while it is stopped", on(host, args...), code, upOn, "doesn't answer", "`workshop -p "+s.Project+" down --forget`")
		}
	}
	expect("ls while it is stopped", on(second.Host(), "ls"), 0, s.Project, "unknown")

	first.Start()
	expect("up after its start", on(first.Host(), "up"), 0)
	expect("up elsewhere after its start", on(second.Host(), "up"), 4, upOn)

	first.Stop(syscall.SIGTERM)
	first.Replace()
	for _, args := range [][]string{{"up"}, {"ps"}, {"down"}} {
		expect(args[0]+" of another engine", on(first.Host(), args...), 4, upOn, "another engine (docker ")
	}
	expect("forget", s.Run("down", "--forget"), 0, "is not removed")
	expect("up after it was forgotten", on(second.Host(), "up"), 0)
	expect("down there", on(first.Host(), "down"), 0, "worker: removed")
	expect("down again", on(first.Host(), "down"), 0, "nothing to remove")
}
