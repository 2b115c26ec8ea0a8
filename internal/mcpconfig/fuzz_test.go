package mcpconfig

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A file with any bytes, as a hostile repository or worker has it, is either refused or
// gets the server; no byte of it is lost, and none that isn't the server's is taken away
// with that again (B60).
func FuzzEdit(f *testing.F) {
	names, _ := filepath.Glob("testdata/*-*")
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for i := range Clients() {
			f.Add(i, text)
			f.Add(i, crlf(text))
		}
	}
	for _, text := range []string{"", "{", "\x00", byteOrderMark + "{}", `{"servers":{"a":1,},}//`, "[mcp_servers]\n[mcp_servers.'a']", "a = '''\n[mcp_servers.a]\n'''"} {
		for i := range Clients() {
			f.Add(i, []byte(text))
		}
	}
	f.Fuzz(func(t *testing.T, i int, text []byte) {
		all := Clients()
		if i < 0 || i >= len(all) {
			return
		}
		c, begin, given := all[i], time.Now(), bytes.Clone(text)
		added, err := c.Add(text, "a", testServer, false)
		if _, other := errors.AsType[*DifferentError](err); other {
			added, err = c.Add(text, "a", testServer, true)
		} else if err == nil && (!isPart(text, added) || len(added) > len(text)+2000) {
			t.Fatalf("%q\nis not all in\n%q", text, added)
		}
		if err != nil {
			if added != nil {
				t.Fatalf("%v, with %q", err, added)
			}
			return
		}
		if again, err := c.Add(added, "a", testServer, false); err != nil || !bytes.Equal(again, added) {
			t.Fatalf("again: %v\n%q\n%q", err, added, again)
		}
		removed, err := c.Remove(added, "a")
		switch {
		case errors.Is(err, errNotEdited):
		case err != nil:
			t.Fatal(err)
		case !isPart(removed, added):
			t.Fatalf("%q\nis not all in\n%q", removed, added)
		default:
			if again, err := c.Remove(removed, "a"); err != nil || !bytes.Equal(again, removed) {
				t.Fatalf("removed again: %v", err)
			}
		}
		if !bytes.Equal(text, given) {
			t.Fatal("the text that was given is another now")
		}
		if d := time.Since(begin); d > 10*time.Second {
			t.Fatalf("took %s", d)
		}
	})
}

// isPart reports whether all bytes of a are in b, in their order.
func isPart(a, b []byte) bool {
	for _, c := range b {
		if len(a) > 0 && a[0] == c {
			a = a[1:]
		}
	}
	return len(a) == 0
}

// The time for a large file is bounded (B60): the parser of TOML compares each key with
// all others of its table.
func TestLarge(t *testing.T) {
	keys := func(n int) (text []byte) {
		for i := range n {
			text = fmt.Appendf(text, "k%d = 1\n", i)
		}
		return text
	}
	for _, tt := range []struct {
		name, client string
		text         []byte
		refused      bool
	}{
		{"keys", "codex", keys(maxParts - 1), false},
		{"more keys", "codex", keys(maxParts + 1), true},
		{"lines", "codex", bytes.Repeat([]byte("\n"), MaxSize-1), false},
		{"values", "claude", fmt.Appendf(nil, `{"x": [%s 1]}`, bytes.Repeat([]byte("1,"), maxParts-2)), false},
		{"more values", "claude", fmt.Appendf(nil, `{"x": [%s 1]}`, bytes.Repeat([]byte("1,"), MaxSize/2-100)), true},
		{"comments", "vscode", fmt.Appendf(nil, "{%s}", bytes.Repeat([]byte("//\n"), MaxSize/3-100)), false},
		{"depth", "vscode", fmt.Appendf(nil, `{"x": %s%s}`, bytes.Repeat([]byte("["), maxParts-2), bytes.Repeat([]byte("]"), maxParts-2)), false},
		{"depth", "codex", fmt.Appendf(nil, `x = %s%s`, bytes.Repeat([]byte("["), maxParts-2), bytes.Repeat([]byte("]"), maxParts-2)), false},
	} {
		t.Run(tt.client+" "+tt.name, func(t *testing.T) {
			begin := time.Now()
			_, err := client(t, tt.client).Add(tt.text, "a", testServer, false)
			if d := time.Since(begin); d > 10*time.Second {
				t.Errorf("took %s", d)
			}
			if (err != nil) != tt.refused {
				t.Error(err)
			}
		})
	}
}
