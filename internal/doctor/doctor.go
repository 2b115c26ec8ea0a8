// Package doctor looks at a machine for what keeps workshops from running, or makes them
// worse, and says what to do. It changes nothing, and asks no host but the resolvers and
// proxies that the machine is configured with.
//
// A [Check] looks, which is bounded in time; what it saw is judged by pure functions.
package doctor

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/llmdo/workshop/internal/lib/sortfunc"
)

// Level is how bad a finding is.
type Level string

// The levels. An Error keeps some workshop, or a command, from working.
const (
	OK      Level = "ok"
	Warning Level = "warning"
	Error   Level = "error"
)

// Finding is one thing that was found.
type Finding struct {
	Group string `json:"group"`
	Name  string `json:"name"` // a word: "proxy"
	Level Level  `json:"level"`
	Text  string `json:"text"`
	// Do is what to do about it: a sentence with one command.
	Do string `json:"do,omitempty"`
}

// The groups, in the order in which they are shown.
const (
	Program    = "program"
	Engine     = "engine"
	Kernel     = "kernel"
	Cgroups    = "cgroups"
	Namespaces = "namespaces"
	Security   = "security modules"
	Network    = "network"
	Disk       = "disk"
	State      = "state"
	Settings   = "settings"
)

// Groups are all of them.
func Groups() []string {
	return []string{Program, Engine, Kernel, Cgroups, Namespaces, Security, Network, Disk, State, Settings}
}

// Check is one look at the machine. Its findings may be of any group; that it failed is
// one of its own.
type Check struct {
	Group, Name string
	Run         func(ctx context.Context) []Finding
}

// Report is what all checks found.
type Report struct {
	Findings []Finding `json:"findings"`
}

// Level is that of the worst finding.
func (r Report) Level() Level {
	worst := OK
	for _, f := range r.Findings {
		switch {
		case f.Level == Error:
			return Error
		case f.Level == Warning:
			worst = Warning
		}
	}
	return worst
}

// Of returns the findings of a group.
func (r Report) Of(group string) []Finding {
	var out []Finding
	for _, f := range r.Findings {
		if f.Group == group {
			out = append(out, f)
		}
	}
	return out
}

// Run carries out checks concurrently, each within limit, and returns what they found in
// the order of groups. One that panics, or doesn't end in time, is an error of its own
// and keeps no other from reporting; it may go on in the background.
func Run(ctx context.Context, checks []Check, limit time.Duration) Report {
	found := make([][]Finding, len(checks))
	var all sync.WaitGroup
	for i, c := range checks {
		all.Go(func() { found[i] = c.within(ctx, limit) })
	}
	all.Wait()
	r := Report{Findings: slices.Concat(found...)}
	sortfunc.Stable(r.Findings, func(a, b Finding) int {
		return slices.Index(Groups(), a.Group) - slices.Index(Groups(), b.Group)
	})
	return r
}

func (c Check) within(ctx context.Context, limit time.Duration) []Finding {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	done := make(chan []Finding, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				done <- c.failed(fmt.Sprintf("the check failed: %v", p), "report it, with what `workshop doctor -v --bundle FILE` writes", string(debug.Stack()))
			}
		}()
		done <- c.Run(ctx)
	}()
	select {
	case found := <-done:
		return found
	case <-ctx.Done():
	}
	select { // it may have ended with the context
	case found := <-done:
		return found
	case <-time.After(limit / 10):
	}
	return c.failed(fmt.Sprintf("the check didn't end within %v", limit), "", "")
}

// failed is the finding on a check that broke. The stack is of our program alone.
func (c Check) failed(text, do, stack string) []Finding {
	if stack != "" {
		text += "\n" + stack
	}
	return []Finding{{Group: c.Group, Name: c.Name, Level: Error, Text: text, Do: do}}
}
