// Package image gets images for the namespace engine: from registries, OCI
// image layouts and `docker save` archives into a store of root file systems.
//
// # The root of a worker
//
// An image is unpacked into one flattened directory, all layers over one
// another, once per machine; every worker with the image has it mounted
// read-only. No overlay of layers is mounted: a mount of one directory needs no
// privilege beyond a user namespace, takes the same time for any number of
// layers, and keeps hostile layers away from the kernel's overlayfs code. The
// price is that two images don't share what their layers have in common. Mount
// points that the image lacks are no matter of this package: internal/engine/namespace/container
// makes them in an overlay whose upper layer is a tmpfs.
//
// # What is checked
//
// An image is hostile until proven dull. Every manifest, configuration and
// layer must have the digest it was asked for by, and every unpacked layer the
// digest that the configuration states (its diff_id). What is refused, dropped
// and changed while unpacking stands in extract.go; limits.go bounds all of it.
//
// # Ownership
//
// Root keeps the owners that the layers name. For everybody else all files are
// the caller's: other ids can't be given. A worker of the caller's uid can read
// them then, whatever their mode was for others, and can't write: its root is
// mounted read-only.
package image
