//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/guard/control"
)

// sample is what the guard uses at a moment.
type sample struct {
	memory      float64 // MiB of its cgroup, the kernel's buffers included
	rss, heap   float64 // MiB
	descriptors float64
	sockets     float64 // of them
	goroutines  float64
	threads     float64
	connections float64
}

// sampler looks at a guard from outside and asks it.
type sampler struct {
	pid     int
	memory  *testutil.MemoryGroup
	control string
}

func (s *sampler) sample() (x sample, err error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.pid))
	if err != nil {
		return x, fmt.Errorf("the guard has ended: %w", err)
	}
	for line := range bytes.Lines(b) {
		f := bytes.Fields(line)
		if len(f) < 2 {
			continue
		}
		n, _ := strconv.ParseFloat(string(f[1]), 64)
		switch string(f[0]) {
		case "VmRSS:":
			x.rss = n / 1024
		case "Threads:":
			x.threads = n
		}
	}
	used, _, err := s.memory.Now()
	if err != nil {
		return x, err
	}
	x.memory = float64(used) / (1 << 20)
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.pid))
	if err != nil {
		return x, err
	}
	x.descriptors = float64(len(open))
	for _, f := range open {
		if to, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", s.pid, f.Name())); err == nil && strings.HasPrefix(to, "socket:") {
			x.sockets++
		}
	}
	c, err := net.DialTimeout("unix", s.control, 10*time.Second)
	if err != nil {
		return x, fmt.Errorf("the guard's control: %w", err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	var state control.State
	if err := control.NewClient(c).Do(control.Request{Op: control.OpState}, &state); err != nil {
		return x, err
	}
	x.goroutines, x.heap = float64(state.Goroutines), float64(state.HeapBytes)/(1<<20)
	for _, r := range state.Rooms {
		x.connections += float64(r.Connections)
	}
	return x, nil
}

// judge prints the samples and says what grew. The second quarter is what the
// load needs; the first has the beginning in it.
func judge(before sample, all []sample, after sample) error {
	if len(all) < 8 {
		return errors.New("too few samples: let it run for longer")
	}
	quarter := len(all) / 4
	var problems []error
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "of the guard\tbefore\tfirst\tmedian\tmax\tsecond quarter\tlast quarter\tgrowth\tafter\t\t\n")
	row := func(what string, get func(sample) float64, most float64, grows bool) {
		var v []float64
		for _, x := range all {
			v = append(v, get(x))
		}
		sorted := slices.Sorted(slices.Values(v))
		second, last := mean(v[quarter:2*quarter]), mean(v[len(v)-quarter:])
		top, growth, verdict := sorted[len(sorted)-1], last/max(second, 1), ""
		if most > 0 || grows {
			verdict = "ok"
		}
		if most > 0 && top > most {
			verdict = "MISSED"
			problems = append(problems, fmt.Errorf("%s: %.0f, at most %.0f are allowed", what, top, most))
		}
		if grows && growth > soakGrowth {
			verdict = "MISSED"
			problems = append(problems, fmt.Errorf("%s grew from %.0f to %.0f", what, second, last))
		}
		fmt.Fprintf(w, "%s\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%+.1f%%\t%.0f\t%s\t\n",
			what, get(before), v[0], sorted[len(sorted)/2], top, second, last, 100*(growth-1), get(after), verdict)
	}
	row("memory, MiB", func(x sample) float64 { return x.memory }, soakMemory, true)
	row("RSS, MiB", func(x sample) float64 { return x.rss }, 0, true)
	row("heap, MiB", func(x sample) float64 { return x.heap }, 0, false)
	row("descriptors", func(x sample) float64 { return x.descriptors }, 0, true)
	row("sockets", func(x sample) float64 { return x.sockets }, 0, true)
	row("goroutines", func(x sample) float64 { return x.goroutines }, 0, true)
	row("threads", func(x sample) float64 { return x.threads }, 0, false)
	row("connections", func(x sample) float64 { return x.connections }, 0, false)
	_ = w.Flush()
	// Pipes stay in the library's pool for the next splice, until the collector
	// has run twice.
	if after.sockets > before.sockets+10 || after.goroutines > before.goroutines+20 {
		problems = append(problems, fmt.Errorf("after the load %.0f sockets and %.0f goroutines are left of it", after.sockets-before.sockets, after.goroutines-before.goroutines))
	}
	return errors.Join(problems...)
}

func mean(v []float64) (m float64) {
	for _, x := range v {
		m += x / float64(len(v))
	}
	return m
}
