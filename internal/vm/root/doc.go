// Package root makes the root file system of a virtual machine: an EROFS image of a
// worker's root, which the guest has as a disk that the host opened read-only (B3). It is
// made once per image, without privilege, and the same files give the same bytes.
//
// The image store has resolved whiteouts and dropped extended attributes, devices and
// setuid bits already; what is none of a file, a directory or a link is refused here.
// Owners, modes and times are kept. Hard links become files of their own, as
// github.com/erofs/go-erofs has none: each takes its place again.
package root
