// Package initimage carries workshop-init, the only program of ours inside
// containers, and makes of it the image that an engine runs it from.
//
// The binaries are embedded from bin/, compressed with zstd, one per
// architecture. They are built, not committed; `make build` runs, before it
// builds the host programs:
//
//	CGO_ENABLED=0 GOOS=linux GOARCH=$ARCH go build -trimpath -tags nethttpomithttp2 -ldflags '-s -w' -o bin/workshop-init-linux-$ARCH ./cmd/workshop-init
//	go run ./internal/initimage/pack bin/workshop-init-linux-$ARCH internal/initimage/bin/workshop-init-linux-$ARCH.zst
//
// for ARCH amd64 and then arm64, which is packed against it (the third argument
// of pack). pack also writes a .json beside, with the names
// that follow from the program, so that a command that only needs the names
// does not unpack it. In a clone without them everything compiles, and
// [Binary] says what to do. Nothing of the environment is read.
package initimage
