//go:build linux

package probe

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// Result is one line of output.
type Result struct {
	Name     string   `json:"name,omitempty"` // as given by name=
	Probe    string   `json:"probe"`
	Args     []string `json:"args,omitempty"`
	Expected string   `json:"expected,omitempty"`
	// Seen is an errno's name or a word of the probe.
	Seen string `json:"seen"`
	// OK is true when Expected is empty or was met.
	OK     bool   `json:"ok"`
	Detail string `json:"detail,omitempty"`
	// Millis is how long the try took; of repeated tries the longest.
	Millis float64 `json:"ms"`
}

// Main runs the probes of args and returns the exit code.
func Main(args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == childCommand {
		return childMain(args[1:])
	}
	quiet := false
	if len(args) > 0 && args[0] == "-quiet" {
		quiet, args = true, args[1:]
	}
	if len(args) == 0 || args[0] == "help" || args[0] == "-h" || args[0] == "--help" {
		help(stdout)
		if len(args) == 0 {
			return 2
		}
		return 0
	}
	if slices.Equal(args, []string{"-"}) {
		var err error
		if args, err = readProbes(os.Stdin); err != nil {
			fmt.Fprintf(stderr, "workshop-init: error: %v\n", err)
			return 2
		}
	}
	var tries []try
	for _, a := range args {
		t, err := parse(a)
		if err != nil {
			fmt.Fprintf(stderr, "workshop-init: error: probe %q: %v\n", a, err)
			return 2
		}
		tries = append(tries, t)
	}
	code := 0
	out := json.NewEncoder(stdout)
	out.SetEscapeHTML(false)
	for _, t := range tries {
		r := t.run(stdout)
		if !r.OK {
			code = 1
		}
		if !quiet || !r.OK {
			_ = out.Encode(r)
		}
	}
	return code
}

// readProbes reads one probe per line; blank lines and # comments are skipped.
func readProbes(r io.Reader) ([]string, error) {
	var out []string
	s := bufio.NewScanner(r)
	for s.Scan() {
		if line := strings.TrimSpace(s.Text()); line != "" && !strings.HasPrefix(line, "#") {
			out = append(out, line)
		}
	}
	return out, s.Err()
}

// repeatPause is the pause between repetitions by for=: nothing opens for a shorter time,
// and without it a probe would occupy a CPU.
const repeatPause = 2 * time.Millisecond

// run carries out a try, repeatedly with for=.
func (t try) run(stdout io.Writer) Result {
	r := Result{Name: t.args.opts["name"], Probe: t.probe.name, Args: t.args.words, Expected: t.expected}
	t.args.stdout = stdout
	end := time.Now().Add(t.repeat)
	var seen []string
	for {
		start := time.Now()
		s, detail := t.probe.run(t.args)
		r.Millis = max(r.Millis, float64(time.Since(start).Microseconds())/1000)
		if !slices.Contains(seen, s) {
			seen = append(seen, s)
			r.Detail = detail
		}
		if time.Now().After(end) {
			break
		}
		time.Sleep(repeatPause)
	}
	slices.Sort(seen)
	r.Seen = strings.Join(seen, "+")
	r.OK = t.expected == ""
	if !r.OK {
		r.OK = !slices.ContainsFunc(seen, func(s string) bool { return !t.meets(s) })
	}
	return r
}

// meets reports whether one seen value is among the expected ones; an
// alternative that ends in * matches by its beginning.
func (t try) meets(seen string) bool {
	for alt := range strings.SplitSeq(t.expected, "|") {
		if prefix, ok := strings.CutSuffix(alt, "*"); ok && strings.HasPrefix(seen, prefix) || alt == seen {
			return true
		}
	}
	return false
}

func help(w io.Writer) {
	fmt.Fprint(w, "usage: workshop-init probe [-quiet] 'PROBE ARG... [-> EXPECTED[|EXPECTED]...]'...\n\n")
	width := 0
	for _, p := range probes() {
		width = max(width, len(p.name+" "+p.usage))
	}
	for _, p := range probes() {
		fmt.Fprintf(w, "  %-*s  %s\n", width, p.name+" "+p.usage, p.tells)
	}
	fmt.Fprint(w, "\nevery probe: name=TEXT limit=DURATION for=DURATION; those that connect: from=IPV4:PORT, the source (over IPv6 the port); errors are seen by their errno's name, else ERROR\n")
}
