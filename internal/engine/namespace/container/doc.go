// Package container starts containers of the namespace engine, as described by
// package spec.
//
// [Start] is called in a project's supervisor, which is PID 1 of its pid namespace
// and has CAP_SYS_ADMIN in its user namespace: the machine's, or one with a single
// id, treated alike. Start clones `workshop-init contain` ([Main]) into new
// namespaces. That is the container's PID 1: it makes the mounts, drops its
// privileges, and executes the container's program. On any failure it exits, and
// Start returns the error.
//
// It needs Linux 5.12 (mount_setattr(2)).
package container
