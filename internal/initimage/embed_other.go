//go:build !linux || !(amd64 || arm64)

package initimage

import "embed"

// The names of all programs, and all of them packed: an engine of this machine runs
// either, in a virtual machine or elsewhere.
//
//go:embed all:bin/names all:bin/amd64 all:bin/arm64
var embedded embed.FS
