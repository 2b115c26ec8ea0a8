// Command gen writes the generated parts of docs/tools.md:
// `go run ./gen ../../docs/tools.md`, or `make generate`.
package main

import (
	"fmt"
	"os"

	"github.com/llmdo/workshop/internal/tooldoc"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: gen FILE")
	}
	old, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	text, err := tooldoc.Document(string(old))
	if err != nil {
		return err
	}
	return os.WriteFile(args[0], []byte(text), 0o666)
}
