package initimage

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

// A program for Linux embeds the workshop-init of its own architecture alone.
func TestEmbeddedByPlatform(t *testing.T) {
	for platform, want := range map[string]string{
		"linux/amd64":   "all:bin/amd64 all:bin/names",
		"linux/arm64":   "all:bin/arm64 all:bin/names",
		"linux/riscv64": "all:bin/amd64 all:bin/arm64 all:bin/names",
		"darwin/arm64":  "all:bin/amd64 all:bin/arm64 all:bin/names",
		"windows/amd64": "all:bin/amd64 all:bin/arm64 all:bin/names",
	} {
		t.Run(platform, func(t *testing.T) {
			system, arch, _ := strings.Cut(platform, "/")
			cmd := exec.Command("go", "list", "-f", `{{join .EmbedPatterns " "}}`, ".")
			cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+arch)
			out, err := cmd.CombinedOutput()
			if got := strings.TrimSpace(string(out)); err != nil || got != want {
				t.Errorf("got %q, %v, want %q", got, err, want)
			}
		})
	}
}

// The program for the other architecture is a file, which is used only if it is the one
// whose names are embedded.
func TestOtherArchitecture(t *testing.T) {
	const program = "the program for arm64"
	n, err := Describe("arm64", []byte(program))
	if err != nil {
		t.Fatal(err)
	}
	names, err := json.Marshal(n)
	if err != nil {
		t.Fatal(err)
	}
	file := func(data []byte) func(string) error {
		return func(name string) error { return os.WriteFile(name, data, 0o644) }
	}
	const damaged = "workshop-init for linux/arm64: BIN/workshop-init-linux-arm64.zst can't be used ("
	const replace = "): replace it with the one from the archive of this version of workshop"
	right := file(Pack([]byte(program)))
	for _, tt := range []struct {
		name      string
		bin, libs func(name string) error
		errs      [2]string // what the error begins and ends with; empty: none
	}{
		{"with the program", right, nil, [2]string{}},
		{"in libexec", nil, right, [2]string{}},
		{"missing", nil, nil, [2]string{
			"no workshop-init for linux/arm64: workshop-init-linux-arm64.zst is not in BIN or LIBEXEC: ", "copy it there from the archive of this version of workshop"}},
		{"of another version", file(Pack([]byte("the program for amd64"))), right, [2]string{damaged + "it is of another version", replace}},
		{"of the same size", file(Pack([]byte(strings.ToUpper(program)))), nil, [2]string{damaged + "it is of another version", replace}},
		{"cut", file(Pack([]byte(program))[:20]), nil, [2]string{damaged + "unexpected EOF", replace}},
		{"not packed", file([]byte(program)), nil, [2]string{damaged + "invalid input: magic number mismatch", replace}},
		{"larger than a program", file(Pack(make([]byte, MaxSize+1))), nil, [2]string{damaged, replace}},
		{"a directory", func(name string) error { return os.Mkdir(name, 0o755) }, nil, [2]string{damaged, replace}},
		{"a link to nothing", func(name string) error { return os.Symlink("nothing", name) }, nil, [2]string{"no workshop-init for linux/arm64: ", "this version of workshop"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bin, libexec := t.TempDir(), t.TempDir()
			for dir, write := range map[string]func(string) error{bin: tt.bin, libexec: tt.libs} {
				if write != nil {
					if err := write(filepath.Join(dir, FileName("arm64"))); err != nil {
						t.Fatal(err)
					}
				}
			}
			s := NewSet(fstest.MapFS{FileName("amd64"): {Data: Pack([]byte("that for amd64"))}, NamesFile("arm64"): {Data: names}})
			s.dirs = []string{bin, libexec}
			s = s.Else(func(string) (fs.FS, error) { return nil, errors.New("built") })
			// What exists on an engine already is recognised without the program.
			if got, err := s.Names("arm64"); err != nil || got != n {
				t.Errorf("names: %+v, %v", got, err)
			}
			data, err := s.Binary("arm64")
			if tt.errs[1] == "" {
				if err != nil || string(data) != program {
					t.Errorf("got %q, %v", data, err)
				}
				return
			}
			if err == nil {
				t.Fatalf("no error, and %d bytes", len(data))
			}
			got := strings.NewReplacer(bin, "BIN", libexec, "LIBEXEC").Replace(err.Error())
			if !strings.HasPrefix(got, tt.errs[0]) || !strings.HasSuffix(got, tt.errs[1]) {
				t.Errorf("got  %s\nwant %s … %s", got, tt.errs[0], tt.errs[1])
			}
		})
	}
}
