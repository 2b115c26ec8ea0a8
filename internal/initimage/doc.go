// Package initimage embeds workshop-init, the only program of ours inside containers,
// and makes its image.
//
// The binaries are embedded from bin/, compressed with zstd, one per
// architecture. They are built, not committed; `make build` runs, before it
// builds the host programs:
//
//	CGO_ENABLED=0 GOOS=linux GOARCH=$ARCH go build -trimpath -buildvcs=false -tags nethttpomithttp2 -ldflags '-s -w' -o bin/workshop-init-linux-$ARCH ./cmd/workshop-init
//	go run ./internal/initimage/pack bin/workshop-init-linux-$ARCH internal/initimage/bin/workshop-init-linux-$ARCH.zst
//
// for ARCH amd64 and then arm64, which is packed against it (the third argument
// of pack). pack also writes a .json file with the names derived from the program, so
// that a command that only needs the names doesn't unpack it. A clone without them
// compiles, and [Set.Binary] returns an error with the remedy, or builds it: package
// initbuild. The environment is not read.
package initimage
