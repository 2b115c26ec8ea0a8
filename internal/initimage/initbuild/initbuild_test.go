package initbuild

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/modfile"
	modmodule "golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	modzip "golang.org/x/mod/zip"

	"github.com/llmdo/workshop/internal/initimage"
)

func TestSourceOf(t *testing.T) {
	const file = "/home/u/workshop/internal/initimage/initbuild/source.go"
	main := func(m debug.Module) *debug.BuildInfo { return &debug.BuildInfo{GoVersion: "go1.26.0", Main: m} }
	for _, tt := range []struct {
		name string
		info *debug.BuildInfo
		file string
		want source
		err  string
	}{
		{"a version", main(debug.Module{Path: module, Version: "v1.2.3", Sum: "h1:x"}), file, source{Version: "v1.2.3", Sum: "h1:x"}, ""},
		{"a version, paths trimmed", main(debug.Module{Path: module, Version: "v1.2.3", Sum: "h1:x"}), module + "@v1.2.3/internal/initimage/initbuild/source.go", source{Version: "v1.2.3", Sum: "h1:x"}, ""},
		{"a checkout", main(debug.Module{Path: module, Version: "(devel)"}), file, source{Dir: "/home/u/workshop"}, ""},
		{"a checkout with the version of its commit", main(debug.Module{Path: module, Version: "v0.0.0-20260101000000-0123456789ab+dirty"}), file, source{Dir: "/home/u/workshop"}, ""},
		{"a checkout, paths trimmed", main(debug.Module{Path: module, Version: "(devel)"}), module + "/internal/initimage/initbuild/source.go", source{}, "make build"},
		{"another file", main(debug.Module{Path: module, Version: "(devel)"}), "/home/u/x.go", source{}, "make build"},
		{"a program that uses a version", &debug.BuildInfo{GoVersion: "go1.26.0", Main: debug.Module{Path: "x.example/y"}, Deps: []*debug.Module{{Path: module, Version: "v1.2.3", Sum: "h1:x"}}}, file, source{Version: "v1.2.3", Sum: "h1:x"}, ""},
		{"a program that uses a checkout", &debug.BuildInfo{GoVersion: "go1.26.0", Main: debug.Module{Path: "x.example/y"}, Deps: []*debug.Module{{Path: module, Version: "v1.2.3", Sum: "h1:x", Replace: &debug.Module{Path: "../workshop"}}}}, file, source{Dir: "/home/u/workshop"}, ""},
		{"another program", main(debug.Module{Path: "x.example/y"}), file, source{}, "was not built from"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := sourceOf(tt.info, tt.file)
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Fatalf("got %v, want %q", err, tt.err)
			}
			if tt.err == "" {
				tt.want.Go = "go1.26.0"
			}
			if got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

// checkout is a small module of that name, whose program says what it was built of.
func checkout(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "go.mod", "module "+module+"\n\ngo 1.24\n")
	write(t, dir, "go.sum", "")
	write(t, dir, "cmd/workshop-init/main.go", "package main\n\nimport \""+module+"/internal/part\"\n\nfunc main() { print(part.Name) }\n")
	write(t, dir, "internal/part/part.go", "package part\n\nconst Name = \"the source\"\n")
	write(t, dir, "internal/part/part_linux.go", "package part\n")
	return dir
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	name = filepath.Join(dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

type builder struct {
	s    source
	o    Options
	said []string
}

func newBuilder(t *testing.T, s source, env map[string]string) *builder {
	t.Helper()
	b := &builder{s: s}
	b.o = Options{CacheDir: t.TempDir(), Say: func(text string) { b.said = append(b.said, text) }, Lookup: func(name string) (string, bool) {
		if v, ok := env[name]; ok {
			return v, true
		}
		return os.LookupEnv(name)
	}}
	return b
}

func (b *builder) set() *initimage.Set {
	return initimage.NewSet(os.DirFS(filepath.Join(b.o.CacheDir, "nothing"))).Else(func(arch string) (fs.FS, error) {
		return files(context.Background(), b.o, arch, func() (source, error) { return b.s, nil })
	})
}

// says runs the program.
func (b *builder) says(t *testing.T) (string, error) {
	t.Helper()
	data, err := b.set().Binary(runtime.GOARCH)
	if err != nil {
		return "", err
	}
	name := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(name, data, 0o755); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(name).CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	return string(out), nil
}

// Nothing but the source decides what is built: not the environment, the user's settings
// of Go, or files of a working directory.
func TestCheckout(t *testing.T) {
	dir, here := checkout(t), t.TempDir()
	write(t, here, "other/part/part.go", "package part\n\nconst Name = \"something else\"\n")
	write(t, here, "overlay.json", `{"Replace": {"`+dir+`/internal/part/part.go": "`+here+`/other/part/part.go"}}`)
	for _, name := range []string{"env", "config/go/env"} {
		write(t, here, name, "GOFLAGS=-overlay="+here+"/overlay.json\nGOTOOLCHAIN=go1.99.0\n")
	}
	// A repository's configuration names programs that git runs.
	write(t, dir, ".git/HEAD", "ref: refs/heads/main\n")
	write(t, here, "bin/git", "#!/bin/sh\ntouch "+here+"/git-ran\nexit 1\n")
	if err := os.Chmod(here+"/bin/git", 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, here, "go.work", "go 1.99\n\ntoolchain go1.99.0\n\nuse ./nowhere\n")
	write(t, dir, "go.work", "go 1.99\n\ntoolchain go1.99.0\n\nuse ./nowhere\n")
	write(t, dir, "vendor/modules.txt", "# x.example/y v1.0.0\n## explicit\nx.example/y\n")
	t.Chdir(here)
	hostile := map[string]string{
		"GOFLAGS": "-overlay=" + here + "/overlay.json", "GOWORK": here + "/go.work", "GOENV": here + "/env", "GOTOOLCHAIN": "go1.99.0", "GOROOT": here,
		"GOOS": "windows", "GOARCH": "386", "GOEXPERIMENT": "none-such", "CGO_ENABLED": "1", "GOCACHEPROG": "/bin/false", "GODEBUG": "x",
		"XDG_CONFIG_HOME": here + "/config", "PATH": here + "/bin:" + os.Getenv("PATH"),
	}
	for name, value := range hostile {
		t.Setenv(name, value)
	}
	b := newBuilder(t, source{Dir: dir, Linked: time.Now().Add(time.Second), Go: runtime.Version()}, nil)
	got, err := b.says(t)
	if err != nil || got != "the source" {
		t.Fatalf("got %q, %v", got, err)
	}
	if _, err := os.Stat(here + "/git-ran"); err == nil {
		t.Error("git was run")
	}
	if len(b.said) != 1 || !strings.Contains(b.said[0], "from "+dir) {
		t.Errorf("said %q", b.said)
	}
	// It is kept: nothing is built again, even without the source.
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if got, err := b.says(t); err != nil || got != "the source" || len(b.said) != 1 {
		t.Errorf("kept: %q, %v, said %q", got, err, b.said)
	}
	// Another program that was linked there has another source.
	b.s.Linked = b.s.Linked.Add(time.Nanosecond)
	if _, err := b.says(t); err == nil || !strings.Contains(err.Error(), "no longer in "+dir) || !strings.Contains(err.Error(), "go install ./cmd/workshop") {
		t.Errorf("without its source: %v", err)
	}
}

// A program in the cache that others could have written is not used.
func TestCacheOfOthers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file away")
	}
	b := newBuilder(t, source{Dir: checkout(t), Linked: time.Now().Add(time.Second), Go: runtime.Version()}, nil)
	if _, err := b.says(t); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(b.o.CacheDir, "built", b.s.key())
	if err := os.Chown(dir, 65532, 65532); err != nil {
		t.Fatal(err)
	}
	if _, err := b.says(t); err == nil || !strings.Contains(err.Error(), "belongs to another user") {
		t.Errorf("got %v", err)
	}
}

// A checkout that changed since the program was linked isn't what it was built of.
func TestChangedCheckout(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(dir string) error
		err    string // empty: it doesn't matter
	}{
		{"content", func(dir string) error {
			return os.WriteFile(dir+"/internal/part/part.go", []byte("package part\n\nconst Name = \"\"\n"), 0)
		}, "part.go changed after"},
		{"content, with its old time", func(dir string) error {
			name := dir + "/internal/part/part.go"
			info, err := os.Stat(name)
			return errors.Join(err, os.WriteFile(name, []byte("package part\n\nconst Name = \"\"\n"), 0), os.Chtimes(name, info.ModTime(), info.ModTime()))
		}, "part.go changed after"},
		{"a file more", func(dir string) error {
			return os.WriteFile(dir+"/internal/part/more.go", []byte("package part\n"), 0o644)
		}, "changed after"},
		{"a file less", func(dir string) error { return os.Remove(dir + "/internal/part/part_linux.go") }, "internal/part changed after"},
		{"the module", func(dir string) error {
			return os.WriteFile(dir+"/go.mod", []byte("module "+module+"\n\ngo 1.25\n"), 0)
		}, "go.mod changed after"},
		{"a replaced directory", func(dir string) error {
			return errors.Join(os.Rename(dir+"/internal/part", dir+"/internal/x"), os.Mkdir(dir+"/internal/part", 0o755), os.Link(dir+"/internal/x/part.go", dir+"/internal/part/part.go"))
		}, "changed after"},
		{"a file that isn't built", func(dir string) error { return os.WriteFile(dir+"/README.md", nil, 0o644) }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := checkout(t)
			time.Sleep(20 * time.Millisecond) // the clock of file systems ticks
			b := newBuilder(t, source{Dir: dir, Linked: time.Now(), Go: runtime.Version()}, nil)
			time.Sleep(20 * time.Millisecond)
			if err := tt.change(dir); err != nil {
				t.Fatal(err)
			}
			_, err := b.says(t)
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("got %v, want %q", err, tt.err)
			}
		})
	}
}

// A checkout that somebody else can write to builds nothing.
func TestCheckoutOfOthers(t *testing.T) {
	for name, change := range map[string]func(name string) error{
		"writable by all": func(name string) error { return os.Chmod(name, 0o666) },
		"another's":       func(name string) error { return os.Chown(name, 65532, 65532) },
	} {
		t.Run(name, func(t *testing.T) {
			if os.Geteuid() != 0 {
				t.Skip("only root can give a file away")
			}
			dir := checkout(t)
			if err := change(dir + "/internal/part/part.go"); err != nil {
				t.Fatal(err)
			}
			b := newBuilder(t, source{Dir: dir, Linked: time.Now().Add(time.Second), Go: runtime.Version()}, nil)
			if _, err := b.says(t); err == nil || !strings.Contains(err.Error(), "of another user") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// proxy has the module's version in a directory, as a module proxy.
func proxy(t *testing.T, dir, version string) (url, sum string) {
	t.Helper()
	at := t.TempDir()
	var b bytes.Buffer
	if err := modzip.CreateFromDir(&b, modmodule.Version{Path: module, Version: version}, dir); err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := modfile.Parse("go.mod", mod, nil); err != nil {
		t.Fatal(err)
	}
	base := module + "/@v/" + version
	write(t, at, base+".mod", string(mod))
	write(t, at, base+".info", `{"Version": "`+version+`"}`)
	write(t, at, base+".zip", b.String())
	sum, err = dirhash.HashZip(filepath.Join(at, base+".zip"), dirhash.Hash1)
	if err != nil {
		t.Fatal(err)
	}
	return "file://" + filepath.ToSlash(at), sum
}

// A version of the module is built as its hash says, or not at all.
func TestVersion(t *testing.T) {
	url, sum := proxy(t, checkout(t), "v0.9.0")
	cache := t.TempDir()
	env := map[string]string{"GOPROXY": url, "GONOSUMDB": "github.com/llmdo", "GOMODCACHE": cache, "GOFLAGS": "-mod=mod -modcacherw"}
	t.Cleanup(func() {
		clean := exec.Command("go", "clean", "-modcache")
		clean.Env = append(os.Environ(), "GOMODCACHE="+cache)
		_ = clean.Run()
	})
	b := newBuilder(t, source{Version: "v0.9.0", Sum: sum, Go: runtime.Version()}, env)
	if got, err := b.says(t); err != nil || got != "the source" {
		t.Fatalf("got %q, %v", got, err)
	}
	b.s.Sum = "h1:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
	if _, err := b.says(t); err == nil || !strings.Contains(err.Error(), "this program was built from h1:47DE") {
		t.Errorf("another hash: %v", err)
	}
	b.s.Sum = sum
	b.o.CacheDir = t.TempDir()
	part := filepath.Join(cache, module+"@v0.9.0/internal/part/part.go")
	if err := errors.Join(os.Chmod(part, 0o644), os.WriteFile(part, []byte("package part\n\nconst Name = \"\"\n"), 0)); err != nil {
		t.Fatal(err)
	}
	if _, err := b.says(t); err == nil || !strings.Contains(err.Error(), "changed since it was downloaded") {
		t.Errorf("a changed cache: %v", err)
	}
}

// Without a toolchain it says what to install.
func TestNoToolchain(t *testing.T) {
	usual := usualGo
	t.Cleanup(func() { usualGo = usual })
	usualGo = filepath.Join(t.TempDir(), "go")
	t.Setenv("PATH", t.TempDir())
	b := newBuilder(t, source{Dir: "/nowhere", Go: runtime.Version()}, nil)
	_, err := b.set().Names(runtime.GOARCH)
	var not *initimage.NotBuiltError
	if !errors.As(err, &not) || !errors.Is(err, errNoGo) || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v", err)
	}
}
