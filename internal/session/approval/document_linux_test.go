package approval

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/llmdo/workshop/workshop"
)

// The document's example loads, and decides as the document says; what it shows
// of programs fits the schema.
func TestDocument(t *testing.T) {
	data, err := os.ReadFile("../../../docs/approvals.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(data), "```yaml\nworkshop:\n")
	text, _, _ = strings.Cut(text, "```")
	fsys := fstest.MapFS{
		"workshop.yaml":       {Data: []byte("workshop:\n  name: x\n  container: {image: \"a:b\"}\n  workers: [reviewer]\n  mcp: {database: {command: db}}\n" + text)},
		"workers/reviewer.md": {Data: []byte("---\nallowed-tools: Bash, mcp__database\n---\nx\n")},
	}
	w, diags := workshop.Load(t.Context(), fsys, "workshop.yaml", workshop.Options{Home: "/home/me", Lookup: func(string) (string, bool) { return "", false }})
	if diags.HasErrors() {
		t.Fatal(diags, text)
	}
	p := Policy{Rules: w.Approvals.Rules, Default: w.Approvals.Default.V, Given: true, Max: auto}
	for line, want := range map[string]workshop.Approval{
		"git status -s": auto, "git stash": ask, "/tmp/git status": ask, "GIT_DIR=x git status": ask, "git status; x": ask,
		"x | git push": deny, "sh -c 'git push'": deny, "sudo git push": deny, "$(git push)": deny,
	} {
		if v := p.Decide(shell(line)); v.Decision != want {
			t.Errorf("%s: %s (%s)", line, v.Decision, v.Why)
		}
	}
	_, text, _ = strings.Cut(string(data), "```json\n")
	text, _, _ = strings.Cut(text, "```")
	if strings.Count(text, "\n") != 2 {
		t.Fatal(text)
	}
	for line := range strings.Lines(text) {
		fits(t, []byte(line))
	}
}
