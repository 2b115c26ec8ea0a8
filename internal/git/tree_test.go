package git

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// repository makes one with a commit of files; a target with -> is a symbolic link.
func repository(t *testing.T, files map[string]string) string {
	t.Helper()
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	t.Setenv("HOME", t.TempDir())
	dir := t.TempDir()
	run(t, dir, "init", "-q", "-b", "main")
	commit(t, dir, files)
	return dir
}

func commit(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if to, isLink := strings.CutPrefix(text, "-> "); isLink {
			err = os.Symlink(to, at)
		} else {
			err = os.WriteFile(at, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	run(t, dir, "-c", "core.protectNTFS=false", "add", "-A")
	run(t, dir, "-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false", "commit", "-qm", "x", "--allow-empty")
}

func run(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func open(t *testing.T, dir, revision string) *Files {
	t.Helper()
	f, err := Tree(t.Context(), dir, revision)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

func TestTree(t *testing.T) {
	dir := repository(t, map[string]string{
		"a.txt": "one\n", "sub/dir/b.txt": "two\n", "sub/link": "-> dir/b.txt", "sub/up": "-> ../a.txt", "sub/out": "-> ../../etc/passwd", "abs": "-> /etc/passwd",
		"loop": "-> loop", "linked": "-> sub", "empty": "", "x\ny": "newline\n", "-o": "option\n",
	})
	f := open(t, dir, "main")
	commit(t, dir, map[string]string{"a.txt": "changed\n"})
	if err := fstest.TestFS(f, "a.txt", "sub/dir/b.txt", "empty", "-o"); err != nil && !strings.Contains(err.Error(), "loop") && !strings.Contains(err.Error(), "abs") {
		t.Error(err)
	}
	for name, want := range map[string]string{
		"a.txt": "one\n", "sub/dir/b.txt": "two\n", "sub/link": "two\n", "sub/up": "one\n", "linked/dir/b.txt": "two\n", "empty": "", "x\ny": "newline\n", "-o": "option\n",
		"sub/out": "! not exist", "abs": "! not exist", "loop": "! links", "nothing": "! not exist", "a.txt/b": "! not exist", "../a.txt": "! invalid",
	} {
		got, err := fs.ReadFile(f, name)
		text := string(got)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			text = "! not exist"
		case errors.Is(err, fs.ErrInvalid):
			text = "! invalid"
		case errors.Is(err, errLinks):
			text = "! links"
		case err != nil:
			text = err.Error()
		}
		if text != want {
			t.Errorf("%q: got %q, want %q", name, text, want)
		}
	}
	if to, err := f.ReadLink("sub/link"); err != nil || to != "dir/b.txt" {
		t.Errorf("link: %q, %v", to, err)
	}
	if info, err := f.Lstat("linked"); err != nil || info.Mode().Type() != fs.ModeSymlink {
		t.Errorf("%v, %v", info, err)
	}
	if info, err := f.Stat("linked"); err != nil || !info.IsDir() {
		t.Errorf("%v, %v", info, err)
	}
	if want := run(t, dir, "rev-parse", "main~1"); f.Commit != want {
		t.Errorf("commit %s, want %s", f.Commit, want)
	}
}

// A directory of the repository is the root; where it wasn't there the tree is empty.
func TestTreeOfADirectory(t *testing.T) {
	dir := repository(t, map[string]string{"a/workshop.yaml": "first\n"})
	commit(t, dir, map[string]string{"b c/workshop.yaml": "second\n"})
	if got, err := fs.ReadFile(open(t, filepath.Join(dir, "a"), "HEAD"), "workshop.yaml"); err != nil || string(got) != "first\n" {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := fs.ReadFile(open(t, filepath.Join(dir, "b c"), "HEAD"), "workshop.yaml"); err != nil || string(got) != "second\n" {
		t.Errorf("%q, %v", got, err)
	}
	f := open(t, filepath.Join(dir, "b c"), "HEAD~1")
	if _, err := fs.Stat(f, "workshop.yaml"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if list, err := fs.ReadDir(f, "."); err != nil || len(list) > 0 {
		t.Errorf("%v, %v", list, err)
	}
}

func TestRevisions(t *testing.T) {
	dir := repository(t, map[string]string{"a": "1"})
	head := run(t, dir, "rev-parse", "HEAD")
	run(t, dir, "-c", "user.name=t", "-c", "user.email=t@example.org", "tag", "-a", "-m", "x", "v1")
	run(t, dir, "tag", "light")
	for _, revision := range []string{"HEAD", "main", "refs/heads/main", "v1", "light", head, head[:10]} {
		if f := open(t, dir, revision); f.Commit != head {
			t.Errorf("%s: %s", revision, f.Commit)
		}
	}
	for _, revision := range []string{"", "nothing", "HEAD:a", "HEAD^{tree}", "--help", "-h", "main\nmain", "main..HEAD", ":/x", "@{upstream}", strings.Repeat("a", 100_000)} {
		if _, err := Tree(t.Context(), dir, revision); err == nil {
			t.Errorf("%.40q is taken", revision)
		}
	}
	if _, err := Tree(t.Context(), t.TempDir(), "HEAD"); err == nil || !strings.Contains(err.Error(), "not a git repository") {
		t.Errorf("no repository: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Tree(ended, dir, "HEAD"); err == nil {
		t.Error("with a context that ended")
	}
}

// B43: nothing that the repository's own configuration names is run, whatever the
// setting; a canary would say so. Nor does the caller's environment lead git elsewhere.
func TestNothingOfTheRepositoryRuns(t *testing.T) {
	canary := filepath.Join(t.TempDir(), "canary")
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho ran >>"+canary+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, settings := range map[string][]string{
		"fsmonitor":      {"core.fsmonitor=" + program},
		"hooks":          {"core.hooksPath=" + filepath.Dir(program)},
		"pager":          {"core.pager=" + program, "pager.ls-tree=" + program, "pager.cat-file=" + program, "pager.rev-parse=" + program, "pager.config=" + program},
		"ssh":            {"core.sshCommand=" + program, "core.gitProxy=" + program},
		"alias":          {"alias.cat-file=!" + program, "alias.ls-tree=!" + program, "alias.rev-parse=!" + program},
		"askpass":        {"core.askPass=" + program, "credential.helper=!" + program},
		"alternate refs": {"core.alternateRefsCommand=" + program},
		"filters":        {"filter.x.smudge=" + program, "filter.x.clean=" + program, "diff.x.textconv=" + program, "diff.x.command=" + program, "diff.external=" + program},
		"editor":         {"core.editor=" + program, "sequence.editor=" + program, "gpg.program=" + program},
		"include":        {"include.path=" + program},
	} {
		t.Run(name, func(t *testing.T) {
			dir := repository(t, map[string]string{"a.txt": "one\n", ".gitattributes": "* filter=x diff=x\n"})
			for _, s := range settings {
				key, value, _ := strings.Cut(s, "=")
				run(t, dir, "config", key, value)
			}
			for _, hook := range []string{"post-checkout", "pre-auto-gc", "reference-transaction", "post-index-change"} {
				if err := os.Symlink(program, filepath.Join(dir, ".git/hooks", hook)); err != nil {
					t.Fatal(err)
				}
			}
			if f, err := Tree(t.Context(), dir, "HEAD"); err == nil {
				if got, err := fs.ReadFile(f, "a.txt"); err != nil || string(got) != "one\n" {
					t.Errorf("%q, %v", got, err)
				}
				f.Close()
			} else if name != "include" { // that isn't a configuration
				t.Error(err)
			}
			if text, err := os.ReadFile(canary); err == nil {
				t.Errorf("a program of the repository ran: %s", text)
			}
		})
	}
	t.Run("environment", func(t *testing.T) {
		dir, other := repository(t, map[string]string{"a.txt": "one\n"}), t.TempDir()
		run(t, other, "init", "-q")
		t.Setenv("GIT_DIR", filepath.Join(other, ".git"))
		t.Setenv("GIT_OBJECT_DIRECTORY", other)
		t.Setenv("GIT_EXTERNAL_DIFF", program)
		t.Setenv("GIT_CONFIG_COUNT", "1")
		t.Setenv("GIT_CONFIG_KEY_0", "core.pager")
		t.Setenv("GIT_CONFIG_VALUE_0", program)
		if got, err := fs.ReadFile(open(t, dir, "HEAD"), "a.txt"); err != nil || string(got) != "one\n" {
			t.Errorf("%q, %v", got, err)
		}
	})
}

// B43, B46: an object that isn't there is never fetched: a partial clone's remote may be
// a program (gitremote-helpers(7), ext).
func TestNothingIsFetched(t *testing.T) {
	canary := filepath.Join(t.TempDir(), "canary")
	for name, settings := range map[string][]string{
		"promisor":      {"remote.origin.promisor=true"},
		"filter":        {"remote.origin.partialclonefilter=blob:none"},
		"partial clone": {"extensions.partialclone=origin", "core.repositoryformatversion=1"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := repository(t, map[string]string{"a.txt": "one\n"})
			for _, s := range append(settings, "remote.origin.url=ext::sh -c touch% "+canary, "protocol.ext.allow=always", "protocol.allow=always") {
				key, value, _ := strings.Cut(s, "=")
				run(t, dir, "config", key, value)
			}
			blob := run(t, dir, "rev-parse", "HEAD:a.txt")
			if err := os.Remove(filepath.Join(dir, ".git/objects", blob[:2], blob[2:])); err != nil {
				t.Fatal(err)
			}
			if _, err := Tree(t.Context(), dir, "HEAD"); err == nil || !strings.Contains(err.Error(), "partial clone") {
				t.Errorf("%v", err)
			}
			if _, err := os.Stat(canary); err == nil {
				t.Error("the remote's program ran")
			}
		})
	}
	// By the fences alone: as if the check of the configuration had missed it.
	dir := repository(t, map[string]string{"a.txt": "one\n"})
	for _, s := range []string{"remote.origin.promisor=true", "remote.origin.url=ext::sh -c touch% " + canary, "protocol.ext.allow=always"} {
		key, value, _ := strings.Cut(s, "=")
		run(t, dir, "config", key, value)
	}
	blob := run(t, dir, "rev-parse", "HEAD:a.txt")
	if err := os.Remove(filepath.Join(dir, ".git/objects", blob[:2], blob[2:])); err != nil {
		t.Fatal(err)
	}
	b, err := newBatch(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	if _, err := b.blob(blob); err == nil {
		t.Error("the object is there")
	}
	if _, err := os.Stat(canary); err == nil {
		t.Error("the remote's program ran")
	}
}

// Replacements and grafts don't make another commit of one (git-replace(1)).
func TestNothingIsReplaced(t *testing.T) {
	dir := repository(t, map[string]string{"a.txt": "one\n"})
	first := run(t, dir, "rev-parse", "HEAD")
	commit(t, dir, map[string]string{"a.txt": "two\n"})
	run(t, dir, "replace", first, "HEAD")
	if got, err := fs.ReadFile(open(t, dir, first), "a.txt"); err != nil || string(got) != "one\n" {
		t.Errorf("%q, %v", got, err)
	}
}

// B60: what is too large is named, and not read into memory.
func TestLargeFile(t *testing.T) {
	dir := repository(t, map[string]string{"small": "x"})
	big, err := os.Create(filepath.Join(dir, "big"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(big.Truncate(maxBlob+1), big.Close()); err != nil {
		t.Fatal(err)
	}
	commit(t, dir, nil)
	f := open(t, dir, "HEAD")
	if _, err := fs.ReadFile(f, "big"); err == nil {
		t.Error("it is read")
	}
	if info, err := fs.Stat(f, "big"); err != nil || info.Size() != maxBlob+1 {
		t.Errorf("%v, %v", info, err)
	}
	if got, err := fs.ReadFile(f, "small"); err != nil || cmp.Diff("x", string(got)) != "" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestNoRepositoryOfTheTree: B60: files of a commit that git takes for a bare repository
// aren't where a directory's history is looked for, with their configuration or without.
func TestNoRepositoryOfTheTree(t *testing.T) {
	for name, config := range map[string][]string{
		"bare": {"core.bare", "true"}, "a working tree": {"core.worktree", ".."}, "no word": {"core.x", "y"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := repository(t, map[string]string{"ws/workshop.yaml": "reviewed\n", "ws/sub/x": "reviewed\n"})
			planted := repository(t, map[string]string{"workshop.yaml": "planted\n", "ws/workshop.yaml": "planted\n"})
			if err := os.CopyFS(filepath.Join(dir, "ws"), os.DirFS(filepath.Join(planted, ".git"))); err != nil {
				t.Fatal(err)
			}
			run(t, dir, "config", "--file", "ws/config", "--unset", "core.bare")
			run(t, dir, "config", "--file", "ws/config", config[0], config[1])
			for _, from := range []string{"ws", "ws/sub"} {
				if f, err := Tree(t.Context(), filepath.Join(dir, from), "main"); err == nil {
					text, _ := fs.ReadFile(f, "workshop.yaml")
					f.Close()
					t.Errorf("%s: read %q", from, text)
				}
				if gitDir := filepath.Join(dir, "ws"); outside(gitDir, filepath.Join(dir, from)) == nil {
					t.Errorf("%s is not in %s", from, gitDir) // also where git doesn't know the setting
				}
			}
		})
	}
}

// TestLongNames: B60: directories in directories cost no unbounded time or memory.
func TestLongNames(t *testing.T) {
	f := &Files{entries: map[string]entry{}, dirs: map[string][]string{".": nil}}
	list := "100644 blob " + strings.Repeat("0", 40) + " 1\t" + strings.Repeat("d/", 2048) + "x\x00"
	if _, err := f.listed([]byte(list)); err == nil || !strings.Contains(err.Error(), "4097 bytes") {
		t.Errorf("got %v", err)
	}
}
