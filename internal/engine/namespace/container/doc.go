// Package container carries out what package spec says: it starts a container of
// the namespace engine.
//
// [Start] is called in a project's supervisor, which is PID 1 of its pid
// namespace and has CAP_SYS_ADMIN in its user namespace: the machine's, or one
// with a single id. Below it both are the same. Start clones `workshop-init
// contain` ([Main]) into new namespaces. That is the container's PID 1: it makes
// the mounts, gives up what it may, and executes the container's program in its
// own place. Whatever fails ends it, and Start tells what it was.
//
// It needs Linux 5.12 (mount_setattr(2)).
package container
