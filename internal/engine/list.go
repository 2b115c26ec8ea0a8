package engine

import (
	"context"
	"time"
)

// Listed is one project of an engine, as a list of all shows it.
type Listed struct {
	// Project and Directory are those that its containers are labelled with.
	Project, Directory string
	Containers         []Container
	// Memory is what the running containers use in bytes, without page cache that can
	// be dropped; -1: it can't be read here.
	Memory int64
}

// Since returns the start of the first container that runs; zero if none does.
func (l *Listed) Since() (first time.Time) {
	for _, c := range l.Containers {
		if c.State == "running" && !c.Started.IsZero() && (first.IsZero() || c.Started.Before(first)) {
			first = c.Started
		}
	}
	return first
}

// Published is a port that a container publishes on the engine's machine.
type Published struct {
	Project, Container string
	Address            string // host:port
}

// Foreigners lists what running containers of Compose projects publish that aren't
// workshops. An engine has it if it shares a machine with them.
type Foreigners interface {
	Foreigners(ctx context.Context) ([]Published, error)
}
