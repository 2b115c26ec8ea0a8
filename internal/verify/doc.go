// Package verify derives from a workshop what to try in its running workers and what to
// look at from outside, and judges what was seen.
//
// It is pure: internal/app carries the probes to the workers, package outside reads
// what the kernel shows of their processes.
//
// What a probe says comes from a worker, where a hostile program of the same user may
// write it. So a verdict needs what is seen outside wherever there is such a thing, and
// what is seen inside alone decides only where the table says so ([Methods]). A text from
// inside is short and printable.
package verify
