// Package standalone writes the Compose file of a local model without a workshop:
// docker/compose.local-llm.yaml.
package standalone

import (
	"embed"
	"strings"
	"text/template"

	"github.com/llmdo/workshop/diag"
)

//go:generate go run ../../../cmd/llmdo models compile --standalone --quiet --output ../../../docker/compose.local-llm.yaml

// Image is llama.cpp's server, for processors, of build b11176. The digest is the one
// that public configurations of it name; docs/local-models.md says how to check it.
const Image = "ghcr.io/ggml-org/llama.cpp:server-b11176@sha256:6257697a7f5d034b8fb499ddb07af3e250506352f94102054252a23f3b85e0af"

//go:embed compose.tmpl start.pl relay.pl
var files embed.FS

// Compose returns the file. It is the same each time.
func Compose() string {
	t := template.Must(template.New("compose.tmpl").Delims("[[", "]]").Funcs(template.FuncMap{"perl": indented}).ParseFS(files, "compose.tmpl"))
	var b strings.Builder
	if err := t.Execute(&b, struct{ Image string }{Image}); err != nil {
		panic(err) // the template is part of this program
	}
	return b.String()
}

// indented is a program as the lines of a block scalar.
func indented(name string, by int) (string, error) {
	b, err := files.ReadFile(name)
	if err != nil {
		return "", err
	}
	var out []string
	for line := range strings.Lines(diag.Literal(string(b))) {
		line = strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "\t", "  ")
		if line != "" {
			line = strings.Repeat(" ", by) + line
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n"), nil
}
