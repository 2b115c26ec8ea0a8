// Command bench measures the promises of design speed.md against peers and floors, and
// prints one table: ours, the other, the ratio and its limit.
//
// The contenders of a row run interleaved, and the median counts. No test depends on it.
// The part tools compares calls, sessions and commands in a worker with the engine's exec
// and a process on the host that runs the same program. The part podman compares podman as
// root with Docker, and the part checks this program with one that is built without the
// two checks of containers, of what an engine stored and of what it made. The part kernel
// compares a worker on gVisor with the same one on runc, on a Docker engine that it starts
// with gVisor's runtime, which is built from its Go module the first time. The part run
// compares one-off runs with other sandboxes, one of them from npm. The part work compares
// npm install, tsc, go build and 20,000 small files in a worker with the same on the host.
// The part many has 100 workshops up at once, and 30 on Docker. The part soak compares a
// guard with itself after minutes under load, while one of its two rooms attacks it. `make
// bench` builds what it needs; the peer, the Compose v2 plugin, is built from its Go
// module (bench/compose-v2), which takes some minutes the first time.
package main
