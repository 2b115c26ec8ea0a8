package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/guard/events"
)

// Lines as the guard writes them; the last one is cut off.
const guardLog = `READY
{"time":"2026-11-21T10:00:00.5Z","room":"room","workers":["w"],"kind":"dns","name":"a.example.org","port":53,"protocol":"dns","verdict":"deny","reason":"not-allowed","suggest":"a.example.org","why":"no line of network.allow has it","count":1}
{"time":"2026-11-21T10:00:00.6Z","room":"room","workers":["w"],"kind":"proxy","name":"a.example.org","port":443,"protocol":"tcp","verdict":"deny","reason":"not-allowed","suggest":"a.example.org","count":2}
{"time":"2026-11-21T10:00:01Z","room":"room","workers":["w"],"kind":"dns","name":"a.example.org","port":53,"protocol":"dns","verdict":"deny","reason":"not-allowed","suggest":"a.example.org","count":7}
{"time":"2026-11-21T10:00:01Z","room":"room","workers":["w"],"kind":"proxy","name":"a.example.org","port":22,"protocol":"tcp","verdict":"deny","reason":"port","suggest":"a.example.org:22","count":1}
{"time":"2026-11-21T10:00:02Z","room":"shared","workers":["v","w"],"kind":"kernel","address":"2001:db8::1","port":53,"protocol":"udp","verdict":"deny","reason":"unsupported","count":1}
{"time":"2026-11-21T10:00:02Z","room":"other","workers":["v"],"kind":"dns","name":"v.example.org","port":53,"protocol":"dns","verdict":"deny","reason":"not-allowed","suggest":"v.example.org","count":1}
panic: not an event
{"time":"2026-11-21T10:00:03Z","room":"room","workers":["w"],"kind":"tls","name":"ok.example.org","address":"198.51.100.10","port":443,"protocol":"tcp","verdict":"allow","reason":"allowed","rule":"workshop.yaml:9","count":1}
{"time":"2026-11-21T10:00:04Z","room":"room","workers":["w"],"kind":"kernel","address":"198.51.100.66","port":9000,"protocol":"tcp","verdict":"deny","reason":"not-allowed","suggest":"{cidr: 198.51.100.66/32, port: 9000}","count":1}
{"time":"2026-11-21T10:00:05Z","room":"room","workers":["w"],"kind":"http","name":"x\u001b[2J\u202e","port":80,"protocol":"tcp","verdict":"deny","reason":"invalid","count":1}
{"time":"2026-11-21T10:00:06Z","room":"room","workers":["w"],"kind":"tls","name":"ok.example.org","address":"198.51.100.10","port":443,"protocol":"tcp","verdict":"end","reason":"allowed","bytes_up":1200,"bytes_down":5300000,"count":1}
{"time":"2026-11-21T10:00:07Z","workers":["w"],"kind":`

func readLog(t *testing.T, log string, chunk int, each func([]byte, events.Line) error) {
	t.Helper()
	r := &eventReader{each: each}
	for len(log) > 0 {
		n := min(chunk, len(log))
		if _, err := io.WriteString(r, log[:n]); err != nil {
			t.Fatal(err)
		}
		log = log[n:]
	}
}

// However the log arrives, the events are the guard's own lines, byte by byte;
// what is no event or too long is skipped, and what follows is read.
func TestEventsAreReadWhole(t *testing.T) {
	want := ""
	for line := range strings.Lines(guardLog) {
		if strings.HasPrefix(line, "{") && strings.HasSuffix(line, "}\n") {
			want += line
		}
	}
	long := `{"time":"2026-11-21T10:00:00Z","verdict":"deny","name":"` + strings.Repeat("x", maxEventLine) + "\"}\n"
	for _, chunk := range []int{1, 7, 4096, 1 << 20} {
		got := ""
		readLog(t, long+guardLog, chunk, func(raw []byte, _ events.Line) error { got += string(raw); return nil })
		if got != want {
			t.Errorf("in pieces of %d: %q", chunk, got)
		}
	}
}

// With the engine's time before each line, the times of the whole log are known.
func TestStampedEvents(t *testing.T) {
	n := 0
	r := &eventReader{stamped: true, each: func([]byte, events.Line) error { n++; return nil }}
	io.WriteString(r, "2026-11-21T09:00:00.000000001Z READY\n2026-11-21T10:00:00.5Z "+strings.Split(guardLog, "\n")[1]+"\nno time\n")
	if n != 1 || r.first.Minute() != 0 || r.first.Nanosecond() != 1 || r.last.Hour() != 10 {
		t.Errorf("%d events, from %v to %v", n, r.first, r.last)
	}
}

// Only this worker's refusals count, each once, a name that was looked up and
// then connected to with its port; what a worker wrote into a name can't write
// to a terminal (B28).
func TestRefusals(t *testing.T) {
	r := refusals{worker: "w"}
	readLog(t, guardLog, 4096, func(_ []byte, l events.Line) error { r.add(l); return nil })
	var got []string
	for _, x := range r.list {
		got = append(got, x.target+" "+x.reason+" | "+x.line+" | "+x.command)
	}
	want := []string{
		"a.example.org:443 not-allowed | a.example.org | workshop firewall allow a.example.org --worker w",
		"a.example.org:22 port | a.example.org:22 | workshop firewall allow a.example.org:22 --worker w",
		"[2001:db8::1]:53/udp unsupported |  | ",
		"198.51.100.66:9000 not-allowed | {cidr: 198.51.100.66/32, port: 9000} | workshop firewall allow 198.51.100.66:9000 --worker w",
		`x\x1b[2J\u202e:80 invalid |  | `,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// B60: a worker that is refused very many names doesn't hold up who looks at them.
func TestRefusalsOfManyNames(t *testing.T) {
	r := refusals{worker: "w"}
	began := time.Now()
	const n = 60_000
	for i := range n {
		l := events.Line{Verdict: events.Deny, Reason: "not-allowed", Workers: []string{"w"}, Name: fmt.Sprintf("n%d.example.org", i), Protocol: "dns"}
		r.add(l)
		r.add(l)
	}
	if took := time.Since(began); took > 5*time.Second || len(r.list) != n {
		t.Errorf("%d in %v", len(r.list), took)
	}
}

// golden compares with testdata/golden/NAME.txt, and rewrites it with -update.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", "golden", name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is not what comes out; -update rewrites it\n%s", file, got)
	}
}

// What a worker sends doesn't decide what else a pasted command opens: a hello
// with ECH leads to --ech, and not to private addresses.
func TestOpeningOfECH(t *testing.T) {
	o, ok := openingOf(events.Line{
		Room: "room", Workers: []string{"w"}, Kind: "tls", Name: "a.example.org", Port: 443, Protocol: "tcp",
		Verdict: events.Deny, Reason: events.ReasonECH, Suggest: "{host: a.example.org, ech: allow}",
	}, "")
	if want := "workshop firewall allow a.example.org:443 --ech --worker w"; !ok || o.command != want {
		t.Errorf("%q, want %q", o.command, want)
	}
}
