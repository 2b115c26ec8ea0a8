// Package files serves directories to the guest of one virtual machine by virtio-fs
// (FUSE over vhost-user). Each mount of the worker's container is a share with a socket
// of its own.
//
// It reads hostile input: a guest's requests. Where each property is kept:
//
//   - Beyond a share nothing can be named. A request names a file by a directory that the
//     guest has looked up and one name in it, without a slash (gate.go). The directory is
//     opened by openat2(2) below the share's root, without following a link
//     (beneath.go), so that links which the guest, or anybody, swaps in lead nowhere.
//   - A share that is read-only refuses every change (gate.go), besides the read-only mount
//     that the container has of it. What isn't known to be harmless isn't there at all
//     (request.go).
//   - What the host could execute or follow later: no device nodes, no setuid or setgid
//     bits of files, no extended attributes but user.* (node.go, make.go, xattr.go).
//     Symbolic links are made as asked: a worker in a container makes them, too.
//   - Owners are the host's. New files belong to this process's uid, whatever uid the
//     guest's caller has; it has no capability, so that the kernel refuses the rest.
//   - Memory: a fixed number of requests at once (package vhost), of files that the guest
//     knows, and of those that it has open ([Limits]).
//   - No network: after its start the process can make no socket ([Main]).
//
// Locks (flock, fcntl) are the guest's own; other processes of the host don't see them.
// A change on the host is seen after at most a second, and no watcher in the guest hears of
// it (virtio-fs has no notifications that a kernel listens to). What is read of a file is kept
// until its size or a time of it changes (keep.go): not so by a store to memory that is a
// file. A share is mounted once. Paths of more than 4,095 bytes can't be used, nor can a FIFO
// or a socket whose name is gone.
//
// The protocol and the tables of nodes are go-fuse's. It trusts a kernel to ask only for
// what it was given, and panics otherwise; the gate lets nothing else through to it.
package files
