//go:build linux

package scenario

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/probe"
)

// Probe runs probes in a worker and returns what they saw.
func (s *Scenario) Probe(worker string, probes ...string) []probe.Result {
	s.Helper()
	return s.probe(s.Inspect(worker).ID, compose.InitPath, probes...)
}

func (s *Scenario) probe(id, program string, probes ...string) []probe.Result {
	s.Helper()
	out, code, err := s.tryExec(id, container.ExecOptions{Cmd: append([]string{program, "probe"}, probes...)})
	results := results(out)
	if err != nil || code > 1 || len(results) != len(probes) {
		s.Fatalf("probe %q: exit code %d, %v, %d results\n%s", probes, code, err, len(results), out)
	}
	return results
}

func results(out string) []probe.Result {
	var all []probe.Result
	for line := range strings.Lines(out) {
		var r probe.Result
		if json.Unmarshal([]byte(line), &r) == nil {
			all = append(all, r)
		}
	}
	return all
}

// Sees runs probes that say what they expect, and reports the ones that saw
// something else or took longer than [FailFast].
func (s *Scenario) Sees(worker string, probes ...string) []probe.Result {
	s.Helper()
	all := s.Probe(worker, probes...)
	for i, r := range all {
		if r.Expected == "" {
			s.Fatalf("%q expects nothing", probes[i])
		}
		if !r.OK {
			s.Errorf("%s: %s\n\tsaw %s (%s)", worker, probes[i], r.Seen, r.Detail)
		}
		if took(r) > FailFast && !strings.Contains(probes[i], " for=") {
			s.Errorf("%s: %s: took %v, by a timeout", worker, probes[i], took(r))
		}
	}
	return all
}

func took(r probe.Result) time.Duration { return time.Duration(r.Millis * float64(time.Millisecond)) }

// Denial is one thing that must not work.
type Denial struct {
	// Probe with what the worker must see: "connect 198.51.100.66:9000 -> ECONNREFUSED".
	Probe string
	// Control is what an ordinary container must see of the same probe.
	Control string
}

// Denied runs each probe in the worker and its control in an ordinary
// container; both must be as told.
func (s *Scenario) Denied(worker string, all ...Denial) {
	s.Helper()
	var attacks, controls []string
	for _, d := range all {
		attack, _, _ := strings.Cut(d.Probe, "->")
		attacks = append(attacks, d.Probe)
		controls = append(controls, attack+" -> "+d.Control)
	}
	for i, r := range s.Control(controls...) {
		if !r.OK {
			s.Errorf("control in an ordinary container: %s\n\tsaw %s (%s): the denial below proves nothing", controls[i], r.Seen, r.Detail)
		}
	}
	s.Sees(worker, attacks...)
}
