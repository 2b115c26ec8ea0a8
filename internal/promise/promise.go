// Package promise lists the numbered promises of the boundary, and says how
// each engine keeps them. `workshop capabilities`, `validate`, the refusals of
// `up` and docs/security.md are made from it.
//
// It is pure data. What a machine lacks for a promise is found by engines
// (engine.Info).
package promise

import (
	"cmp"
	"slices"
	"strings"
)

// Promise is one numbered promise.
type Promise struct {
	ID    string // "B5"
	Area  Area
	Title string // what holds, in a few words
}

// Area is what a promise is about.
type Area string

// The areas, in the order of the documents.
const (
	Container Area = "The container"
	Network   Area = "The network"
	Decisions Area = "Decisions"
	Input     Area = "Input"
)

// The engines, by the names that --engine takes.
const (
	Docker    = "docker"
	Podman    = "podman"
	Namespace = "namespace"
	Process   = "process"
)

// Engines are all of them, the default first.
func Engines() []string { return []string{Docker, Podman, Namespace, Process} }

// Kinds are what keeps promises in a way of its own: the engines, [GVisor] and [VM].
func Kinds() []string { return append(Engines(), GVisor, VM) }

// Tests are those that show a promise.
func Tests(id string) []string {
	return slices.Concat(Explain(id).Tests, Of(GVisor, id).Tests, Of(VM, id).Tests)
}

// Differently names what is held differently on [GVisor] or [VM], for a line: "filters of calls (B2)".
func Differently(kind string) (out []string) {
	for _, p := range promises {
		if k := Of(kind, p.ID); k.Differently != "" {
			out = append(out, k.Differently+" ("+p.ID+")")
		}
	}
	return out
}

// Kept says how an engine keeps a promise, or that it doesn't.
type Kept struct {
	ID   string
	Held bool
	How  string // by what; where it isn't held, why
	// Differently is, in a few words, what isn't as for a worker with this machine's kernel,
	// although it holds; empty: nothing.
	Differently string
	// Tests are those of workers with a kernel of their own, besides [Explanation.Tests].
	Tests []string
}

// Text says how it is kept, in one sentence.
func (k Kept) Text() string {
	switch {
	case !k.Held:
		return "not kept: " + strings.TrimPrefix(k.How, "waived: ")
	case k.Differently != "":
		return "held differently: " + k.How
	}
	return k.How
}

// All returns the promises in the order of their numbers.
func All() []Promise { return slices.Clone(promises) }

// Of says how an engine, [GVisor] or [VM] keeps a promise. Of an unknown engine or promise it says
// that it isn't held.
func Of(engine, id string) Kept {
	switch engine {
	case GVisor:
		return onGVisor[id].with(Of(Docker, id))
	case VM:
		return inVM[id].with(Of(Namespace, id))
	}
	for _, row := range rows {
		if row.id != id {
			continue
		}
		switch engine {
		case Docker:
			return Kept{ID: id, Held: true, How: row.docker}
		case Podman:
			return Kept{ID: id, Held: true, How: cmp.Or(onPodman[id], row.docker)}
		case Namespace:
			return Kept{ID: id, Held: true, How: row.namespace}
		case Process:
			if row.process == "" {
				return Kept{ID: id, How: "waived: tools run on the host, as you"}
			}
			return Kept{ID: id, Held: true, How: row.process}
		}
	}
	return Kept{ID: id, How: "not known"}
}

// Waived are the numbers of the promises that an engine doesn't keep on any
// machine, in order.
func Waived(engine string) []string {
	var out []string
	for _, p := range promises {
		if !Of(engine, p.ID).Held {
			out = append(out, p.ID)
		}
	}
	return out
}

// Ranges writes numbers of promises for a person, those that follow each other
// as one: "B1–B12, B24".
func Ranges(ids []string) string {
	at := func(id string) int {
		return slices.IndexFunc(promises, func(p Promise) bool { return p.ID == id })
	}
	var out []string
	for i := 0; i < len(ids); {
		end := i
		for end+1 < len(ids) && at(ids[end]) >= 0 && at(ids[end+1]) == at(ids[end])+1 {
			end++
		}
		switch {
		case end-i >= 2:
			out = append(out, ids[i]+"–"+ids[end])
		default:
			out = append(out, ids[i:end+1]...)
		}
		i = end + 1
	}
	return strings.Join(out, ", ")
}
