// Package namespace is the engine that runs projects in Linux namespaces, without
// Docker. Containers are created by workshop-init, as the supervisor of a project
// (internal/engine/namespace/supervisor). This package starts the supervisor and
// sends it requests with complete specs (internal/engine/namespace/container/spec).
//
// As in the docker engine, every unknown field of a service is an error. What the
// engine can't enforce it refuses by name, before anything is started.
//
// The state of a project is a directory of the user,
// $XDG_STATE_HOME/workshop/namespace/PROJECT:
//
//	state.json, supervisor.*   the supervisor's
//	log/SERVICE/               output of containers
//	volumes/NAME/              volumes of the project
//	resolv/                    the guard's resolv.conf, a current copy of the machine's
//	objects.json               networks and volumes with their labels
//
// When a supervisor is killed, everything it runs ends too; the next command that
// changes something cleans up.
package namespace
