package guard

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/dev/testnet"
	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/dev/threat"
	"github.com/llmdo/workshop/internal/dev/threat/matrix"
	"github.com/llmdo/workshop/internal/probe"
)

var update = flag.Bool("update", false, "write the golden files")

// without is a way to weaken the ruleset: what of its text to replace by what,
// in the form of iptables-save, for one family.
type without struct {
	family   firewall.Family
	old, new string
}

// String names the mutant by what is different.
func (m without) String() string {
	if m.new == "" {
		return fmt.Sprintf("v%d %s", m.family, strings.TrimSpace(m.old))
	}
	return fmt.Sprintf("v%d %s, instead of %s", m.family, strings.TrimSpace(m.new), strings.TrimSpace(m.old))
}

// mutants are all ways to take one thing out of a ruleset: each rule, each
// policy that drops, and of each rule what limits it beside protocol and port.
func mutants(r firewall.Ruleset) (all []without) {
	limits := regexp.MustCompile(` -d \S+| -m conntrack ! --ctstate DNAT`)
	for _, f := range []firewall.Family{firewall.V4, firewall.V6} {
		for line := range strings.Lines(string(r.Text(f))) {
			if strings.HasPrefix(line, "-A ") {
				all = append(all, without{f, line, ""})
			}
			if wider := limits.ReplaceAllString(line, ""); wider != line {
				all = append(all, without{f, line, wider})
			}
			if open := strings.Replace(line, " DROP ", " ACCEPT ", 1); open != line {
				all = append(all, without{f, line, open})
			}
		}
	}
	return all
}

// mutation is a room whose rules are weakened, and the matrix that is to
// notice.
type mutation struct {
	*world
	values map[string]string
	// Its rooms take turns: the guard joins events within a second, so that those
	// of the room's last mutant may be late.
	turns []string
	used  map[string]time.Time
}

// TestRulesetMutants leaves out one thing of a room's rules at a time, and
// expects that the matrix notices: testdata/mutants.txt says what it saw first.
// What it doesn't notice stands in [covered] with what else covers it.
func TestRulesetMutants(t *testing.T) {
	testutil.Require(t, os.Geteuid() == 0, "needs root (network namespaces)")
	queue := make(chan func(*mutation))
	var done sync.WaitGroup
	for range 2 * runtime.NumCPU() {
		m := newMutation(t)
		done.Go(func() {
			for try := range queue {
				try(m)
			}
		})
	}
	all := mutants(mutated)
	noticed := make([]string, len(all))
	queue <- func(m *mutation) {
		if first := m.try(); first != "" {
			t.Errorf("the rules as they are: %s", first)
		}
	}
	for i, mutant := range all {
		queue <- func(m *mutation) { noticed[i] = m.try(mutant) }
	}
	close(queue)
	done.Wait()

	var golden strings.Builder
	listed := 0
	w := buildWorld(t, restricted(t))
	for i, mutant := range all {
		c := covered(mutant)
		switch {
		case noticed[i] == "" && c == nil:
			t.Errorf("%s: nothing notices, and no other defence is named", mutant)
		case noticed[i] != "" && c != nil:
			t.Errorf("%s: listed as covered (%s), but %s", mutant, c.why, noticed[i])
		case c != nil:
			noticed[i] = "covered: " + c.why
			listed++
			c.check(w, mutant)
		}
		fmt.Fprintf(&golden, "%s\n\t%s\n", mutant, noticed[i])
	}
	t.Logf("%d mutants, %d of them covered by something else", len(all), listed)
	path := filepath.Join("testdata", "mutants.txt")
	if *update {
		if err := os.WriteFile(path, []byte(golden.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), golden.String()); diff != "" {
		t.Errorf("%s (-want +got; -update writes it):\n%s", path, diff)
	}
}

// mutated are the rules of newMutation's rooms.
var mutated = firewall.NewRuleset(firewall.RulesetOptions{Ports: []firewall.PortRange{{First: 22, Last: 22}}})

// late is how long an event may be behind.
const late = 2 * time.Second

func newMutation(t *testing.T) *mutation {
	p := restricted(t, "allowed.example.org", "ssh.example.org:22")
	for _, name := range []string{"second", "third"} {
		room := p.Rooms[0]
		room.Room = name
		p.Rooms = append(p.Rooms, room)
	}
	w := newWorld(t, p)
	ca := filepath.Join(w.dir, "ca.pem")
	if err := os.WriteFile(ca, w.in.CA, 0o644); err != nil {
		t.Fatal(err)
	}
	m := &mutation{world: w, values: map[string]string{"ca": ca}, used: map[string]time.Time{}}
	for name, room := range w.rooms {
		m.turns = append(m.turns, name)
		err := room.ns.Do(func() error { return os.WriteFile("/proc/sys/net/ipv4/ping_group_range", []byte("0 2147483647"), 0) })
		if err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// try weakens the rules, makes the tries of the matrix until one sees what it
// must not, and returns that; then the rules are as they were.
func (m *mutation) try(mutants ...without) (noticed string) {
	name := m.turns[0]
	m.turns = append(m.turns[1:], name)
	time.Sleep(time.Until(m.used[name].Add(late)))
	defer func() { m.used[name] = time.Now() }()
	room := m.rooms[name]
	load(m, room.ns, mutants...)
	m.guard.mu.Lock()
	before := len(m.guard.lines)
	m.guard.mu.Unlock()
	events := func() (all []matrix.Event) {
		m.guard.mu.Lock()
		defer m.guard.mu.Unlock()
		for _, e := range m.guard.lines[before:] {
			if e.Room != name {
				continue
			}
			all = append(all, matrix.Event{Kind: e.Kind, Name: e.Name, Address: e.Address, Count: e.Count, Verdict: e.Verdict})
		}
		return all
	}
	first := &firstError{TB: m.TB}
	end := make(chan struct{})
	go func() { // which the first error ends
		defer close(end)
		x := matrix.New(first, threat.Bare, m.in, m.values)
		x.Again = true
		for _, who := range []threat.Identity{threat.Worker, threat.Default} {
			x.Try(who, func(_ bool, lines []string) []probe.Result { return m.intrudeUntil(room, who, lines) }, events)
		}
	}()
	<-end
	return first.brief()
}

// load replaces the rules of a namespace by weakened ones.
func load(t testing.TB, ns *testnet.NS, mutants ...without) {
	for f, program := range map[firewall.Family]string{firewall.V4: "iptables-restore", firewall.V6: "ip6tables-restore"} {
		text := string(mutated.Text(f))
		for _, m := range mutants {
			if m.family == f {
				text = strings.Replace(text, m.old, m.new, 1)
			}
		}
		run(t, ns, text, program)
	}
}

// run runs a program in a namespace.
func run(t testing.TB, ns *testnet.NS, stdin string, args ...string) (stdout string) {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin = strings.NewReader(stdin)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := ns.Start(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		t.Errorf("%s: %v\n%s", args, err, out.String())
	}
	return out.String()
}

// intrudeUntil runs probes like [world.intrude], until one sees what it must
// not.
func (m *mutation) intrudeUntil(room *process, who threat.Identity, lines []string) (results []probe.Result) {
	r, w := io.Pipe()
	cmd, err := m.startIntruder(room.ns, who, lines, w, os.Stderr)
	if err != nil {
		m.Errorf("%s: %v", who, err)
		return nil
	}
	go func() { w.CloseWithError(cmd.Wait()) }()
	for d := json.NewDecoder(r); ; {
		var p probe.Result
		if d.Decode(&p) != nil {
			return results
		}
		if results = append(results, p); !p.OK || p.Millis > 2000 {
			cmd.Process.Kill()
			r.Close()
			return results
		}
	}
}

// firstError is a test that ends with its first error.
type firstError struct {
	testing.TB
	text string
}

func (f *firstError) Errorf(format string, args ...any) {
	f.text = fmt.Sprintf(format, args...)
	runtime.Goexit()
}
func (f *firstError) Fatalf(format string, args ...any) { f.Errorf(format, args...) }
func (f *firstError) Failed() bool                      { return f.text != "" }

// brief is the error without what isn't the same each time.
func (f *firstError) brief() string {
	s := f.text
	if who, rest, ok := strings.Cut(s, ": "); ok {
		name, _, _ := strings.Cut(rest, ": ")
		switch {
		case strings.Contains(rest, "\n\tsaw "):
			_, saw, _ := strings.Cut(rest, "\n\tsaw ")
			seen, want, _ := strings.Cut(saw, " (")
			s = fmt.Sprintf("%s: %s: %s, not %s", who, name, seen, want[strings.LastIndex(want, "want ")+5:])
		case strings.Contains(rest, ": took "):
			s = fmt.Sprintf("%s: %s: too late", who, name)
		case strings.Contains(rest, " denials in the guard's events"):
			s = fmt.Sprintf("%s: %s: not counted in the events", who, name)
		}
	}
	return s
}
