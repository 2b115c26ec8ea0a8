// Package namespace carries plans out in Linux namespaces, without Docker. Every
// container is made by workshop-init: one of its processes is the supervisor of
// a project (internal/engine/namespace/supervisor), which this package starts, gives complete
// specs (internal/engine/namespace/container/spec), and asks.
//
// As in the docker engine, every field of a service that it doesn't know is an
// error. What it can't enforce it refuses by name, before anything is started.
//
// The state of a project is a directory of the user's own,
// $XDG_STATE_HOME/workshop/namespace/PROJECT:
//
//	state.json, supervisor.*   the supervisor's
//	log/SERVICE/               what containers print
//	volumes/NAME/              volumes of the project
//	resolv/                    the guard's resolv.conf, as the machine's is now
//	objects.json               networks and volumes with their labels
//
// A supervisor that was killed takes everything that runs with it; the next
// command that changes something clears up.
package namespace
