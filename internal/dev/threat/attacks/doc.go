// Package attacks adds to the probes of package probe what only an intruder
// does: packets of its own making, socket options that lead around rules,
// requests to netfilter. workshop-init leaves them out: nothing in a worker
// should bring them along. The tests of the matrix run it as uid 1000, as uid 0
// and with an engine's default capabilities.
package attacks
