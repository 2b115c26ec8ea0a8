// Package initimage embeds workshop-init, the only program of ours inside containers,
// and makes its image.
//
// The binaries are embedded from bin/, compressed with zstd. A program for Linux embeds
// the one of its own architecture, and of the other the names alone, with the digest:
// archives and packages have that one as a file, which is used if it is the one of the
// names. Programs for other systems embed all. The binaries are built, not committed;
// `make build` runs, before it builds the host programs:
//
//	CGO_ENABLED=0 GOOS=linux GOARCH=$ARCH go build -trimpath -buildvcs=false -tags nethttpomithttp2 -ldflags '-s -w -X runtime.godebugDefault=asyncpreemptoff=1' -o bin/workshop-init-linux-$ARCH ./cmd/workshop-init
//	go run ./internal/initimage/pack bin/workshop-init-linux-$ARCH internal/initimage/bin
//
// for ARCH amd64 and arm64. pack also writes a .json file with the names derived from the
// program, so that a command that only needs the names doesn't unpack it. A clone without
// them compiles, and [Set.Binary] returns an error with the remedy, or builds it: package
// initbuild. The environment is not read.
package initimage
