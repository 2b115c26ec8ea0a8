// Package seccomp makes the filter of a container from the JSON profile that
// Docker reads: what libseccomp and runc do there, in Go and without a kernel.
package seccomp
