package facts

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestSockets: sockets are found wherever they are, and nothing else is one (B7).
func TestSockets(t *testing.T) {
	dir, err := os.MkdirTemp("", "s") // a short path, for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := os.MkdirAll(at("a/.git/b"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"z.sock", "a/.git/b/x"} {
		l, err := net.Listen("unix", at(name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
	}
	if err := os.WriteFile(at("a/file.sock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(at("z.sock"), at("a/link")); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tt := range []struct {
		name, root string
		ctx        context.Context
		want       []string
		missed     bool
	}{
		{"below", dir, t.Context(), []string{at("a/.git/b/x"), at("z.sock")}, false},
		{"itself", at("z.sock"), t.Context(), []string{at("z.sock")}, false},
		{"a file", at("a/file.sock"), t.Context(), nil, false},
		{"nothing", at("a/none"), t.Context(), nil, true},
		{"no time", dir, ended, nil, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, missed := Sockets(tt.ctx, tt.root)
			if !slices.Equal(got, tt.want) || (missed != nil) != tt.missed {
				t.Errorf("got %q, %v, want %q", got, missed, tt.want)
			}
		})
	}
}
