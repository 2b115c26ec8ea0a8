// Package facts collects facts about the machine: mount sources, the workers' user,
// protected directories, secrets. [Missing] creates what `up` needs on the host
// (missing rw directories, the runtime directory) and nothing else.
//
// [compose.WithFacts] checks the facts; this package reports only what it couldn't
// collect or create.
package facts
