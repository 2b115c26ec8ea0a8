package cli

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/llmdo/workshop/internal/credential"
	"github.com/llmdo/workshop/workshop"
)

// What docs/credentials.md has for a workshop.yaml or for the user's file is valid, and has
// its line in the other of them.
func TestCredentialsPage(t *testing.T) {
	text, err := os.ReadFile("../../docs/credentials.md")
	if err != nil {
		t.Fatal(err)
	}
	lines, entries := 0, 0
	for i, part := range strings.Split(string(text), "```yaml\n") {
		block, _, ended := strings.Cut(part, "```")
		switch {
		case i == 0 || !ended || strings.HasPrefix(block, "- env:"):
			continue // before the first one, and a step of CI
		case strings.HasPrefix(block, "allow:"):
			block = "network:\n  mode: restricted\n  " + strings.ReplaceAll(strings.TrimSpace(block), "\n", "\n  ")
			fallthrough
		case strings.HasPrefix(block, "network:"):
			lines++
			file := fmt.Sprintf("workshop:\n  name: x\n  container:\n    image: host\n    %s\n  workers: [{name: one, tools: [], instructions: x}]\n", strings.ReplaceAll(strings.TrimSpace(block), "\n", "\n    "))
			if _, list := workshop.Load(t.Context(), fstest.MapFS{"workshop.yaml": {Data: []byte(file)}}, "workshop.yaml", workshop.Options{}); len(list) > 0 {
				t.Errorf("%s\n%v", file, list)
			}
		default:
			entries++
			block = strings.ReplaceAll(block, "SHA256:…", "SHA256:"+strings.Repeat("A", 43))
			if _, list := credential.Parse("credentials.yaml", []byte(block), "/home/you"); len(list) > 0 {
				t.Errorf("%s\n%v", block, list)
			}
		}
	}
	if lines < 4 || entries < 2 {
		t.Errorf("%d blocks of a workshop.yaml and %d of the user's file", lines, entries)
	}
}
