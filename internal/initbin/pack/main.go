// Command pack compresses a workshop-init binary for package initbin:
//
//	go run ./internal/initbin/pack IN OUT
package main

import (
	"fmt"
	"os"

	"github.com/klauspost/compress/zstd"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("usage: pack IN OUT")
	}
	data, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return err
	}
	defer enc.Close()
	out := args[1] + ".new"
	if err := os.WriteFile(out, enc.EncodeAll(data, nil), 0o644); err != nil {
		return err
	}
	return os.Rename(out, args[1])
}
