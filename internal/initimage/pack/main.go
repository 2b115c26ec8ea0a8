// Command pack compresses a workshop-init binary for package initimage, and writes the
// names derived from its content to a .json file next to it:
//
//	go run ./internal/initimage/pack IN OUT.zst [BASE]
//
// BASE is the binary used as the base.
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
	if len(args) != 2 && len(args) != 3 {
		return fmt.Errorf("usage: pack IN OUT [BASE]")
	}
	data, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	base, ok := strings.CutSuffix(args[1], ".zst")
	dash := strings.LastIndexByte(base, '-')
	if !ok || dash < 0 {
		return fmt.Errorf("%s: the name must be %s", args[1], initimage.FileName("ARCH"))
	}
	var against []byte
	if len(args) == 3 {
		if against, err = os.ReadFile(args[2]); err != nil {
			return err
		}
	}
	names, err := initimage.Describe(base[dash+1:], data)
	if err != nil {
		return err
	}
	about, err := json.Marshal(names)
	if err != nil {
		return err
	}
	if err := replace(args[1], initimage.Pack(data, against)); err != nil {
		return err
	}
	return replace(base+".json", about)
}

// replace replaces a file atomically. The new one is created in the parent directory,
// because a concurrent compiler embeds everything in this one.
func replace(name string, data []byte) error {
	return atomicfile.File{Name: name, Data: data, Mode: 0o644, Temp: filepath.Dir(filepath.Dir(name))}.Write()
}
