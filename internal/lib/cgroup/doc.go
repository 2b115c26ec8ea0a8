// Package cgroup limits what a container may use of the machine: memory with
// swap, cpu and processes (B5), by control groups of version 2, of version 1,
// or of both side by side.
//
// Find looks where this process may make groups, and changes nothing. The
// Parent that it returns says what can be limited there (Can, Require), and
// makes groups (New). A limit that can't be set is an error: no group is left
// that has some of its limits.
//
//	as root     v1: below the own group of each hierarchy
//	            v2: below the nearest group that was delegated to root, else at
//	            the root of the hierarchy. The own group is no place: a group
//	            that has processes can't hand on controllers, and in a login
//	            session it has some.
//	rootless    v1: below the own groups, where their directories are writable
//	            v2: below the nearest group at or above the own one that was
//	            delegated to the caller: marked so by systemd (251 or later),
//	            or user@UID.service, or simply the caller's
//
// There a directory "workshop" holds the groups. Where a delegated group of v2
// has processes of its own, they are moved to a leaf "workshop-callers" beside
// it: the kernel lets no group have both processes and controlled children.
//
// Facts are from the kernel's admin-guide/cgroup-v2.rst and cgroup-v1/*.rst,
// and systemd's CGROUP_DELEGATION.md.
package cgroup
