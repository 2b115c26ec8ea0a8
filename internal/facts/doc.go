// Package facts finds out what the machine is: mount sources, the workers'
// user, protected directories, secrets. [Missing] makes what `up` needs on the host
// (missing rw directories, the runtime directory) and nothing else.
//
// [compose.WithFacts] judges what is collected here; this package reports only
// what it could not find out or make.
package facts
