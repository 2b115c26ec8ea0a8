//go:build linux

package scenario

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/probe"
)

// Probe runs probes in a worker and returns what they saw.
func (s *Scenario) Probe(worker string, probes ...string) []probe.Result {
	s.Helper()
	return s.ProbeBy(worker, compose.InitPath, probes...)
}

// ProbeBy is Probe by another program that is in the worker.
func (s *Scenario) ProbeBy(worker, program string, probes ...string) []probe.Result {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var out bytes.Buffer
	code, err := s.machine.exec(ctx, s, s.Inspect(worker), append([]string{program, "probe"}, probes...), &out)
	r, err := checked(probes, out.String(), code, err)
	s.must(err)
	return r
}

// ProbeLoop is Probe for a container that may vanish meanwhile: it returns
// what could be read and fails nothing.
func (s *Scenario) ProbeLoop(c Container, probes ...string) []probe.Result {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var out bytes.Buffer
	if _, err := s.machine.exec(ctx, s, c, append([]string{compose.InitPath, "probe"}, probes...), &out); err != nil {
		s.Logf("probe ended early: %v", err)
	}
	return results(out.String())
}

// checked are the results of probes, one of each, or what went wrong.
func checked(probes []string, out string, code int, err error) ([]probe.Result, error) {
	r := results(out)
	if err != nil || code > 1 || len(r) != len(probes) {
		return nil, fmt.Errorf("probe %q: exit code %d, %v, %d results\n%s", probes, code, err, len(r), out)
	}
	return r, nil
}

// Results are the results of probes in what a program printed.
func Results(out string) []probe.Result { return results(out) }

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
	began := testutil.Now()
	all := s.Probe(worker, probes...)
	s.judge(began, worker, probes, all)
	return all
}

// SeesBy is [Scenario.Sees] by another program that is in the worker.
func (s *Scenario) SeesBy(worker, program string, probes ...string) {
	s.Helper()
	s.judge(testutil.Now(), worker, probes, s.ProbeBy(worker, program, probes...))
}

// judge looks at results of probes that began before they were made: arguments are
// evaluated in their order.
func (s *Scenario) judge(began testutil.Instant, worker string, probes []string, all []probe.Result) {
	s.Helper()
	ended := testutil.Now()
	for i, r := range all {
		if r.Expected == "" {
			s.Fatalf("%q expects nothing", probes[i])
		}
		if !r.OK {
			s.Errorf("%s: %s\n\tsaw %s (%s)", worker, probes[i], r.Seen, r.Detail)
		}
		if ended.Part(began, took(r)) > FailFast && !strings.Contains(probes[i], " for=") {
			s.Errorf("%s: %s: took %v, by a timeout", worker, probes[i], took(r))
		}
	}
}

func took(r probe.Result) time.Duration { return time.Duration(r.Millis * float64(time.Millisecond)) }

// Denial is one thing that must not work.
type Denial struct {
	// Probe with what the worker must see: "connect 198.51.100.66:9000 -> ECONNREFUSED".
	Probe string
	// Control is what an ordinary place must see ([Scenario.Control]) of the same probe.
	Control string
}

// Denied runs each probe in the worker and its control in an ordinary
// place; both must be as told.
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
			s.Errorf("control in an ordinary place: %s\n\tsaw %s (%s): the denial below proves nothing", controls[i], r.Seen, r.Detail)
		}
	}
	s.Sees(worker, attacks...)
}
