// Package systemd asks a user's systemd for a scope: a unit of processes that it didn't
// start, with a control group that it delegates to them.
//
// A login session's groups belong to root, so that an unprivileged user can limit
// nothing in them. Below user@UID.service they are the user's, and a scope there with
// Delegate=yes is left alone by systemd. It also outlives the program that asked for
// it, whatever unit that was in.
//
// Facts are from org.freedesktop.systemd1(5), systemd.scope(5),
// systemd.resource-control(5) and CGROUP_DELEGATION.md.
package systemd
