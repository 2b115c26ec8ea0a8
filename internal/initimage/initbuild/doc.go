// Package initbuild builds workshop-init with the Go toolchain, for a program that has
// none embedded: `go install` builds no other program first.
//
// What is built is what this program was built of, and nothing else decides about it.
// The source is named by this program alone: by its build information (a module with
// its hash), or by the path of a source file in its debug information (a checkout,
// which must not have changed since). The toolchain runs there with an environment of
// its own: no go.work, GOFLAGS, toolchain line or working directory has a say, and no
// program of the checkout's version control is run. Dependencies are those of the
// source's go.sum.
package initbuild
