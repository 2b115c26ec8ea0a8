package mcpconfig

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var testServer = Server{
	Command: "/usr/local/bin/workshop",
	Args:    []string{"-f", `/home/you/it's "new"\ü/workshop.yaml`, "tools", "one"},
	Timeout: 90*time.Second + 1,
	Env:     map[string]string{"XDG_STATE_HOME": "/state dir", "DOCKER_HOST": "unix:///run/<it>.sock"},
}

func client(t testing.TB, name string) Client {
	t.Helper()
	for _, c := range Clients() {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no client %s", name)
	return Client{}
}

// crlf has the text with other line ends.
func crlf(text []byte) []byte { return []byte(strings.ReplaceAll(string(text), "\n", "\r\n")) }

// Each file of testdata, CLIENT-*.EXT, gets the server as its golden file has it, and is
// what it was once the server is removed, with any line ends, with and without a last one
// and a byte order mark.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*-*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, ".golden") {
			continue
		}
		t.Run(filepath.Base(name), func(t *testing.T) {
			kind, _, _ := strings.Cut(filepath.Base(name), "-")
			c := client(t, kind)
			in, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			got, err := c.Add(in, "demo-one", testServer, false)
			if err != nil {
				t.Fatal(err)
			}
			if *update {
				if err := os.WriteFile(name+".golden", got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(name + ".golden")
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), string(got)); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
			bom := []byte("")
			if !c.toml {
				bom = []byte(byteOrderMark)
			}
			variants := map[string][2][]byte{
				"as it is":          {in, want},
				"CRLF":              {crlf(in), crlf(want)},
				"a byte order mark": {append(bom, in...), append(bom, want...)},
			}
			if !bytes.HasSuffix(in, []byte("\n\n")) {
				variants["no last line end"] = [2][]byte{bytes.TrimSuffix(in, []byte("\n")), bytes.TrimSuffix(want, []byte("\n"))}
			}
			for about, texts := range variants {
				got, err := c.Add(texts[0], "demo-one", testServer, false)
				if err != nil || string(got) != string(texts[1]) {
					t.Errorf("%s: %v: got\n%q, want\n%q", about, err, got, texts[1])
				}
				again, err := c.Add(got, "demo-one", testServer, false)
				if err != nil || string(again) != string(got) {
					t.Errorf("%s: twice: %v: %q", about, err, again)
				}
				back, err := c.Remove(got, "demo-one")
				if keeps := strings.Contains(string(in), c.Key) || c.toml; err != nil || keeps && string(back) != string(texts[0]) {
					t.Errorf("%s: removed: %v: got\n%q, want\n%q", about, err, back, texts[0])
				}
				other, err := c.Remove(got, "another")
				if err != nil || string(other) != string(got) {
					t.Errorf("%s: another removed: %v: %q", about, err, other)
				}
			}
		})
	}
}

// A new file, and one with nothing in it.
func TestNew(t *testing.T) {
	const json = `{
  "mcpServers": {
    "a": {
      "type": "stdio",
      "command": "b",
      "args": [
        "c"
      ]
    }
  }
}
`
	for _, tt := range []struct{ name, client, before, want string }{
		{"JSON", "claude", "", json},
		{"blank lines", "claude", "\n", "\n" + json},
		{"a byte order mark", "claude", byteOrderMark, byteOrderMark + json},
		{"an empty object", "claude", "{}", strings.TrimSuffix(json, "\n")},
		{"an object on one line", "cursor", `{"x":1}`, `{"x":1, "mcpServers": {"a": {"type":"stdio","command":"b","args":["c"]}}}`},
		{"VS Code", "vscode", "", strings.Replace(json, "mcpServers", "servers", 1)},
		{"TOML", "codex", "", "[mcp_servers.a]\ncommand = \"b\"\nargs = [\"c\"]\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := client(t, tt.client).Add([]byte(tt.before), "a", Server{Command: "b", Args: []string{"c"}}, false)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, string(got)); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}

// Another server of the name is replaced only on demand, and nothing else with it.
func TestReplace(t *testing.T) {
	s := Server{Command: "b", Args: []string{"c"}}
	for _, tt := range []struct{ name, client, before, want string }{
		{"on one line", "claude", `{"mcpServers": {"a": {"command": "x"}, "z": 1}}`, `{"mcpServers": {"a": {"type":"stdio","command":"b","args":["c"]}, "z": 1}}`},
		{"on several", "vscode", "{ // it\n\t\"servers\": {\n\t\t\"a\": {}, // mine\n\t}\n}", "{ // it\n\t\"servers\": {\n\t\t\"a\": {\n\t\t\t\"type\": \"stdio\",\n\t\t\t\"command\": \"b\",\n\t\t\t\"args\": [\n\t\t\t\t\"c\"\n\t\t\t]\n\t\t}, // mine\n\t}\n}"},
		{"one key more", "cursor", `{"mcpServers": {"a": {"type":"stdio","command":"b","args":["c"],"envFile":"x"}}}`, `{"mcpServers": {"a": {"type":"stdio","command":"b","args":["c"]}}}`},
		{"not an object", "cursor", `{"mcpServers": {"a": null}}`, `{"mcpServers": {"a": {"type":"stdio","command":"b","args":["c"]}}}`},
		{"a table", "codex", "x = 1\n[mcp_servers.a]\ncommand = 'x' # it\n# c\n\n# next\n[other]\ny = 2", "x = 1\n[mcp_servers.a]\ncommand = \"b\"\nargs = [\"c\"]\n# c\n\n# next\n[other]\ny = 2"},
		{"tables", "codex", "[mcp_servers.\"a\"]\ncommand = 'x'\n\n[ mcp_servers . 'a' . env ] # more\nX = '''\n other \n'''\n\n[other]\n", "[mcp_servers.a]\ncommand = \"b\"\nargs = [\"c\"]\n\n[other]\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := client(t, tt.client)
			_, err := c.Add([]byte(tt.before), "a", s, false)
			if _, ok := errors.AsType[*DifferentError](err); !ok {
				t.Errorf("without replace: %v", err)
			}
			got, err := c.Add([]byte(tt.before), "a", s, true)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, string(got)); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}

func TestRemove(t *testing.T) {
	for _, tt := range []struct{ name, client, before, want string }{
		{"the first", "claude", `{"mcpServers": {"a": 1, "z": 2}}`, `{"mcpServers": { "z": 2}}`},
		{"the last", "claude", `{"mcpServers": {"z": 2, "a": 1}}`, `{"mcpServers": {"z": 2}}`},
		{"the only one", "claude", `{"mcpServers": {"a": 1}}`, `{"mcpServers": {}}`},
		{"a trailing comma", "claude", "{\"mcpServers\": {\n \"z\": 2,\n \"a\": 1, // c\n}}", "{\"mcpServers\": {\n \"z\": 2,\n \"a\": 1, // c\n}}"},
		{"comments", "vscode", "{\"servers\": {\n // z\n \"z\": 2 /* z */ ,\n // a\n \"a\": 1\n // end\n}}", "{\"servers\": {\n // z\n \"z\": 2 /* z */ \n // a\n // end\n}}"},
		{"a comment before, more behind", "vscode", "{\"servers\": { // a\n \"a\": 1, \"z\": 2}}", "{\"servers\": { // a\n  \"z\": 2}}"},
		{"a table in the middle", "codex", "[x]\n\n[mcp_servers.a]\nb = 1\n\n# y\n[y]\n", "[x]\n\n# y\n[y]\n"},
		{"below", "codex", "[mcp_servers.a.env]\nb = 1\n[mcp_servers.ab]\n", "[mcp_servers.ab]\n"},
		{"not there", "codex", "[mcp_servers.ab]\n", "[mcp_servers.ab]\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := client(t, tt.client).Remove([]byte(tt.before), "a")
			if err != nil {
				t.Fatal(err)
			}
			if tt.name == "a trailing comma" {
				tt.want = "{\"mcpServers\": {\n \"z\": 2,\n  // c\n}}"
			}
			if d := cmp.Diff(tt.want, string(got)); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}

// What can't be edited is refused, and says why.
func TestRefused(t *testing.T) {
	for _, tt := range []struct{ name, client, before, want string }{
		{"not JSON", "claude", "{", "is not valid JSON"},
		{"NUL", "claude", "{\x00}", "is not valid JSON"},
		{"a list", "claude", "[]", "is not a JSON object"},
		{"two values", "claude", "{}{}", "is not valid JSON"},
		{"servers are a list", "vscode", `{"servers": []}`, `"servers" is not a JSON object`},
		{"servers twice", "vscode", `{"servers": {}, "\u0073ervers": {}}`, `has the key "servers" twice`},
		{"a server twice", "vscode", `{"servers": {"a": 1, "a": 2}}`, `has the server "a" twice`},
		{"too large", "vscode", strings.Repeat(" ", MaxSize+1), "has more than 1048576 bytes"},
		{"too deep", "vscode", strings.Repeat("[", MaxSize), "has 1048576 lists and values, more than 10000"},
		{"not TOML", "codex", "a = ", "is not valid TOML: line 1, column 5"},
		{"UTF-16", "codex", "\xff\xfea\x00", "is not valid TOML"},
		{"no table", "codex", "mcp_servers = 1", "mcp_servers is not a table"},
		{"an array of tables", "codex", "[[mcp_servers]]", "mcp_servers is not a table"},
		{"an inline table", "codex", "mcp_servers = {b = {}}", "edit it by hand"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := client(t, tt.client).Add([]byte(tt.before), "a", testServer, true)
			if err == nil || !strings.Contains(err.Error(), tt.want) || got != nil {
				t.Errorf("got %q, %v, want %s", got, err, tt.want)
			}
		})
	}
}

// Entries that this program doesn't write as they are stay as they are.
func TestNotEdited(t *testing.T) {
	for name, before := range map[string]string{
		"dotted keys":       "mcp_servers.a.command = 'x'",
		"an inline table":   "[mcp_servers]\na = {command = 'x'}",
		"below alone":       "[mcp_servers.a.env]\nX = 'y'",
		"lines of a string": "x = '''\n[mcp_servers.a]\n[x]\n'''\n[mcp_servers]\na = {command = 'x'}",
		"in its string":     "[mcp_servers.a]\ncommand = '''\n[other]\n'''",
		"in a string":       "[mcp_servers]\na = {command = '''\n[mcp_servers.a]\n'''}",
	} {
		t.Run(name, func(t *testing.T) {
			c := client(t, "codex")
			if got, err := c.Add([]byte(before), "a", testServer, true); !errors.Is(err, errNotEdited) {
				t.Errorf("got %q, %v", got, err)
			}
			if got, err := c.Remove([]byte(before), "a"); name != "below alone" && !errors.Is(err, errNotEdited) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

// What a client would take for something else isn't written.
func TestCheck(t *testing.T) {
	for _, tt := range []struct{ name, client, arg, want string }{
		{"a variable", "claude", "/home/${USER}/x", "Claude Code replaces"},
		{"TOML has none", "codex", "/home/${USER}/x", ""},
		{"a dollar", "claude", "/home/$x/{y}", ""},
		{"not UTF-8", "codex", "/home/\xff", "is not UTF-8"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := client(t, tt.client).Add(nil, "a", Server{Command: tt.arg}, false)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
