// Command pack compresses a workshop-init for package initimage, and writes the names
// derived from its content:
//
//	go run ./internal/initimage/pack bin/workshop-init-linux-ARCH DIR
//
// writes ARCH/workshop-init-linux-ARCH.zst and names/workshop-init-linux-ARCH.json to DIR.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/llmdo/workshop/internal/initimage"
	"github.com/llmdo/workshop/internal/lib/atomicfile"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("usage: pack IN DIR")
	}
	in, dir := args[0], args[1]
	arch, ok := strings.CutPrefix(filepath.Base(in), "workshop-init-linux-")
	if !ok {
		return fmt.Errorf("%s: the name must be workshop-init-linux-ARCH", in)
	}
	data, err := os.ReadFile(in)
	if err != nil {
		return err
	}
	names, err := initimage.Describe(arch, data)
	if err != nil {
		return err
	}
	about, err := json.Marshal(names)
	if err != nil {
		return err
	}
	if err := replace(filepath.Join(dir, arch, initimage.FileName(arch)), initimage.Pack(data)); err != nil {
		return err
	}
	return replace(filepath.Join(dir, "names", initimage.NamesFile(arch)), about)
}

// replace replaces a file atomically. The new one is created in the parent directory,
// because a concurrent compiler embeds everything in this one.
func replace(name string, data []byte) error {
	return atomicfile.File{Name: name, Data: data, Mode: 0o644, Temp: filepath.Dir(filepath.Dir(name))}.Write()
}
