// Package mounttable tells PID 1 of a container when a mount of it is lost.
//
// The kernel takes a mount away from all namespaces when its mount point is unlinked,
// removed or renamed over in one where it is none (detach_mounts of fs/namespace.c),
// and moves it along when its mount point is renamed there: `git checkout` and most
// editors do so on the host. A read-only mount inside of a writable one then no longer
// protects what has its name (B3, B8). It keeps a mount whose source is renamed or
// removed there.
package mounttable
