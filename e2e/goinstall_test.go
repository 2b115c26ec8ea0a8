//go:build linux

package e2e

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"

	"github.com/llmdo/workshop/e2e/scenario"
)

const ourModule = "github.com/llmdo/workshop"

// TestGoInstall: `go install MODULE/cmd/workshop@VERSION` makes a program that works: at
// the first up it builds workshop-init, of that version, and keeps it. The module comes
// from a proxy in a directory, which has this source.
func TestGoInstall(t *testing.T) {
	scenario.Once(t, "what is built is the same for every engine, and takes a minute")
	s := scenario.New(t, "none", "a program of go install builds what runs inside at the first up, once")
	proxy, version := moduleProxy(t, s.Root)
	env := []string{"GOPROXY=file://" + proxy + "," + goEnv(t, "GOPROXY"), "GOSUMDB=off", "GOWORK=off", "GOMODCACHE=" + goEnv(t, "GOMODCACHE"), "GOCACHE=" + goEnv(t, "GOCACHE")}
	removeModules(t, version)
	bin := s.TempDir()
	install := exec.Command("go", "install", ourModule+"/cmd/workshop@"+version)
	install.Dir, install.Env = s.TempDir(), append(append(os.Environ(), env...), "GOBIN="+bin)
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s.Env = append(append(s.Env, env...), "XDG_CACHE_HOME="+s.TempDir())
	run := func(args ...string) string {
		t.Helper()
		out, err := s.Program(context.Background(), filepath.Join(bin, "workshop"), args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	if out := run("--version"); !strings.Contains(out, version) {
		t.Errorf("version: %s", out)
	}
	for _, want := range []bool{true, false} {
		if out := run("up"); strings.Contains(out, "building workshop-init from "+ourModule+"@"+version) != want {
			t.Errorf("built: want %v in\n%s", want, out)
		}
		if out := run("exec", "worker", "--", "sh", "-c", "echo inside"); out != "inside\n" {
			t.Errorf("exec: %q", out)
		}
		run("down")
	}
}

// moduleProxy is a module proxy in a directory that has this source, and the version that
// it has there: another one for each content, as caches keep versions.
func moduleProxy(t *testing.T, root string) (dir, version string) {
	t.Helper()
	list, err := exec.Command("git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	files, sum := filepath.Join(dir, "source"), sha256.New()
	for _, name := range strings.Split(strings.TrimSuffix(string(list), "\x00"), "\x00") {
		data, err := os.ReadFile(filepath.Join(root, name))
		if st, e := os.Lstat(filepath.Join(root, name)); err != nil || e != nil || !st.Mode().IsRegular() || module.CheckFilePath(name) != nil {
			continue // a link, or removed and still in the index
		}
		to := filepath.Join(files, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, data, 0o644)); err != nil {
			t.Fatal(err)
		}
		_, _ = sum.Write([]byte(name + "\x00"))
		_, _ = sum.Write(data)
	}
	version = "v0.99.0-x" + hex.EncodeToString(sum.Sum(nil)[:8])
	var b bytes.Buffer
	if err := zip.CreateFromDir(&b, module.Version{Path: ourModule, Version: version}, files); err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	at := filepath.Join(dir, ourModule, "@v")
	err = errors.Join(err, os.MkdirAll(at, 0o755),
		os.WriteFile(filepath.Join(at, version+".zip"), b.Bytes(), 0o644), os.WriteFile(filepath.Join(at, version+".mod"), mod, 0o644),
		os.WriteFile(filepath.Join(at, "list"), []byte(version+"\n"), 0o644), os.WriteFile(filepath.Join(at, version+".info"), []byte(`{"Version": "`+version+`"}`), 0o644), os.RemoveAll(files))
	if err != nil {
		t.Fatal(err)
	}
	return dir, version
}

// removeModules removes versions of earlier runs from the module cache.
func removeModules(t *testing.T, but string) {
	t.Helper()
	old, err := filepath.Glob(filepath.Join(goEnv(t, "GOMODCACHE"), ourModule+"@v0.99.0-x*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range old {
		if !strings.HasSuffix(dir, "@"+but) {
			_ = filepath.WalkDir(dir, func(path string, _ os.DirEntry, _ error) error { _ = os.Chmod(path, 0o755); return nil })
			_ = os.RemoveAll(dir)
		}
	}
	old, _ = filepath.Glob(filepath.Join(goEnv(t, "GOMODCACHE"), "cache/download", ourModule, "@v/v0.99.0-x*"))
	for _, name := range old {
		if !strings.Contains(name, but+".") {
			_ = os.Remove(name)
		}
	}
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}
