package initimage

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
)

// What a package installed is used only if it is the embedded program, byte by byte.
func TestInstalled(t *testing.T) {
	const program = "the program"
	n, err := Describe("amd64", []byte(program))
	if err != nil {
		t.Fatal(err)
	}
	names, err := json.Marshal(n)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name  string
		write func(path string) error
		used  bool
	}{
		{"the same", func(path string) error { return os.WriteFile(path, []byte(program), 0o755) }, true},
		{"another of its size", func(path string) error { return os.WriteFile(path, []byte("THE PROGRAM"), 0o755) }, false},
		{"a longer one", func(path string) error { return os.WriteFile(path, []byte(program+" and more"), 0o755) }, false},
		{"a directory", func(path string) error { return os.Mkdir(path, 0o755) }, false},
		{"none", func(string) error { return nil }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "workshop-init")
			if err := tt.write(path); err != nil {
				t.Fatal(err)
			}
			// The packed one is damaged, so that it shows which is used.
			s := NewSet(fstest.MapFS{FileName("amd64"): {Data: []byte("damaged")}, NamesFile("amd64"): {Data: names}})
			s.installed = path
			if b, err := s.Binary("amd64"); (err == nil && string(b) == program) != tt.used {
				t.Errorf("got %q, %v", b, err)
			}
		})
	}
}
