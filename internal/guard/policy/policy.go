// Package policy holds the policy that the guard enforces: read from a
// directory, compiled for each room, swapped as a whole.
package policy

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/llmdo/workshop/firewall"
)

// File is the policy's name in its directory. The directory is mounted, not the
// file: a bind mount of a file keeps the old one when it is replaced.
const File = "policy.json"

// Read reads and parses the policy in dir. On any error the guard serves nobody.
func Read(dir string, lookup func(string) (string, bool)) (p *firewall.Policy, d Digest, err error) {
	f, err := os.Open(filepath.Join(dir, File))
	if err != nil {
		return nil, d, err
	}
	defer f.Close()
	// One byte more than the parser accepts, so that it reports a file too large.
	data, err := io.ReadAll(io.LimitReader(f, firewall.MaxPolicyBytes+1))
	if err != nil {
		return nil, d, err
	}
	if p, d, err = Parse(data, lookup); err != nil {
		return nil, d, fmt.Errorf("%s: %w", f.Name(), err)
	}
	return p, d, nil
}

// Digest identifies a policy by the file, with its templates, and by their values.
type Digest struct {
	File   string // [firewall.Digest]
	Values string // [firewall.ValuesDigest]
}

// Parse reads a policy and fills its templates from the environment.
func Parse(data []byte, lookup func(string) (string, bool)) (p *firewall.Policy, d Digest, err error) {
	file, err := firewall.ParsePolicy(data)
	if err != nil {
		return nil, d, err
	}
	if p, err = firewall.Expand(file, lookup); err != nil {
		return nil, d, err
	}
	return p, Digest{firewall.Digest(file), firewall.ValuesDigest(file, p)}, nil
}

// Room is what one room may reach, compiled.
type Room struct {
	firewall.RoomPolicy
	Matcher *firewall.Matcher
}

// State is one generation of the policy. It is immutable.
type State struct {
	Generation uint64
	Policy     *firewall.Policy
	rooms      map[string]*Room
}

// closed is the policy of a room that the policy doesn't contain.
var closed = &Room{Matcher: firewall.RoomPolicy{}.Compile()}

// Store holds the current State; its zero value has no rooms.
type Store struct{ current atomic.Pointer[State] }

// Swap makes p the policy from the next decision on.
func (s *Store) Swap(p *firewall.Policy) *State {
	n := &State{Policy: p, rooms: make(map[string]*Room, len(p.Rooms))}
	for _, r := range p.Rooms {
		n.rooms[r.Room] = &Room{RoomPolicy: r, Matcher: r.Compile()}
	}
	for {
		old := s.current.Load()
		if n.Generation = 1; old != nil {
			n.Generation = old.Generation + 1
		}
		if s.current.CompareAndSwap(old, n) {
			return n
		}
	}
}

// Current returns the current policy; nil before the first Swap.
func (s *Store) Current() *State { return s.current.Load() }

// Room returns the current policy of a room. An unknown room may reach nothing.
func (s *Store) Room(name string) *Room {
	if st := s.current.Load(); st != nil {
		if r := st.rooms[name]; r != nil {
			return r
		}
	}
	return closed
}
