package events

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/dev/testutil"
)

type out struct {
	mu sync.Mutex
	b  strings.Builder
}

func (o *out) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(b)
}

func (o *out) lines(t *testing.T) (lines []map[string]any, sum float64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	sc := bufio.NewScanner(strings.NewReader(o.b.String()))
	for sc.Scan() {
		var m map[string]any
		if err := json.Unmarshal(sc.Bytes(), &m); err != nil {
			t.Fatalf("%s: %v", sc.Text(), err)
		}
		lines = append(lines, m)
		sum += m["count"].(float64)
	}
	return lines, sum
}

func TestEqualEventsAreJoinedAndCountedExactly(t *testing.T) {
	o := &out{}
	s := NewSink(o, func(room string) []string { return []string{"of-" + room} })
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 1000 {
				s.Add(Event{Room: "r", Kind: DNS, Name: fmt.Sprint("n", i%5), Verdict: Deny, Reason: "x"})
			}
		})
	}
	wg.Wait()
	s.Close()
	lines, sum := o.lines(t)
	if sum != 8000 || len(lines) > 40 {
		t.Errorf("%d lines, counts add up to %v", len(lines), sum)
	}
	if w := fmt.Sprint(lines[0]["workers"]); w != "[of-r]" {
		t.Errorf("workers %s", w)
	}
}

func TestFirstEventIsWrittenAtOnce(t *testing.T) {
	o := &out{}
	s := NewSink(o, func(string) []string { return nil })
	defer s.Close()
	s.Add(Event{Room: "r", Kind: TLS, Verdict: Deny, Reason: "x"})
	for start := time.Now(); time.Since(start) < Window/2; time.Sleep(time.Millisecond) {
		if lines, _ := o.lines(t); len(lines) == 1 {
			return
		}
	}
	t.Error("not written")
}

func TestTooManyDifferentEventsAreStillCounted(t *testing.T) {
	o := &out{}
	s := NewSink(o, func(string) []string { return nil })
	for i := range 3 * maxKeys {
		s.Add(Event{Room: "r", Kind: DNS, Name: fmt.Sprint(i), Verdict: Deny, Reason: "x"})
	}
	s.Add(Event{Room: "quiet", Kind: DNS, Name: "n", Verdict: Deny, Reason: "x"})
	s.Close()
	lines, sum := o.lines(t)
	if sum != 3*maxKeys+1 || len(lines) > maxKeys+10 {
		t.Errorf("%d lines, counts add up to %v", len(lines), sum)
	}
}

// A reader of the guard's output that has stopped never stops a connection.
func TestStalledOutputDoesNotBlock(t *testing.T) {
	r, w := io.Pipe() // nobody reads yet
	s := NewSink(w, func(string) []string { return nil })
	start := testutil.Now()
	for i := range 10_000 {
		s.Add(Event{Room: "r", Kind: DNS, Name: fmt.Sprint(i % 3000), Verdict: Deny, Reason: "x"})
	}
	if d := testutil.Since(start); d > time.Second {
		t.Errorf("Add took %s", d)
	}
	sum := make(chan float64)
	go func() {
		o := &out{}
		io.Copy(o, r)
		_, n := o.lines(t)
		sum <- n
	}()
	s.Close()
	w.Close()
	if n := <-sum; n != 10_000 {
		t.Errorf("counts add up to %v", n)
	}
}

// What repeats within the window is written when somebody asks, and a stalled
// reader of the output doesn't hold who asks.
func TestFlush(t *testing.T) {
	o := &out{}
	s := NewSink(o, func(string) []string { return nil })
	defer s.Close()
	e := Event{Room: "r", Kind: DNS, Verdict: Deny, Reason: "x"}
	start := time.Now()
	for n := 1; n <= 5; n++ {
		s.Add(e)
		s.Flush(t.Context())
		if _, sum := o.lines(t); sum != float64(n) {
			t.Fatalf("%v events are written, want %d", sum, n)
		}
	}
	if d := time.Since(start); d > Window/2 {
		t.Errorf("took %v", d)
	}
	r, w := io.Pipe() // nobody reads
	stalled := NewSink(w, func(string) []string { return nil })
	stalled.Add(e)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	stalled.Flush(ctx)
	stalled.Flush(ctx)
	r.Close()
	stalled.Close()
}

// Every reason of the guard is explained to the person who reads it.
func TestReasonsAreExplained(t *testing.T) {
	for _, reason := range []string{
		ReasonNoSNI, ReasonECH, ReasonNotTLS, ReasonMalformed, ReasonHostHeader, ReasonBusy, ReasonOtherName, ReasonOwn, ReasonUpstream,
		ReasonGateway, ReasonOnLink, ReasonOverflow, ReasonKernelLost, ReasonUnsupported, ReasonLocalUnsure,
		ReasonUpload,
	} {
		if firewall.Why(reason, "", "") == "" {
			t.Errorf("%s isn't explained", reason)
		}
	}
}

// Ends are joined with the sums of what they carried.
func TestEndsAddUp(t *testing.T) {
	o := &out{}
	s := NewSink(o, func(string) []string { return nil })
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() {
			for range 100 {
				s.Add(Event{Room: "r", Kind: TLS, Verdict: End, Name: "n", Reason: firewall.ReasonAllowed, BytesUp: uint64(i), BytesDown: 1 << 40})
			}
		})
	}
	wg.Wait()
	s.Close()
	lines, sum := o.lines(t)
	up, down := 0.0, 0.0
	for _, l := range lines {
		n, _ := l["bytes_up"].(float64)
		up += n
		down += l["bytes_down"].(float64)
	}
	if sum != 1000 || up != 4500 || down != 1000*(1<<40) || len(lines) > 5 {
		t.Errorf("%d lines, %v ends, %v up, %v down", len(lines), sum, up, down)
	}
}

// What was let through doesn't crowd out what was refused, whatever a worker
// does.
func TestDenialsKeepTheirShare(t *testing.T) {
	o := &out{}
	s := NewSink(o, func(string) []string { return nil })
	for i := range 5 * maxKeys {
		s.Add(Event{Room: "r", Kind: TCP, Port: uint16(i), Verdict: Allow, Reason: firewall.ReasonOpen})
		s.Add(Event{Room: "r", Kind: TCP, Port: uint16(i), Verdict: End, Reason: firewall.ReasonOpen})
	}
	s.Add(Event{Room: "r", Kind: TLS, Name: "evil.example.net", Verdict: Deny, Reason: "x"})
	s.Close()
	lines, sum := o.lines(t)
	written := 0.0
	denied := false
	for _, l := range lines {
		denied = denied || l["name"] == "evil.example.net"
		if l["reason"] != ReasonOverflow {
			written += l["count"].(float64)
		}
	}
	if !denied || sum != 10*maxKeys+1 || len(lines) > maxCarried+10 {
		t.Errorf("denial written: %v; %d lines, counts add up to %v", denied, len(lines), sum)
	}
	if d := s.Dropped(); float64(d) != sum-written {
		t.Errorf("%d dropped, want %v", d, sum-written)
	}
}

func TestDropped(t *testing.T) {
	s := NewSink(broken{}, func(string) []string { return nil })
	s.AddN(Event{Room: "r", Kind: Kernel, Verdict: Deny, Reason: ReasonKernelLost}, 7)
	if d := s.Dropped(); d < 7 {
		t.Errorf("%d dropped", d)
	}
	s.Add(Event{Room: "r", Kind: DNS, Verdict: Deny, Reason: "x"})
	s.Close()
	if d := s.Dropped(); d != 7+1 {
		t.Errorf("%d dropped", d)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// A line that stands for several says when the last one was, not when it was
// written: who asks what was refused since a moment must not get what was before.
func TestTimeIsOfTheLastEvent(t *testing.T) {
	o := &out{}
	s := NewSink(o, func(string) []string { return nil })
	e := Event{Room: "r", Kind: DNS, Verdict: Deny, Reason: "x"}
	s.Add(e)
	for lines, _ := o.lines(t); len(lines) == 0; lines, _ = o.lines(t) {
		time.Sleep(time.Millisecond)
	}
	s.Add(e)
	after := time.Now()
	for lines, _ := o.lines(t); len(lines) == 1; lines, _ = o.lines(t) {
		time.Sleep(time.Millisecond)
	}
	s.Close()
	lines, _ := o.lines(t)
	if at, err := time.Parse(time.RFC3339Nano, lines[1]["time"].(string)); err != nil || at.After(after) {
		t.Errorf("the event was before %v, the line says %v (%v)", after, at, err)
	}
}

// What was denied, or failed, is known as soon as it was added, also what isn't written yet or
// again, each once; a flood costs the oldest, and no other room's (B28).
func TestFailed(t *testing.T) {
	r, w := io.Pipe() // nobody reads
	s := NewSink(w, func(string) []string { return nil })
	defer s.Close()
	defer r.Close()
	names := func(room string, since time.Time) (list []string) {
		for _, l := range s.Failed(room, since) {
			list = append(list, l.Name)
		}
		return list
	}
	add := func(room, name string) { s.Add(Event{Room: room, Kind: DNS, Name: name, Verdict: Deny, Reason: "x"}) }
	add("r", "before")
	add("r", "again")
	time.Sleep(time.Millisecond)
	began := time.Now()
	s.Add(Event{Room: "r", Kind: DNS, Name: "allowed", Verdict: Allow, Reason: "x"})
	add("r", "one")
	add("other", "two")
	s.Add(Event{Room: "r", Kind: DNS, Name: "unresolved", Verdict: Note, Reason: ReasonUnresolved})
	s.Add(Event{Room: "r", Kind: DNS, Name: "mismatch", Verdict: Note, Reason: ReasonMismatch})
	add("r", "again")
	add("r", "one")
	if got, want := names("r", began), []string{"unresolved", "again", "one"}; !slices.Equal(got, want) {
		t.Errorf("denied since then: %q, want %q", got, want)
	}
	if got, want := names("r", time.Time{}), []string{"before", "unresolved", "again", "one"}; !slices.Equal(got, want) {
		t.Errorf("denied: %q, want %q", got, want)
	}
	for i := range 10 * maxRecent {
		add("r", fmt.Sprint("n", i))
		add("r", "one")
	}
	got := names("r", began)
	if len(got) < maxRecent || len(got) > 2*maxRecent || got[len(got)-1] != "one" || got[len(got)-2] != fmt.Sprint("n", 10*maxRecent-1) {
		t.Errorf("%d after a flood, the last %q", len(got), got[len(got)-2:])
	}
	if got := names("other", began); !slices.Equal(got, []string{"two"}) {
		t.Errorf("the other room's: %q", got)
	}
}
