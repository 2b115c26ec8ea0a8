// Command docgen writes the generated parts of a document, which it finds by
// its name: `go run ./internal/dev/docgen docs/tools.md`. `make generate` does it for
// all.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/llmdo/workshop/internal/dev/refdoc"
	"github.com/llmdo/workshop/internal/dev/threat"
	"github.com/llmdo/workshop/internal/dev/tooldoc"
	"github.com/llmdo/workshop/internal/promise"
	"github.com/llmdo/workshop/internal/verify"
)

// documents make the new text of a file from the old one.
var documents = map[string]func(old string) (string, error){
	"engines.md":      promise.EnginesDocument,
	"reference.md":    refdoc.Document,
	"security.md":     promise.Document,
	"threat-model.md": threat.Model,
	"tools.md":        tooldoc.Document,
	"verify.md":       verify.Document,
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "docgen:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 || documents[filepath.Base(args[0])] == nil {
		return fmt.Errorf("usage: docgen FILE, which is engines.md, reference.md, security.md, threat-model.md, tools.md or verify.md")
	}
	old, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	text, err := documents[filepath.Base(args[0])](string(old))
	if err != nil {
		return err
	}
	return os.WriteFile(args[0], []byte(text), 0o666)
}
