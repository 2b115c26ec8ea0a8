package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/command"
)

// The configuration in docs/clients.md is what --print-config prints, and each of its
// clients is there.
func TestClientsDoc(t *testing.T) {
	doc, err := os.ReadFile("../../docs/clients.md")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.Abs("../../examples/code-review")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)<!-- workshop (tools [^>]*) -->\n```json\n(.*?)```\n").FindAllStringSubmatch(string(doc), -1)
	for _, b := range blocks {
		var out, errs bytes.Buffer
		s := &command.System{Env: &app.Env{Dir: dir, Home: t.TempDir(), Lookup: func(string) (string, bool) { return "", false }}, Out: &out, Err: &errs, Executable: "/usr/local/bin/workshop"}
		if code := Run(context.Background(), NewWorkshop, strings.Fields(b[1]), s); code != 0 {
			t.Fatalf("%s: exit code %d\n%s", b[1], code, errs.String())
		}
		if got := strings.ReplaceAll(out.String(), dir, "/home/you/review"); got != b[2] {
			t.Errorf("%s prints\n%sdocs/clients.md has\n%s", b[1], got, b[2])
		}
	}
	tools, _, err := NewWorkshop(&command.System{}).Find([]string{"tools"})
	if err != nil {
		t.Fatal(err)
	}
	complete, _ := tools.GetFlagCompletionFunc("print-config")
	clients, _ := complete(tools, nil, "")
	if len(blocks) == 0 || len(clients) == 0 {
		t.Fatalf("docs/clients.md has %d configurations, --print-config %d clients", len(blocks), len(clients))
	}
	for _, c := range clients {
		name, _, _ := strings.Cut(string(c), "\t")
		if !strings.Contains(string(doc), "| `"+name+"` |") && !strings.Contains(string(doc), "--print-config "+name+" ") {
			t.Errorf("docs/clients.md has nothing on --print-config %s", name)
		}
	}
}
