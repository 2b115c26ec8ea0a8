//go:build linux

package guard

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/guard/egress"
)

// TestResolvConfChanges: a machine on another network has other resolvers, which
// the guard asks from the next look on; a file that can't be read names none.
func TestResolvConfChanges(t *testing.T) {
	name := filepath.Join(t.TempDir(), "resolv.conf")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	server := func(s string) []netip.AddrPort {
		return []netip.AddrPort{netip.AddrPortFrom(netip.MustParseAddr(s), 53)}
	}
	one, two := server("127.0.0.53"), server("127.0.0.54")
	write("nameserver 127.0.0.53\n")
	f, err := openResolvFile(name)
	if err != nil || !slices.Equal(f.current(), one) {
		t.Fatal(f.current(), err)
	}
	upstream := egress.NewUpstream(&egress.Local{})
	upstream.Replace(nil, one)
	f.changed = upstream.Replace
	clock := time.Now()
	f.now = func() time.Time { return clock }
	expect := func(what string, want []netip.AddrPort) {
		t.Helper()
		if got := f.current(); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	write("nameserver 127.0.0.54\n")
	expect("within a second", one)
	clock = clock.Add(resolvLook)
	expect("written in place", two)
	// Replaced, with the size and the time of the one before.
	st, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	other := name + ".new"
	if err := os.WriteFile(other, []byte("nameserver 127.0.0.53\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(other, st.ModTime(), st.ModTime()); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(other, name); err != nil {
		t.Fatal(err)
	}
	clock = clock.Add(resolvLook)
	expect("replaced", one)
	if _, err := upstream.Dial(t.Context(), "udp", two[0]); err == nil {
		t.Error("the resolver of before is dialled")
	}
	if c, err := upstream.Dial(t.Context(), "udp", one[0]); err != nil {
		t.Error(err)
	} else {
		c.Close()
	}
	if !upstream.Has(two[0].Addr()) || !upstream.Has(one[0].Addr()) {
		t.Error("a resolver is open to workers")
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	clock = clock.Add(resolvLook)
	expect("gone", nil)
	if err := os.Mkdir(name, 0o755); err != nil {
		t.Fatal(err)
	}
	clock = clock.Add(resolvLook)
	expect("unreadable", nil)
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	write("nameserver 127.0.0.54\n")
	clock = clock.Add(-time.Hour) // the clock was set back
	expect("there again", two)
}
