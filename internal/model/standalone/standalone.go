// Package standalone writes the Compose file of a local model without a workshop:
// docker/compose.local-llm.yaml.
package standalone

import (
	"embed"
	"strings"

	"github.com/llmdo/workshop/diag"
)

//go:generate go run ../../../cmd/llmdo models compile --standalone --quiet --output ../../../docker/compose.local-llm.yaml

// Image is llama.cpp's server, for processors, of build b11176. The digest is the one
// that public configurations of it name; docs/local-models.md says how to check it.
const Image = "ghcr.io/ggml-org/llama.cpp:server-b11176@sha256:6257697a7f5d034b8fb499ddb07af3e250506352f94102054252a23f3b85e0af"

//go:embed compose.yaml start.pl relay.pl
var files embed.FS

// Compose returns the file. It is the same each time.
func Compose() string {
	// text/template would keep every exported method of the program that links it: 4 MB.
	return strings.NewReplacer("[[image]]", Image, "[[start.pl]]", indented("start.pl", 8), "[[relay.pl]]", indented("relay.pl", 8)).Replace(read("compose.yaml"))
}

func read(name string) string {
	b, err := files.ReadFile(name)
	if err != nil {
		panic(err) // it is part of this program
	}
	return string(b)
}

// indented is a program as the lines of a block scalar.
func indented(name string, by int) string {
	var out []string
	for line := range strings.Lines(diag.Literal(read(name))) {
		line = strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "\t", "  ")
		if line != "" {
			line = strings.Repeat(" ", by) + line
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}
