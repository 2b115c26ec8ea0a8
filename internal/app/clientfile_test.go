package app

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/facts"
	"github.com/llmdo/workshop/internal/mcpconfig"
)

// clientCase is a project with the file of a client, and what a worker or a repository
// has done to it.
type clientCase struct {
	t   *testing.T
	env *Env
	dir string
	src *Source
}

func newClientCase(t *testing.T) *clientCase {
	t.Helper()
	dir := RealPath(t.TempDir())
	c := &clientCase{t: t, dir: dir}
	c.env = testEnv(&Env{Dir: dir, Home: filepath.Join(RealPath(t.TempDir()), "home"), Lookup: func(string) (string, bool) { return "", false }}, io.Discard)
	c.put("workshop.yaml", "workshop:\n  name: client\n  container: {image: host}\n  workers: [{name: one, tools: []}]\n")
	var err error
	if c.src, err = c.env.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *clientCase) put(name, text string) {
	c.t.Helper()
	file := filepath.Join(c.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
		c.t.Fatal(err)
	}
}

func (c *clientCase) text(name string) string {
	data, _ := os.ReadFile(filepath.Join(c.dir, name))
	return string(data)
}

func (c *clientCase) change(client string) (*ClientChange, error) {
	c.t.Helper()
	all := mcpconfig.Clients()
	i := slices.IndexFunc(all, func(x mcpconfig.Client) bool { return x.Name == client })
	return c.env.ChangeClient(c.src, ClientEntry{Client: all[i], Name: "client-one", Server: mcpconfig.Server{Command: "workshop"}})
}

// write is a whole change, with what happens between its parts.
func (c *clientCase) write(client string, meanwhile func()) error {
	change, err := c.change(client)
	if err != nil {
		return err
	}
	if meanwhile != nil {
		meanwhile()
	}
	return c.env.WriteClient(c.t.Context(), change)
}

// brought up records what is there, which workers may write.
func (c *clientCase) broughtUp() {
	c.t.Helper()
	compiled := &compose.Compiled{Project: &types.Project{}, Facts: &compose.Facts{Project: "client", ProjectDir: c.dir}}
	r := facts.NewRecord(c.env.recordsDir(), compiled, true, true)
	r.Roots, r.Openings = []string{c.dir}, []facts.Opening{{Source: c.dir}}
	r.Definition = map[string]string{filepath.Join(c.dir, "workshop.yaml"): c.text("workshop.yaml")}
	s, err := r.Take(c.t.Context(), c.env.Home, c.env.Lookup)
	if err != nil {
		c.t.Fatal(err)
	}
	if err := r.Keep(s); err != nil {
		c.t.Fatal(err)
	}
}

// changes are those that `ps` would name.
func (c *clientCase) changes() (paths []string) {
	c.t.Helper()
	r, err := c.env.Record("client")
	if err != nil {
		c.t.Fatal(err)
	}
	before, err := r.Baseline()
	if err != nil {
		c.t.Fatal(err)
	}
	now, err := r.Take(c.t.Context(), c.env.Home, c.env.Lookup)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, change := range r.Changes(before, now) {
		paths = append(paths, strings.TrimPrefix(change.Path, c.dir+"/"))
	}
	return paths
}

// A client's file keeps its mode, and the program's own change isn't a worker's (B8).
func TestWriteClient(t *testing.T) {
	for _, client := range mcpconfig.Clients() {
		for _, there := range []bool{false, true} {
			c := newClientCase(t)
			if there {
				if client.Name == "codex" {
					c.put(client.File, "a = 1\n")
				} else {
					c.put(client.File, `{"a": 1}`)
				}
				if err := os.Chmod(filepath.Join(c.dir, client.File), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			c.broughtUp()
			if err := c.write(client.Name, nil); err != nil {
				t.Fatalf("%s, there %t: %v", client.Name, there, err)
			}
			if text := c.text(client.File); !strings.Contains(text, "client-one") {
				t.Errorf("%s has %q", client.File, text)
			}
			if got := c.changes(); len(got) > 0 {
				t.Errorf("%s, there %t: changes of workers: %v", client.Name, there, got)
			}
			if info, err := os.Stat(filepath.Join(c.dir, client.File)); err != nil || there && runtime.GOOS != "windows" && info.Mode() != 0o600 {
				t.Errorf("%s: mode %v, %v", client.Name, info.Mode(), err)
			}
			left, err := os.ReadDir(filepath.Dir(filepath.Join(c.dir, client.File)))
			if err != nil || slices.ContainsFunc(left, func(e os.DirEntry) bool { return strings.HasPrefix(e.Name(), ".new-") }) {
				t.Errorf("%s: left %v, %v", client.Name, left, err)
			}
			again, err := c.change(client.Name)
			if err != nil || again.Lines != nil {
				t.Errorf("%s again: %v, %v", client.Name, again, err)
			}
		}
	}
}

// What a worker may have written since `up` isn't taken over (B8).
func TestWriteClientAfterWorker(t *testing.T) {
	for name, tt := range map[string]struct {
		before, client, file string
	}{
		"changed":    {`{"mcpServers": {}}`, "claude", ".mcp.json"},
		"new":        {"", "claude", ".mcp.json"},
		"new, below": {"", "cursor", ".cursor/mcp.json"},
		"protected":  {"", "vscode", ".vscode/mcp.json"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClientCase(t)
			if tt.before != "" {
				c.put(tt.file, tt.before)
			}
			c.broughtUp()
			const evil = `{"mcpServers": {"x": {"command": "evil"}}}`
			c.put(tt.file, evil)
			change, err := c.change(tt.client)
			if err != nil || !strings.Contains(change.Suspect, "a worker may have written that") {
				t.Errorf("suspect: %v, %v", change, err)
			}
			var f *Failure
			if err := c.write(tt.client, nil); !errors.As(err, &f) || f.Code != CodeRefused || c.text(tt.file) != evil {
				t.Errorf("got %v, and %q", err, c.text(tt.file))
			}
			if got := c.changes(); !slices.Contains(got, tt.file) {
				t.Errorf("changes: %v", got)
			}
		})
	}
}

// Neither a link nor another program's change in the meantime leads a command to write
// something else than it showed.
func TestWriteClientRefused(t *testing.T) {
	link := func(c *clientCase, to, at string) {
		c.t.Helper()
		if err := os.Symlink(to, filepath.Join(c.dir, at)); err != nil {
			c.t.Fatal(err)
		}
	}
	for name, tt := range map[string]struct {
		client            string
		before, meanwhile func(c *clientCase)
		want              string
	}{
		"a link to a file out":      {client: "claude", before: func(c *clientCase) { link(c, filepath.Join(c.env.Home, "x"), ".mcp.json") }, want: "is a symbolic link"},
		"a link to a file inside":   {client: "claude", before: func(c *clientCase) { link(c, "other.json", ".mcp.json") }, want: "is a symbolic link"},
		"a link to a directory":     {client: "cursor", before: func(c *clientCase) { link(c, "/tmp", ".cursor") }, want: "is a symbolic link"},
		"a directory":               {client: "claude", before: func(c *clientCase) { c.put(".mcp.json/x", "") }, want: "is a directory"},
		"a file for its directory":  {client: "cursor", before: func(c *clientCase) { c.put(".cursor", "") }, want: "not a directory"},
		"changed in the meantime":   {client: "claude", before: func(c *clientCase) { c.put(".mcp.json", "{}") }, meanwhile: func(c *clientCase) { c.put(".mcp.json", `{"a": 1}`) }, want: "changed by another program"},
		"made in the meantime":      {client: "claude", meanwhile: func(c *clientCase) { c.put(".mcp.json", "") }, want: "changed by another program"},
		"removed in the meantime":   {client: "claude", before: func(c *clientCase) { c.put(".mcp.json", "{}") }, meanwhile: func(c *clientCase) { os.Remove(filepath.Join(c.dir, ".mcp.json")) }, want: "changed by another program"},
		"a link in the meantime":    {client: "claude", meanwhile: func(c *clientCase) { link(c, filepath.Join(c.env.Home, "x"), ".mcp.json") }, want: "is a symbolic link"},
		"a directory led elsewhere": {client: "vscode", meanwhile: func(c *clientCase) { link(c, c.env.Home, ".vscode") }, want: ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClientCase(t)
			if err := os.MkdirAll(c.env.Home, 0o755); err != nil {
				t.Fatal(err)
			}
			if tt.before != nil {
				tt.before(c)
			}
			err := c.write(tt.client, func() {
				if tt.meanwhile != nil {
					tt.meanwhile(c)
				}
			})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if left, err := os.ReadDir(c.env.Home); err != nil || len(left) > 0 {
				t.Errorf("written outside of the project: %v, %v", left, err)
			}
		})
	}
}
