//go:build linux

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/llmdo/workshop/e2e/scenario"
	"github.com/llmdo/workshop/internal/dev/threat"
	"github.com/llmdo/workshop/internal/dev/threat/matrix"
	"github.com/llmdo/workshop/internal/probe"
)

// built is the program of package attacks, which nothing that is shipped brings
// along: a link takes a second.
var built = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "workshop-e2e-intruder-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	cmd := exec.Command("go", "build", "-o", filepath.Join(dir, "intruder"), "../internal/dev/threat/intruder")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go build intruder: %w\n%s", err, out)
	}
	return os.ReadFile(filepath.Join(dir, "intruder"))
})

// addIntruder gives a scenario that program, before it is up.
func addIntruder(s *scenario.Scenario) {
	s.Helper()
	program, err := built()
	if err == nil {
		_, outside := intruder(s)
		err = os.WriteFile(outside, program, 0o755)
	}
	if err != nil {
		s.Fatal(err)
	}
	s.Chown()
}

// intruder is that program's path inside the scenario's containers and here.
func intruder(s *scenario.Scenario) (inside, outside string) {
	return "/intruder", filepath.Join(s.Dir, "intruder")
}

// TestMatrix tries the whole matrix of package threat in a compiled room: as
// its worker, and, in containers that the product can't make, as uid 0 and with
// the engine's default capabilities.
func TestMatrix(t *testing.T) {
	s := scenario.New(t, "restricted", "whatever is tried from a room, by whomever in it, no packet arrives, every denial comes at once and is counted")
	addIntruder(s)
	program, outside := intruder(s)
	s.Write("workshop.yaml", strings.Replace(s.Read("workshop.yaml"), "- ./ca.pem:/ca.pem", "- ./ca.pem:/ca.pem\n      - ./intruder:"+program, 1))
	s.Up()
	gw := s.HostAddress()
	host, came := scenario.Listen(t, gw)
	guard, peer := s.Addresses()
	m := matrix.New(t, threat.Engines, s.Internet, map[string]string{
		"ca": "/ca.pem", "gateway": gw, "host": host, "guard": guard, "peer": peer,
		"guardpid": fmt.Sprint(s.Pid("guard")), "roompid": fmt.Sprint(s.Pid("room")),
	})
	m.NoIPv6 = !s.GuardHasIPv6()
	m.Control(func(lines []string) []probe.Result { return s.ControlBy(outside, lines...) })
	files := map[string]string{program: outside, "/ca.pem": filepath.Join(s.Dir, "ca.pem")}
	for _, who := range threat.Identities {
		as := &scenario.Intruder{Service: "room", Files: files, NoCapabilities: who == threat.Root}
		m.Try(who, func(raw bool, lines []string) []probe.Result {
			switch {
			case who == threat.Worker && raw:
				return s.ProbeBy("worker", program, lines...)
			case who == threat.Worker:
				return s.Probe("worker", lines...)
			}
			if as.Program = ""; raw {
				as.Program = program
			}
			return s.Intrude(as, lines...)
		}, func() []matrix.Event { return guardEvents(s) })
	}
	if came() != 0 {
		t.Errorf("the host's listener got %d connections", came())
	}
}

func guardEvents(s *scenario.Scenario) (all []matrix.Event) {
	text := func(v any) string { t, _ := v.(string); return t }
	for _, e := range s.Events() {
		count, _ := e["count"].(float64)
		all = append(all, matrix.Event{Kind: text(e["kind"]), Name: text(e["name"]), Address: text(e["address"]), Verdict: text(e["verdict"]), Count: int(count)})
	}
	return all
}
