// Package workerinit is PID 1 of every worker: what a worker passes before its first
// instruction, and the init that reaps afterwards (B12). It needs nothing of
// the image, no shell and no user of its own.
//
// Nothing depends on the gate for safety: a room without a guard is closed. It
// waits until the network is usable and tests what a worker would stumble over
// later, so that `up` can say it.
package workerinit
