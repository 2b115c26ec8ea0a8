package kept

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/room/handover"
)

// memory is a file of which a guard that is killed writes left more bytes.
type memory struct {
	b    []byte
	left int
}

func newMemory() *memory { return &memory{make([]byte, handover.KeptSize), 1 << 30} }

func (m *memory) ReadAt(b []byte, at int64) (int, error) { return copy(b, m.b[at:]), nil }

var errKilled = errors.New("killed")

func (m *memory) WriteAt(b []byte, at int64) (int, error) {
	n := copy(m.b[at:], b[:min(len(b), m.left)])
	if m.left -= n; n < len(b) {
		return n, errKilled
	}
	return n, nil
}

func deny(t testing.TB, host string, ends time.Duration) Deny {
	t.Helper()
	h, err := firewall.ParseHostPattern(host)
	if err != nil {
		t.Fatal(err)
	}
	return Deny{Live: firewall.Live{Deny: true, Rule: firewall.Rule{Host: h, Ports: []firewall.PortRange{firewall.AllPorts}, Line: firewall.LiveLine}}, Ends: ends}
}

func budgets(n, times int) (out []Spent) {
	for i := range n {
		s := Spent{Rule: fmt.Sprintf("%022d", i), Upload: firewall.Budget{Bytes: 1 << 40, Per: time.Hour}, At: 1 << 30}
		for j := range times {
			s.Sent = append(s.Sent, [2]int64{s.At - int64(times-1-j), 1 << 33})
		}
		out = append(out, s)
	}
	return out
}

// TestKilledWhileWriting: a guard that is killed at any byte of a write leaves
// the old state or the new one, and the next guard goes on from there.
func TestKilledWhileWriting(t *testing.T) {
	states := []State{
		{Denies: []Deny{deny(t, "one.example", 0)}},
		{Denies: []Deny{deny(t, "one.example", 0), deny(t, "two.example", time.Hour)}, Budgets: budgets(1, 2)},
		{Denies: []Deny{deny(t, "three.example", time.Minute)}},
		{},
	}
	m := newMemory()
	s := slots{store: m}
	if err := s.write(states[0]); err != nil {
		t.Fatal(err)
	}
	for i, next := range states[1:] {
		old := states[i]
		for n, whole := 0, false; !whole; n++ {
			killed := &memory{bytes.Clone(m.b), n}
			w := s
			w.store = killed
			err := w.write(next)
			whole = err == nil
			if !whole && !errors.Is(err, errKilled) {
				t.Fatal(err)
			}
			killed.left = 1 << 30
			r := slots{store: killed}
			got, err := r.read()
			if err != nil || !reflect.DeepEqual(got, next) && (whole || !reflect.DeepEqual(got, old)) {
				t.Fatalf("state %d, killed after %d bytes: got %+v, %v", i+1, n, got, err)
			}
			// What the next guard writes is what the one after it reads.
			if n%97 != 0 {
				continue
			}
			if err := r.write(states[0]); err != nil {
				t.Fatal(err)
			}
			again := slots{store: killed}
			if got, err := again.read(); err != nil || !reflect.DeepEqual(got, states[0]) {
				t.Fatalf("state %d, written after %d bytes: got %+v, %v", i+1, n, got, err)
			}
		}
		if err := s.write(next); err != nil {
			t.Fatal(err)
		}
	}
}

// TestUnreadable: nothing that isn't whole and understood is taken for a state.
func TestUnreadable(t *testing.T) {
	good := newMemory()
	s := slots{store: good}
	for _, state := range []State{{Denies: []Deny{deny(t, "one.example", 0)}}, {Budgets: budgets(1, 1)}} {
		if err := s.write(state); err != nil {
			t.Fatal(err)
		}
	}
	// newest changes the payload of the newest slot, and makes it valid again.
	put := func(b []byte, payload string, v byte) {
		header := b[slotSize : slotSize+headerSize]
		header[len(magic)] = v
		copy(b[slotSize+headerSize:], payload)
		binary.LittleEndian.PutUint32(header[16:], uint32(len(payload)))
		binary.LittleEndian.PutUint32(header[20:], checksum(header, []byte(payload)))
	}
	for _, tt := range []struct {
		name   string
		change func(b []byte)
		want   string
	}{
		{"nothing", func(b []byte) { clear(b) }, "no slot has a valid checksum"},
		{"both are torn", func(b []byte) { b[headerSize]++; b[slotSize+headerSize]++ }, "no slot has a valid checksum"},
		{"a later version", func(b []byte) { put(b, "{}", 2) }, "version 2, want 1"},
		{"not JSON", func(b []byte) { put(b, "{", 1) }, "unexpected EOF"},
		{"nothing in it", func(b []byte) { put(b, "", 1) }, "EOF"},
		{"trailing data", func(b []byte) { put(b, "{}{}", 1) }, "trailing data"},
		{"unknown field", func(b []byte) { put(b, `{"allows":[]}`, 1) }, "unknown field"},
		{"an allow", func(b []byte) { put(b, `{"denies":[{"rule":{"host":"one.example","ports":["443"]}}]}`, 1) }, "not a live deny"},
		{"no rule", func(b []byte) { put(b, `{"denies":[{"deny":true,"rule":{"ports":["443"]}}]}`, 1) }, "live deny: "},
		{"no budget", func(b []byte) { put(b, `{"budgets":[{"rule":"x","upload":"","at":1,"sent":[]}]}`, 1) }, "not a budget"},
		{"a length that is none", func(b []byte) {
			for _, at := range []int{16, slotSize + 16} {
				binary.LittleEndian.PutUint32(b[at:], 1<<31)
			}
		}, "no slot has a valid checksum"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := &memory{bytes.Clone(good.b), 1 << 30}
			tt.change(m.b)
			r := slots{store: m}
			if got, err := r.read(); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %+v, %v, want an error with %q", got, err, tt.want)
			}
		})
	}
}

// TestFull: what a room may have at most fits, with coarser times, and frees
// nothing earlier; more denies are refused.
func TestFull(t *testing.T) {
	var denies []Deny
	for i := 0; CheckDenies(denies) == nil; i++ {
		denies = append(denies, deny(t, fmt.Sprintf("host-%d.%s.example", i, strings.Repeat("x", 60)), 1<<60))
	}
	if err := CheckDenies(denies); !strings.Contains(err.Error(), "workshop.yaml") || len(denies) < 256 {
		t.Errorf("%d denies: %v", len(denies), err)
	}
	full := State{Denies: denies[:len(denies)-1], Budgets: budgets(firewall.MaxBudgets, 61)}
	for i := range full.Budgets {
		full.Budgets[i].Upload.Bytes = 1<<50 - 1
	}
	m := newMemory()
	s := slots{store: m}
	if err := s.write(full); err != nil {
		t.Fatal(err)
	}
	got, err := s.read()
	if err != nil || len(got.Budgets) != firewall.MaxBudgets || !reflect.DeepEqual(got.Denies, full.Denies) {
		t.Fatalf("%d budgets, %v", len(got.Budgets), err)
	}
	if want := [][2]int64{{1 << 30, 61 << 33}}; !reflect.DeepEqual(got.Budgets[7].Sent, want) {
		t.Errorf("got %v, want %v", got.Budgets[7].Sent, want)
	}
	few := State{Denies: full.Denies, Budgets: budgets(maxExact, 61)}
	for i := range few.Budgets {
		few.Budgets[i].Upload.Bytes = 1<<50 - 1
		for j := range few.Budgets[i].Sent {
			few.Budgets[i].Sent[j] = [2]int64{1<<31 + int64(j), 1<<50 - 1}
		}
	}
	if err := s.write(few); err != nil {
		t.Fatal(err)
	}
	if got, err := s.read(); err != nil || !reflect.DeepEqual(got, few) {
		t.Errorf("%d budgets aren't exact: %v", maxExact, err)
	}
}

// FuzzRead reads a file that anybody wrote, with the checksums made right.
func FuzzRead(f *testing.F) {
	for _, s := range []string{`{}`, `{"denies":[{"deny":true,"rule":{"host":"one.example","ports":["443"]},"ends":7}]}`, `{"budgets":[{"rule":"x","upload":"1K/h","at":1,"sent":[[1,1]]}]}`, "null", "[]"} {
		f.Add([]byte(s), []byte{}, uint64(1), uint64(2))
	}
	f.Fuzz(func(t *testing.T, a, b []byte, first, second uint64) {
		m := newMemory()
		for i, x := range []struct {
			payload    []byte
			generation uint64
		}{{a, first}, {b, second}} {
			if len(x.payload) > maxPayload {
				return
			}
			w := slots{store: m, generation: x.generation - 1, next: i}
			if err := w.put(x.payload); err != nil {
				t.Fatal(err)
			}
		}
		s := slots{store: m}
		state, err := s.read()
		if err != nil {
			return
		}
		want, err := state.encode()
		if err != nil || s.write(state) != nil {
			return // no guard wrote that much
		}
		again, err := s.read()
		if err != nil {
			t.Fatalf("%s: %v", want, err)
		}
		if got, err := again.encode(); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%s became %s, %v", want, got, err)
		}
	})
}

func BenchmarkRecord(b *testing.B) {
	for _, n := range []int{1, 10, firewall.MaxBudgets} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := slots{store: newMemory()}
			state := State{Budgets: budgets(n, 61)}
			for b.Loop() {
				if err := s.write(state); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
