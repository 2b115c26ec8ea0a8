// Package image pulls images for the namespace engine from registries, OCI image
// layouts and `docker save` archives into a store of root file systems.
//
// # The root of a worker
//
// An image is unpacked into one flattened directory, all layers over one
// another, once per machine; every worker with the image has it mounted
// read-only. No overlay of layers is mounted: a mount of one directory needs no
// privilege beyond a user namespace, takes the same time for any number of layers,
// and keeps hostile layers away from the kernel's overlayfs code. The price is that
// images don't share common layers. Mount points that the image lacks are made by
// internal/engine/namespace/container, in an overlay whose upper layer is a tmpfs.
//
// # What is checked
//
// Images are untrusted. Every manifest, configuration and layer must have the
// requested digest, and every unpacked layer the digest in the configuration (its
// diff_id). extract_linux.go lists what is refused, dropped and changed while
// unpacking; limits.go bounds all of it.
//
// # Ownership
//
// Root keeps the owners that the layers have. Without root all files belong to the
// caller, as other ids can't be set. A worker with the caller's uid can then read them,
// whatever their mode for others was, but not write, as its root is mounted read-only.
package image
