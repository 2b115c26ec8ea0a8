// Package workerinit is PID 1 of every worker: the checks before its first instruction,
// and the init that reaps afterwards (B12). It needs nothing of the image, neither a
// shell nor a user.
//
// It isn't a security boundary: a room without a guard is closed anyway. It waits until
// the network is usable and checks for problems that a worker would have later, so that
// `up` can report them.
package workerinit
