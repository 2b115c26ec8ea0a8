//go:build linux

package facts

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/lib/fileowner"
	"github.com/llmdo/workshop/workshop"
)

// project makes a directory with a workshop.yaml and loads it.
func project(t *testing.T, container string) (dir string, o Options) {
	t.Helper()
	return projectOf(t, container, "[one]")
}

// projectOf is project with the list of workers.
func projectOf(t *testing.T, container, workers string) (dir string, o Options) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "workers/one.md", "---\nname: one\ndescription: d\nallowed-tools: Read\n---\nWork.\n")
	write(t, dir, "workshop.yaml", "workshop:\n  name: facts-test\n  container:\n    image: x:1\n"+container+"  workers: "+workers+"\n")
	env := map[string]string{"TOKEN": "s3cret", "XDG_RUNTIME_DIR": runtimeRoot(t)}
	lookup := func(n string) (string, bool) { v, ok := env[n]; return v, ok }
	w, list := workshop.Load(t.Context(), os.DirFS(dir), "workshop.yaml", workshop.Options{Lookup: lookup, Home: "/home/nobody"})
	if list.HasErrors() {
		t.Fatal(list)
	}
	c, err := compose.Compile(w)
	if err != nil {
		t.Fatal(err)
	}
	return dir, Options{
		Workshop: w, Compiled: c, ProjectDir: dir, Lookup: lookup, UID: os.Getuid(), GID: os.Getgid(),
		Arch: "amd64", Local: true, InitImage: "sha256:1", InitVolume: "v",
	}
}

// runtimeRoot is a private directory on a memory file system.
func runtimeRoot(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "facts-test-")
	testutil.Require(t, err == nil, "no /dev/shm")
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func write(t *testing.T, dir, name, content string) {
	t.Helper()
	p := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// collect is Collect, and with create what `up` does then: it makes what is
// missing, and looks again where directories were made.
func collect(t *testing.T, o Options, create bool) (compose.Facts, diag.List) {
	t.Helper()
	f, missing, list := Collect(t.Context(), o)
	if !create {
		return f, list
	}
	list = append(list, missing.Make()...)
	if len(f.ToCreate) > 0 && !list.HasErrors() {
		f, _, list = Collect(t.Context(), o)
	}
	return f, list
}

// judge collects, makes and compiles, and returns all problems.
func judge(t *testing.T, o Options) (*compose.Compiled, diag.List) {
	t.Helper()
	return judgeRun(t, o, true)
}

func judgeRun(t *testing.T, o Options, create bool) (*compose.Compiled, diag.List) {
	t.Helper()
	f, list := collect(t, o, create)
	c, more := compose.WithFacts(o.Compiled, f)
	return c, append(list, more...)
}

func codes(list diag.List) []string {
	var out []string
	for _, d := range list {
		out = append(out, d.Code)
	}
	return out
}

const srcAndOutput = "    mounts: [./src:/src, ./output:/output:rw]\n"

// A missing rw directory is made with the worker's owner (B4), a dry run
// makes nothing, and the whole passes the check.
func TestMissingWritableDirectoryIsMade(t *testing.T) {
	dir, o := project(t, "    mounts: [./src:/src, ./a/output:/output:rw]\n")
	write(t, dir, "src/x", "")
	f, _, list := Collect(t.Context(), o)
	if len(list) > 0 || !slices.Equal(f.ToCreate, []string{"./a/output"}) {
		t.Fatalf("dry run: %v, to create %v", list, f.ToCreate)
	}
	if _, err := os.Lstat(filepath.Join(dir, "a")); err == nil {
		t.Fatal("a dry run made a directory")
	}
	if _, list := compose.WithFacts(o.Compiled, f); len(list) > 0 {
		t.Fatal(list)
	}
	c, list := judge(t, o)
	if len(list) > 0 {
		t.Fatal(list)
	}
	for _, p := range []string{"a", "a/output"} {
		info, err := os.Stat(filepath.Join(dir, p))
		if err != nil {
			t.Fatal(err)
		}
		if uid, _, _ := fileowner.Of(info); uid != c.Facts.UID {
			t.Errorf("%s belongs to %d; want %d", p, uid, c.Facts.UID)
		}
	}
	if v := compose.Check(c); len(v) > 0 {
		t.Error(v)
	}
}

func TestProblemsOfSources(t *testing.T) {
	tests := []struct {
		name, container, code, says string
		prepare                     func(t *testing.T, dir string)
		worker                      string
	}{
		{"missing ro source", srcAndOutput, "mount-source-missing", "mkdir -p", func(*testing.T, string) {}, ""},
		{"symlink to the place of the engine's socket, made after validate", srcAndOutput, "mount-source-refused", "/run", func(t *testing.T, dir string) {
			symlink(t, "/var/run", filepath.Join(dir, "src"))
		}, ""},
		{"symlink to /etc", srcAndOutput, "mount-source-refused", "/etc", func(t *testing.T, dir string) {
			symlink(t, "/etc", filepath.Join(dir, "src"))
		}, ""},
		{"symlink out of the project", srcAndOutput, "mount-outside-project", "outside_project: true", func(t *testing.T, dir string) {
			symlink(t, t.TempDir(), filepath.Join(dir, "src"))
		}, ""},
		{"socket", srcAndOutput, "mount-special-files", "sockets: allow", func(t *testing.T, dir string) {
			write(t, dir, "src/a/x", "")
			l, err := net.Listen("unix", filepath.Join(dir, "src/a/s"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { l.Close() })
		}, ""},
		{"FIFO", srcAndOutput, "mount-special-files", "src/deep/er/fifo", func(t *testing.T, dir string) {
			write(t, dir, "src/deep/er/x", "")
			if err := syscall.Mkfifo(filepath.Join(dir, "src/deep/er/fifo"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, ""},
		{"FIFO in a mount with other keys", "    mounts: [{source: ., target: /w, mode: rw, git: rw}]\n", "mount-special-files", "write {source: ., target: /w, mode: rw, git: rw, sockets: allow}", func(t *testing.T, dir string) {
			if err := syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, ""},
		{"rw directory of another", srcAndOutput, "mount-not-writable", "chown -R", func(t *testing.T, dir string) {
			testutil.Require(t, os.Geteuid() == 0, "only root can give a file away")
			write(t, dir, "src/x", "")
			write(t, dir, "output/x", "")
			if err := os.Chown(filepath.Join(dir, "output"), 4321, 4321); err != nil {
				t.Fatal(err)
			}
		}, ""},
		{"file system below", srcAndOutput, "mount-point-below", "src/mnt", func(t *testing.T, dir string) {
			write(t, dir, "src/x", "")
			p := filepath.Join(dir, "src/mnt")
			if err := os.Mkdir(p, 0o755); err != nil {
				t.Fatal(err)
			}
			err := syscall.Mount("tmpfs", p, "tmpfs", 0, "size=4k")
			testutil.Require(t, err == nil, "can't mount a tmpfs")
			t.Cleanup(func() { _ = syscall.Unmount(p, 0) })
		}, ""},
		{"secret without a value", "    secrets: [{name: gone, env: NOT_SET}]\n", "secret-missing", "export NOT_SET",
			func(*testing.T, string) {}, "[{name: one, container: {secrets: [gone]}}]"},
		{"build context that isn't there", "", "build-context-missing", "./img",
			func(*testing.T, string) {}, "[{name: one, container: {build: {context: ./img}}}]"},
		{"build without its file", "", "build-file-missing", "no Other.dockerfile in the build context ./img",
			func(t *testing.T, dir string) { write(t, dir, "img/Dockerfile", "FROM x") }, "[{name: one, container: {build: {context: ./img, dockerfile: Other.dockerfile}}}]"},
		{"build context without a Dockerfile", "", "build-file-missing", "img/Dockerfile",
			func(t *testing.T, dir string) { write(t, dir, "img/x", "") }, "[{name: one, container: {build: {context: ./img}}}]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.worker == "" {
				tt.worker = "[one]"
			}
			dir, o := projectOf(t, tt.container, tt.worker)
			tt.prepare(t, dir)
			_, list := judge(t, o)
			for _, d := range list {
				if d.Code == tt.code && strings.Contains(d.Summary+d.Detail+d.Hint, tt.says) && d.Range.Start.Line > 0 {
					return
				}
			}
			t.Errorf("want %s with %q, got %+v", tt.code, tt.says, list)
		})
	}
}

func symlink(t *testing.T, to, at string) {
	t.Helper()
	if err := os.Symlink(to, at); err != nil {
		t.Fatal(err)
	}
}

// B8: what is found, at any depth but in installed packages, and how it is
// held.
func TestProtectedDirectories(t *testing.T) {
	dir, o := project(t, "    mounts: [{source: ./repo, target: /repo, mode: rw, git: rw}]\n")
	for _, f := range []string{
		"repo/.git/HEAD", "repo/.git/hooks/x", "repo/.git/modules/sub/HEAD", "repo/.git/modules/sub/objects/x", "repo/.git/modules/sub/refs/x", "repo/.git/modules/sub/hooks/x", "repo/.git/objects/aa/x",
		"repo/.Claude/x", "repo/a/b/.vscode/x", "repo/node_modules/p/.github/x", "repo/.github/workflows/.git/x",
		"repo/.cache/mod/example.org/m@v1.2.3/.github/x",
	} {
		write(t, dir, f, "x")
	}
	write(t, dir, "repo/.idea", "a file")
	if err := chownAll(filepath.Join(dir, "repo")); err != nil {
		t.Fatal(err)
	}
	c, list := judge(t, o)
	if len(list) > 0 {
		t.Fatal(list)
	}
	want := []compose.Protected{
		{Path: ".Claude"}, {Path: ".git", Kind: compose.GitDir}, {Path: ".git/hooks", Kind: compose.GitHooks},
		{Path: ".git/modules/sub/hooks", Kind: compose.GitHooks}, {Path: ".github"}, {Path: "a/b/.vscode"},
	}
	if got := c.Facts.Protected["./repo"]; !slices.Equal(got, want) {
		t.Errorf("protected = %v; want %v", got, want)
	}
	var held []string
	for _, v := range c.Project.Services["one"].Volumes {
		if rel, ok := strings.CutPrefix(v.Target, "/repo/"); ok {
			if v.ReadOnly {
				rel += " ro"
			}
			held = append(held, rel)
		}
	}
	wantHeld := []string{".Claude ro", ".git", ".git/hooks ro", ".git/modules", ".git/modules/sub", ".git/modules/sub/hooks ro", ".github ro", "a", "a/b", "a/b/.vscode ro"}
	if !slices.Equal(held, wantHeld) {
		t.Errorf("held = %q; want %q", held, wantHeld)
	}
	if v := compose.Check(c); len(v) > 0 {
		t.Error(v)
	}
}

// chownAll makes a tree writable for whatever user the worker gets.
func chownAll(root string) error {
	return filepath.WalkDir(root, func(p string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chmod(p, 0o777)
	})
}

// B11: a secret is a file of the worker's uid with mode 0400 in a directory of
// the caller alone, and in no other place.
func TestSecrets(t *testing.T) {
	dir, o := projectOf(t, "    secrets: [{name: token, env: TOKEN}, {name: ca, file: ./ca.pem}]\n", "[{name: one, container: {secrets: [token, ca]}}]")
	write(t, dir, "ca.pem", "certificate")
	c, list := judge(t, o)
	if len(list) > 0 {
		t.Fatal(list)
	}
	info, err := os.Stat(c.Facts.RuntimeDir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("runtime directory: %v, %v", info.Mode(), err)
	}
	for name, want := range map[string]string{"token": "s3cret", "ca": "certificate"} {
		file := compose.SecretFile(c.Facts, name, c.Project.Services["one"].User)
		data, err := os.ReadFile(file)
		if err != nil || string(data) != want {
			t.Errorf("%s = %q, %v", name, data, err)
		}
		info, _ := os.Stat(file)
		uid, _, _ := fileowner.Of(info)
		if info.Mode() != 0o400 || uid != c.Facts.UID {
			t.Errorf("%s has mode %v and owner %d", file, info.Mode(), uid)
		}
	}
	if passwd, err := os.ReadFile(filepath.Join(c.Facts.RuntimeDir, "passwd")); err != nil || !strings.HasPrefix(string(passwd), "worker:x:") {
		t.Errorf("passwd = %q, %v", passwd, err)
	}
	files, err := compose.Render(c)
	if err != nil {
		t.Fatal(err)
	}
	more, err := compose.RenderFacts(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range append(files, more...) {
		if strings.Contains(string(f.Data), "s3cret") {
			t.Errorf("%s has the secret", f.Path)
		}
	}
	before := c.Facts.RuntimeDir
	if err := Forget(RuntimeDirs("facts-test", dir, o.UID, o.Lookup, o.Home), o.UID); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(before); err == nil {
		t.Error("the runtime directory is still there")
	}
}

// A changed value is another file, so that the worker's mounts differ and `up`
// makes it anew; the same value is the same file. A dry run makes neither.
func TestChangedSecretIsAnotherFile(t *testing.T) {
	dir, o := projectOf(t, "    secrets: [{name: ca, file: ./ca.pem}]\n", "[{name: one, container: {secrets: [ca]}}]")
	file := func(content string, create bool) string {
		t.Helper()
		write(t, dir, "ca.pem", content)
		c, list := judgeRun(t, o, create)
		if len(list) > 0 {
			t.Fatal(list)
		}
		name := compose.SecretFile(c.Facts, "ca", c.Project.Services["one"].User)
		if data, err := os.ReadFile(name); create && (err != nil || string(data) != content) {
			t.Errorf("%s = %q, %v", name, data, err)
		}
		return name
	}
	first := file("first", true)
	if again := file("first", true); again != first {
		t.Errorf("the same value is in %s and %s", first, again)
	}
	planned := file("second", false)
	if _, err := os.Lstat(planned); planned == first || err == nil {
		t.Errorf("a dry run with another value: %s, %v", planned, err)
	}
	if second := file("second", true); second != planned {
		t.Errorf("planned %s, made %s", planned, second)
	}
	if data, err := os.ReadFile(first); err != nil || string(data) != "first" {
		t.Errorf("the file that a running worker has bound: %q, %v", data, err)
	}
}

// A secret never lands on a disk unasked.
func TestSecretsNeedMemory(t *testing.T) {
	if !inMemory("/dev/shm") || inMemory("/") {
		testutil.Require(t, false, "no tmpfs at /dev/shm, or / is one")
	}
	for _, p := range runtimeParents(4321, func(string) (string, bool) { return "", false }, "/nonexistent") {
		if p.memory != strings.HasPrefix(p.dir, "/dev/shm") {
			t.Errorf("%+v", p)
		}
	}
}

// A directory that somebody else made first is refused.
func TestRuntimeDirectoryOfAnother(t *testing.T) {
	testutil.Require(t, os.Geteuid() == 0, "only root can give a directory away")
	parent := filepath.Join(runtimeRoot(t), "workshop")
	if err := os.Mkdir(parent, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(parent, 4321, 4321); err != nil {
		t.Fatal(err)
	}
	if err := privateDirs(parent, filepath.Join(parent, "x"), 0); err == nil {
		t.Error("a directory of another was taken")
	}
	if got := RuntimeDirs("p", "/nonexistent", 0, func(string) (string, bool) { return filepath.Dir(parent), true }, ""); len(got) > 0 {
		t.Errorf("what another made is read: %s", got)
	}
	link := filepath.Join(runtimeRoot(t), "workshop")
	symlink(t, t.TempDir(), link)
	if err := privateDirs(link, filepath.Join(link, "x"), 0); err == nil {
		t.Error("a symlink was taken")
	}
}

// What another user made in a place of everybody's is passed over, by a dry run
// as by one that makes the directory, and said.
func TestRuntimeDirectoryIsPassedOver(t *testing.T) {
	testutil.Require(t, os.Geteuid() == 0, "only root can give a directory away")
	for _, tt := range []struct {
		name, says string
		plant      func(dir string) error
	}{
		{"another's", "belongs to uid 4321", func(dir string) error {
			return errors.Join(os.Mkdir(dir, 0o700), os.Chown(dir, 4321, 4321))
		}},
		{"everybody's", "can be written by others", func(dir string) error { return errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o777)) }},
		{"a link", "is a symbolic link", func(dir string) error { return os.Symlink("/tmp", dir) }},
		{"a file", "is not a directory", func(dir string) error { return os.WriteFile(dir, nil, 0o600) }},
		{"nothing", "", func(string) error { return nil }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, o := projectOf(t, "    secrets: [{name: s, env: TOKEN}]\n", "[{name: one, container: {secrets: [s]}}]")
			xdg, _ := o.Lookup("XDG_RUNTIME_DIR")
			planted := filepath.Join(xdg, "workshop")
			if err := tt.plant(planted); err != nil {
				t.Fatal(err)
			}
			var dirs []string
			for _, create := range []bool{false, true} {
				f, list := collect(t, o, create)
				if list.HasErrors() || !strings.Contains(list.Error(), tt.says) || (len(list) > 0) != (tt.says != "") {
					t.Errorf("create %v: %v, want %q", create, list, tt.says)
				}
				if in := strings.HasPrefix(f.RuntimeDir, planted+"/"); in != (tt.says == "") {
					t.Errorf("create %v: it is %s", create, f.RuntimeDir)
				}
				dirs = append(dirs, f.RuntimeDir)
			}
			if dirs[0] != dirs[1] {
				t.Errorf("a dry run says %s, then it is %s", dirs[0], dirs[1])
			}
			_ = os.RemoveAll(dirs[1])
		})
	}
}

func TestUser(t *testing.T) {
	env := func(m map[string]string) func(string) (string, bool) {
		return func(n string) (string, bool) { v, ok := m[n]; return v, ok }
	}
	tests := []struct {
		name     string
		uid, gid int
		env      map[string]string
		dir      string
		want     [2]int
	}{
		{"caller", 1000, 100, nil, "/", [2]int{1000, 100}},
		{"caller in group root", 1000, 0, nil, "/", [2]int{1000, 1000}},
		{"sudo", 0, 0, map[string]string{"SUDO_UID": "1001", "SUDO_GID": "1002"}, "/", [2]int{1001, 1002}},
		{"sudo by root", 0, 0, map[string]string{"SUDO_UID": "0", "SUDO_GID": "0"}, "/", [2]int{fallbackID, fallbackID}},
		{"sudo with rubbish", 0, 0, map[string]string{"SUDO_UID": "x", "SUDO_GID": "-1"}, "/", [2]int{fallbackID, fallbackID}},
		{"sudo says nothing to others", 1000, 1000, map[string]string{"SUDO_UID": "5", "SUDO_GID": "5"}, "/", [2]int{1000, 1000}},
		{"the fallback isn't the guard's", 0, 0, nil, "/", [2]int{65530, 65530}},
		{"root in root's directory", 0, 0, nil, "/", [2]int{fallbackID, fallbackID}},
		{"no such directory", 0, 0, nil, "/nonexistent", [2]int{fallbackID, fallbackID}},
	}
	for _, tt := range tests {
		u, g, why := User(tt.uid, tt.gid, env(tt.env), tt.dir)
		if [2]int{u, g} != tt.want || why == "" {
			t.Errorf("%s: %d:%d (%s); want %v", tt.name, u, g, why, tt.want)
		}
	}
	if os.Geteuid() == 0 {
		dir := t.TempDir()
		if err := os.Chown(dir, 4321, 4322); err != nil {
			t.Fatal(err)
		}
		if u, g, _ := User(0, 0, env(nil), dir); u != 4321 || g != 4322 {
			t.Errorf("owner of the project: %d:%d", u, g)
		}
	}
}

// A symlink below the project can't make the creation leave it.
func TestCreationStaysInside(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	symlink(t, outside, filepath.Join(dir, "link"))
	if err := makeDirs(dir, "link/x", "65532:65532"); err == nil {
		t.Error("made a directory through a symlink")
	}
	if _, err := os.Lstat(filepath.Join(outside, "x")); err == nil {
		t.Error("the directory is outside")
	}
}

func TestHostPaths(t *testing.T) {
	paths := HostPaths("/")
	testutil.Require(t, len(paths) > 0, "no /usr/bin here")
	if !slices.Contains(paths, "/usr") || slices.Contains(paths, "/etc") || slices.Contains(paths, "/etc/shadow") {
		t.Errorf("HostPaths = %v", paths)
	}
	if HostPaths(t.TempDir()) != nil {
		t.Error("an empty root has host paths")
	}
}

// docs/images.md lists exactly what `image: host` mounts.
func TestHostPathsAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/images.md")
	if err != nil {
		t.Fatal(err)
	}
	_, part, _ := strings.Cut(string(doc), "## What `host` shows a worker\n")
	part, _, _ = strings.Cut(part, "\nNot ")
	dirs, etc, _ := strings.Cut(part, "- of `/etc`:")
	var got []string
	name := regexp.MustCompile("`([^`]+)`")
	for _, m := range name.FindAllStringSubmatch(dirs, -1) {
		if m[1] != "/usr/local" { // an example
			got = append(got, m[1])
		}
	}
	for _, m := range name.FindAllStringSubmatch(etc, -1) {
		got = append(got, "/etc/"+m[1])
	}
	want := slices.Concat(hostDirs, hostFiles, hostPatterns)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("docs/images.md has\n%q, want\n%q", got, want)
	}
}

// B8: what a mount can't hold is noticed.
func TestSnapshot(t *testing.T) {
	dir, o := project(t, "    mounts: [{source: ./repo, target: /repo, mode: rw, git: rw}]\n")
	for _, f := range []string{".git/HEAD", ".git/config", ".git/objects/aa/x", ".envrc", "src/main.go", "sub/CLAUDE.md", "node_modules/p/.npmrc"} {
		write(t, dir, "repo/"+f, "x")
	}
	if err := chownAll(filepath.Join(dir, "repo")); err != nil {
		t.Fatal(err)
	}
	c, list := judge(t, o)
	if len(list) > 0 {
		t.Fatal(list)
	}
	ctx := context.Background()
	before, err := TakeSnapshot(ctx, c, dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := before.Save(c.Facts.RuntimeDir); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "repo/.git/config", "[core]\n\tfsmonitor = evil")
	write(t, dir, "repo/.git/objects/aa/y", "work")
	write(t, dir, "repo/src/main.go", "work")
	write(t, dir, "repo/.vscode/tasks.json", "evil")
	write(t, dir, "repo/sub/.mcp.json", "evil")
	write(t, dir, "repo/node_modules/p/.github/x", "a package")
	write(t, dir, "repo/mod/example.org/m@v0.1.0/.github/x", "a package")
	write(t, dir, "repo/.git/hooks/pre-commit.sample", "of git's templates")
	write(t, dir, "repo/.git/hooks/pre-push", "evil")
	os.Remove(filepath.Join(dir, "repo/.envrc"))
	symlink(t, "/etc/passwd", filepath.Join(dir, "repo/.npmrc"))
	before, err = LoadSnapshot(c.Facts.RuntimeDir)
	if err != nil {
		t.Fatal(err)
	}
	after, err := TakeSnapshot(ctx, c, dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, ch := range before.Compare(after) {
		rel, _ := filepath.Rel(filepath.Join(dir, "repo"), ch.Path)
		got = append(got, string(ch.Kind)+" "+rel)
	}
	want := []string{"removed .envrc", "changed .git/config", "new .git/hooks/pre-push", "new .npmrc", "new .vscode", "new .vscode/tasks.json", "new sub/.mcp.json"}
	if !slices.Equal(got, want) {
		t.Errorf("changes = %q\nwant      %q", got, want)
	}
	if s, err := LoadSnapshot(t.TempDir()); s != nil || err != nil {
		t.Errorf("without a file: %v, %v", s, err)
	}
}

// Engines elsewhere: the machine's files are not looked at, copies work.
func TestEngineElsewhere(t *testing.T) {
	dir, o := project(t, "    mounts: [./src:/src, {source: ./data, target: /data, copy: true}]\n")
	write(t, dir, "src/x", "")
	write(t, dir, "data/x", "")
	o.Local = false
	_, list := judge(t, o)
	if got := codes(list); !slices.Equal(got, []string{"engine-elsewhere"}) || !strings.Contains(list[0].Hint, "copy: true") {
		t.Errorf("problems = %v", list)
	}
}

// B9: what a copy would have now is known by names, permissions, sizes and
// times; what is left out doesn't matter.
func TestCopyDigests(t *testing.T) {
	dir, o := project(t, "    mounts: [{source: ./data, target: /data, exclude: [\".env\", \"tmp/**\"]}]\n")
	write(t, dir, "data/a.txt", "first")
	write(t, dir, "data/sub/b.txt", "b")
	digest := func() string {
		t.Helper()
		c, list := judge(t, o)
		if len(list) > 0 || len(c.Copies) != 1 {
			t.Fatal(list, c.Copies)
		}
		for key, cp := range c.Copies {
			if s := c.Project.Services["one"]; cp.Digest != "" && s.Labels[compose.LabelCopy+key] != cp.Digest {
				t.Errorf("labels %v, want %s", s.Labels, cp.Digest)
			}
			return cp.Digest
		}
		return ""
	}
	last := digest()
	same := func(what string) {
		t.Helper()
		if got := digest(); got != last || got == "" {
			t.Errorf("%s: another digest", what)
		}
	}
	other := func(what string) {
		t.Helper()
		got := digest()
		if got == last {
			t.Errorf("%s: the same digest", what)
		}
		last = got
	}
	same("nothing")
	write(t, dir, "data/.env", "secret")
	same("a file that is left out")
	write(t, dir, "data/sub/b.txt", "longer")
	other("a size")
	if err := os.Chmod(filepath.Join(dir, "data/a.txt"), 0o700); err != nil {
		t.Fatal(err)
	}
	other("a permission")
	if err := os.Chtimes(filepath.Join(dir, "data/a.txt"), time.Time{}, time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	other("a time")
	if err := os.Rename(filepath.Join(dir, "data/a.txt"), filepath.Join(dir, "data/z.txt")); err != nil {
		t.Fatal(err)
	}
	other("a name")
	if err := os.Symlink("z.txt", filepath.Join(dir, "data/link")); err != nil {
		t.Fatal(err)
	}
	other("a link")
	o.SkipContents = true
	if got := digest(); got != "" {
		t.Errorf("looked although not asked: %s", got)
	}
}
