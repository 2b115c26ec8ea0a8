package diff

import (
	"cmp"
	"slices"
	"strings"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/lib/sortfunc"
)

// State says how a grant changed.
type State string

// The states, the most dangerous first.
const (
	// Widened: head grants what base doesn't.
	Widened State = "widened"
	// Unknown: whether head grants more can't be decided.
	Unknown State = "unknown"
	// Changed: the two can't be ordered, as an image's digest or a prompt's text.
	Changed State = "changed"
	// Narrowed: base grants what head doesn't.
	Narrowed State = "narrowed"
)

// States returns all states, the most dangerous first.
func States() []State { return []State{Widened, Unknown, Changed, Narrowed} }

// Row is one difference.
type Row struct {
	State State
	// Workers that it is about, in the order of the file; none: the workshop.
	Workers []string
	// Surface is the key of workshop.yaml, or what else is granted: "worker", "lock".
	Surface string
	// Before and After are what base and head grant, in words; empty: nothing.
	Before, After string
	// At is the place in head that causes it, and Was the one in base; a zero Range
	// where there is none.
	At, Was diag.Range
}

// rank orders surfaces within a state, what reaches furthest first.
var rank = []string{"workshop", "gate", "lock", "worker", "isolation", "kernel", "mounts", "secrets", "env", "git_author", "network.mode", "network.allow", "network.deny",
	"network.agents", "network.room", "network.proxy", "network.proxy_credential", "network.dns", "tools", "mcp", "delegates-to", "approvals", "ports", "models", "image", "build"}

func (r *Row) rank() int {
	first, _, _ := strings.Cut(r.Surface, ".")
	for _, name := range []string{r.Surface, first} {
		if i := slices.Index(rank, name); i >= 0 {
			return i
		}
	}
	return len(rank)
}

// sorted joins rows that differ by their workers alone, and orders them: the most
// dangerous first.
func sorted(rows []Row) []Row {
	type key struct {
		state                  State
		surface, before, after string
		at, was                diag.Range
	}
	var out []Row
	seen := map[key]int{}
	for _, r := range rows {
		k := key{r.State, r.Surface, r.Before, r.After, r.At, r.Was}
		if i, ok := seen[k]; ok {
			for _, w := range r.Workers {
				if !slices.Contains(out[i].Workers, w) {
					out[i].Workers = append(out[i].Workers, w)
				}
			}
			continue
		}
		seen[k] = len(out)
		r.Workers = slices.Clone(r.Workers)
		out = append(out, r)
	}
	sortfunc.Stable(out, func(a, b Row) int {
		return cmp.Or(cmp.Compare(slices.Index(States(), a.State), slices.Index(States(), b.State)), cmp.Compare(a.rank(), b.rank()),
			strings.Compare(a.At.Filename, b.At.Filename), cmp.Compare(a.At.Start.Byte, b.At.Start.Byte))
	})
	return out
}

// Count returns the number of rows of a state.
func Count(rows []Row, s State) (n int) {
	for i := range rows {
		if rows[i].State == s {
			n++
		}
	}
	return n
}
