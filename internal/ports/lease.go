package ports

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/llmdo/workshop/internal/lib/sortfunc"
)

// Lease is a port of this machine that a worker's port has: a number that the file names,
// or one that was chosen.
type Lease struct {
	Key
	Port uint16 `json:"port"`
	// Host is the address that it is for; empty: a lease of an earlier version.
	Host string `json:"host,omitempty"`
	// Since is when the worker's port first had the number; zero: an earlier version
	// didn't note it.
	Since time.Time `json:"since,omitzero"`
	// Reserved: the file names the number. Several files may name one.
	Reserved bool `json:"reserved,omitempty"`
	// Used: the workshop came up with it, so that it is never exchanged.
	Used bool `json:"used,omitempty"`
}

// loopback is where a port is published unless its file says otherwise (B10).
var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// Address is where the port is published.
func (l Lease) Address() netip.AddrPort {
	at, err := netip.ParseAddr(l.Host)
	if err != nil {
		at = loopback
	}
	return netip.AddrPortFrom(at, l.Port)
}

// Meet reports whether two programs can't listen on both addresses: they are the same, or
// one is all of the other's family.
func Meet(a, b netip.AddrPort) bool {
	x, y := a.Addr(), b.Addr()
	return a.Port() == b.Port() && x.Is4() == y.Is4() && (x == y || x.IsUnspecified() || y.IsUnspecified())
}

// parse reads the registry's file.
func parse(data []byte) (all []Lease, err error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&all); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("trailing data after the leases")
	}
	seen := make(map[Key]bool, len(all))
	for i := range all {
		l := &all[i]
		if dir, err := strconv.Unquote(l.Dir); err == nil {
			l.Dir = dir
		}
		if err := l.check(); err != nil {
			return nil, fmt.Errorf("lease %d: %w", i+1, err)
		}
		if seen[l.Key] {
			return nil, fmt.Errorf("lease %d: the same port of a worker is there twice", i+1)
		}
		seen[l.Key] = true
	}
	return all, nil
}

// check refuses what no version of this program writes.
func (l *Lease) check() error {
	switch _, err := netip.ParseAddr(l.Host); {
	case !filepath.IsAbs(l.Dir):
		return errors.New("its directory isn't absolute")
	case l.Project == "" || l.Worker == "":
		return errors.New("it has no project or no worker")
	case l.Port == 0 || l.Target == 0:
		return errors.New("it has no port")
	case l.Host != "" && err != nil:
		return fmt.Errorf("%q is not an IP address", l.Host)
	}
	return nil
}

// format is the text of the registry's file.
func format(all []Lease) ([]byte, error) {
	all = slices.Clone(all)
	for i := range all { // JSON has no other bytes; an absolute path has no quote first
		if !utf8.ValidString(all[i].Dir) {
			all[i].Dir = strconv.QuoteToASCII(all[i].Dir)
		}
	}
	b, err := json.Marshal(all)
	return append(b, '\n'), err
}

// Free reports whether a number may be given to a port.
type Free func(Key, uint16) bool

// With returns the leases with a chosen one for each key, and the numbers by key. A lease
// that isn't used yet is exchanged if another has its number, or if it isn't free and not
// held by its own project; held may be nil. No number is chosen that another lease has,
// reserved or chosen.
func With(leases []Lease, keys []Key, free Free, held func(uint16) bool) (all []Lease, numbers map[Key]uint16, err error) {
	all, numbers = slices.Clone(leases), make(map[Key]uint16, len(keys))
	taken, shared, at := make(map[uint16]bool, len(all)), map[uint16]bool{}, make(map[Key]int, len(all))
	for i, l := range all {
		shared[l.Port] = taken[l.Port]
		taken[l.Port], at[l.Key] = true, i
	}
	for _, k := range keys {
		i, leased := at[k]
		if leased && !all[i].Reserved && (all[i].Used || !shared[all[i].Port] && (free(k, all[i].Port) || held != nil && held(all[i].Port))) {
			numbers[k] = all[i].Port
			continue
		}
		n, err := choose(k, taken, func(n uint16) bool { return free(k, n) })
		if err != nil {
			return nil, nil, err
		}
		if !leased {
			i, all = len(all), append(all, Lease{})
			at[k] = i
		}
		all[i] = Lease{Key: k, Port: n}
		numbers[k], taken[n] = n, true
	}
	return all, numbers, nil
}

// Note adds the leases of a project that is about to come up, with the time: those that
// its file reserves, and what is new of the chosen ones. A number that it was up with
// stays until [Use].
func Note(leases, want []Lease, now time.Time) []Lease {
	leases = slices.Clone(leases)
	for _, w := range want {
		i := slices.IndexFunc(leases, func(l Lease) bool { return l.Key == w.Key })
		switch {
		case i < 0:
			w.Since = second(now)
			leases = append(leases, w)
		case !leases[i].Used || leases[i].Port == w.Port:
			leases[i] = leases[i].renewed(w, now)
		}
	}
	return leases
}

// renewed is the lease as the project wants it now. The time is that of the number.
func (l Lease) renewed(w Lease, now time.Time) Lease {
	w.Used, w.Since = l.Used, l.Since
	if l.Port != w.Port || l.Since.IsZero() {
		w.Since = second(now)
	}
	return w
}

// second is a time as the file has it.
func second(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }

// Use marks the leases that a project came up with as used, and gives up those of its
// other ports.
func Use(leases []Lease, dir, project string, want []Lease, now time.Time) []Lease {
	wanted := func(k Key) int { return slices.IndexFunc(want, func(w Lease) bool { return w.Key == k }) }
	leases = slices.DeleteFunc(slices.Clone(leases), func(l Lease) bool {
		return l.Dir == dir && l.Project == project && wanted(l.Key) < 0
	})
	leases = Note(leases, want, now)
	for i := range leases {
		if j := wanted(leases[i].Key); j >= 0 {
			leases[i] = leases[i].renewed(want[j], now)
			leases[i].Used = true
		}
	}
	return leases
}

// Others are the leases of other ports by which programs would meet at the address of l.
func Others(leases []Lease, l Lease) (out []Lease) {
	for _, other := range leases {
		if other.Key != l.Key && Meet(other.Address(), l.Address()) {
			out = append(out, other)
		}
	}
	sortfunc.Stable(out, func(a, b Lease) int {
		return cmp.Or(cmp.Compare(a.Dir, b.Dir), cmp.Compare(a.Project, b.Project), cmp.Compare(a.Worker, b.Worker), cmp.Compare(a.Target, b.Target))
	})
	return out
}
