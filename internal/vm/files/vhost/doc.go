// Package vhost is the device's side of vhost-user for a virtio-fs device: it takes
// requests from the split virtqueues in a guest's memory and gives each to a handler.
//
// It reads hostile input: whatever a guest has written to its memory, and, should the
// hypervisor have been taken over, any message on the socket. Nothing in shared memory is
// read twice: a descriptor, an index or a request is copied, then checked, then used, and
// a response is written to the guest's memory only when it is complete. Whatever breaks
// the protocol ends the session with an error, as no driver of a kernel does so. Memory
// is bounded by [Buffers].
//
// Sources: vhost-user (QEMU, docs/interop/vhost-user.rst), virtio 1.2, sections 2.7 (split
// virtqueues) and 5.11 (file system device). github.com/hanwen/go-fuse has such a device
// too, in an internal package: it trusts its driver, follows a chain of descriptors that
// loops for ever and hands out the guest's memory itself. So only its FUSE is used.
package vhost
