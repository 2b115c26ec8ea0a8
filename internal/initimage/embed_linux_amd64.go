package initimage

import "embed"

// The names of all programs, and the packed one of this architecture.
//
//go:embed all:bin/names all:bin/amd64
var embedded embed.FS
