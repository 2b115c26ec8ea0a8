// Command bench measures what design speed.md promises, beside its peers and
// floors, and prints one table: ours, the other, the ratio and what it may be.
//
// Everything of a row runs interleaved in one go, and the median counts. No
// test depends on it. The part tools has calls, sessions and commands in a
// worker beside the engine's exec and a process on the host, which runs the same
// program. The part soak compares a guard with itself, after minutes
// under load, while one of its two rooms attacks it. `make bench` builds what it needs; the peer, the Compose
// v2 plugin, is built from its Go module (bench/compose-v2), which takes some
// minutes the first time.
package main
