package git

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// serve is a repository behind a server on the loopback, as `git http-backend` serves it.
// each, if given, sees requests first, and reports whether it has answered.
func serve(t *testing.T, dir string, each func(http.ResponseWriter, *http.Request) bool) Remote {
	t.Helper()
	program, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	backend := &cgi.Handler{Path: program, Args: []string{"http-backend"}, Dir: dir, Env: []string{
		"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1", "HOME=" + t.TempDir(), "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
	}, InheritEnv: []string{"PATH"}, Stderr: os.Stderr}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if each == nil || !each(w, r) {
			backend.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return Remote{url: s.URL + "/.git", protocols: "http"}
}

func TestParseRemote(t *testing.T) {
	for address, want := range map[string]string{
		"https://git.example.org/acme/workshops":      "",
		"https://git.example.org:8443/acme/workshops": "",
		"ssh://git@git.example.org/acme/workshops":    "",
		"ssh://git.example.org:22/~acme/workshops":    "",
		"http://git.example.org/a":                    "want https:// or ssh://",
		"file:///etc":                                 "want https:// or ssh://",
		"ext::sh -c id":                               "want https://HOST",
		"ext::id":                                     "want https:// or ssh://",
		"git@git.example.org:acme/workshops":          "want https",
		"--upload-pack=id":                            "want https:// or ssh://",
		"https://user:secret@git.example.org/a":       "it has credentials",
		"https://token@git.example.org/a":             "it has credentials",
		"ssh://git:secret@git.example.org/a":          "it has credentials",
		"ssh://-oProxyCommand=id/a":                   "its host or user is not valid",
		"ssh://-l@git.example.org/a":                  "its host or user is not valid",
		"ssh://a b@git.example.org/a":                 "want https://HOST",
		"https://git.example.org":                     "want a path",
		"https://git.example.org/":                    "want a path",
		"https://git.example.org/a?b":                 "want a path, and nothing after it",
		"https://git.example.org/a#b":                 "want a path, and nothing after it",
		"https://git.example.org/a\nb":                "want https://HOST",
		"https:///a":                                  "its host or user is not valid",
		"https://$(id)/a":                             "its host or user is not valid",
		"":                                            "want https:// or ssh://",
	} {
		r, err := ParseRemote(address)
		switch {
		case want == "" && (err != nil || r.String() != address):
			t.Errorf("%q: %v, %v", address, r, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: %v, want %s", address, err, want)
		}
	}
}

func TestFetch(t *testing.T) {
	dir := repository(t, map[string]string{"lib/workers/a.md": "one\r\n", "lib/workshop.yaml": "y\n", "other": "x", ".gitattributes": "* -text\n*.md filter=lfs ident\n"})
	first := run(t, dir, "rev-parse", "HEAD")
	run(t, dir, "-c", "user.name=t", "-c", "user.email=t@example.org", "tag", "-a", "-m", "x", "v1.0.0")
	commit(t, dir, map[string]string{"lib/workers/b.md": "two\n"})
	run(t, dir, "tag", "v1.1.0")
	second := run(t, dir, "rev-parse", "HEAD")
	r := serve(t, dir, nil)
	t.Setenv("TMPDIR", t.TempDir())
	refs, err := r.Refs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []Ref{{"refs/heads/main", second, second}, {"refs/tags/v1.0.0", run(t, dir, "rev-parse", "v1.0.0"), first}, {"refs/tags/v1.1.0", second, second}}
	if d := cmp.Diff(want, refs); d != "" {
		t.Error(d)
	}
	old := map[string]string{"workers/a.md": "one\r\n", "workshop.yaml": "y\n"}
	now := maps.Clone(old)
	now["workers/b.md"] = "two\n"
	for _, c := range []struct {
		want, dir, commit string
		files             map[string]string
		tag               bool
	}{
		{"refs/tags/v1.0.0", "lib", first, old, true},
		{"refs/tags/v1.1.0", "lib", second, now, false},
		{"refs/heads/main", "lib", second, now, false},
		{second, "lib", second, now, false},
		{"refs/tags/v1.0.0", "lib/workers", first, map[string]string{"a.md": "one\r\n"}, true},
	} {
		got, err := r.Fetch(t.Context(), c.want, c.dir)
		if err != nil {
			t.Errorf("%s: %v", c.want, err)
			continue
		}
		files := map[string]string{}
		for name, text := range got.Files {
			files[name] = string(text)
		}
		if d := cmp.Diff(c.files, files); d != "" || got.Commit != c.commit || (got.Tag != nil) != c.tag {
			t.Errorf("%s: commit %s, tag %q: %s", c.want, got.Commit, got.Tag, d)
		}
	}
	left, err := filepath.Glob(filepath.Join(os.TempDir(), "workshop-git-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// What can't be on every machine the same, or isn't a file, is refused by its name; so is
// too much of it.
func TestFetchRefused(t *testing.T) {
	many := map[string]string{}
	for i := range maxFetchedFiles + 1 {
		many[fmt.Sprint("f", i)] = ""
	}
	half := map[string]string{}
	for i := range 9 {
		half[fmt.Sprint("f", i)] = strings.Repeat("x", maxFetchedFile-i)
	}
	for _, c := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"link", map[string]string{"a": "-> /etc/passwd"}, `"a" is a symbolic link`},
		{"case", map[string]string{"workers/a.md": "1", "Workers/b.md": "2"}, "differ in the case of letters alone"},
		{"case of a file", map[string]string{"a.md": "1", "A.md": "2"}, "differ in the case of letters alone"},
		{"device of Windows", map[string]string{"CON": "1"}, `"CON" can't be shared`},
		{"trailing dot", map[string]string{"a.": "1"}, `"a." can't be shared`},
		{"newline", map[string]string{"a\nb": "1"}, "can't be shared"},
		{"escape", map[string]string{"a\x1b[2J": "1"}, "can't be shared"},
		{"backslash", map[string]string{`a\b`: "1"}, "can't be shared"},
		{"short name", map[string]string{"GIT~1/config": "1"}, "git"},
		{"many", many, "more than 256 files"},
		{"large", map[string]string{"big": strings.Repeat("x", maxFetchedFile+1)}, `"big" has 1048577 bytes, more than 1048576`},
		{"large together", half, "the files have more than 8388608 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := serve(t, repository(t, c.files), nil)
			if f, err := r.Fetch(t.Context(), "refs/heads/main", ""); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, %v", f, err)
			}
		})
	}
	dir := repository(t, map[string]string{"a": "1"})
	r := serve(t, dir, nil)
	head := run(t, dir, "rev-parse", "HEAD")
	for _, want := range []string{"", "main", "HEAD", "refs/heads/-x", "--upload-pack=id", "refs/heads/a b", "refs/heads/*", "+refs/heads/main", "refs/heads/main:refs/x", head[:10], "refs/pull/1/head", "refs/heads/none", strings.Repeat("0", 40)} {
		if f, err := r.Fetch(t.Context(), want, ""); err == nil {
			t.Errorf("%q is fetched: %v", want, f)
		}
	}
	for _, d := range []string{"..", "../x", "/etc", "a/../b", "none", "a\nb"} {
		if f, err := r.Fetch(t.Context(), "refs/heads/main", d); err == nil {
			t.Errorf("the directory %q is fetched: %v", d, f)
		}
	}
}

// A tree that no git writes: `..`, `.git` and names with a slash, and a submodule.
func TestFetchMadeByHand(t *testing.T) {
	for name, entry := range map[string]string{"parent": "100644 blob %s\t..", "git": "040000 tree %s\t.git", "submodule": "160000 commit %s\tsub"} {
		t.Run(name, func(t *testing.T) {
			dir := repository(t, map[string]string{"a": "1"})
			of := map[string]string{"parent": "HEAD:a", "git": "HEAD^{tree}", "submodule": "HEAD"}[name]
			cmd := exec.Command("git", "-C", dir, "-c", "core.protectHFS=false", "-c", "core.protectNTFS=false", "mktree", "--missing")
			cmd.Stdin = strings.NewReader(fmt.Sprintf(entry, run(t, dir, "rev-parse", of)) + "\n")
			tree, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			made := run(t, dir, "-c", "user.name=t", "-c", "user.email=t@example.org", "commit-tree", "-m", "x", strings.TrimSpace(string(tree)))
			run(t, dir, "update-ref", "refs/heads/made", made)
			if f, err := serve(t, dir, nil).Fetch(t.Context(), "refs/heads/made", ""); err == nil {
				t.Errorf("%v", f)
			}
		})
	}
}

// A commit that git would not make is refused when it comes, before anything reads it.
func TestFetchMalformed(t *testing.T) {
	dir := repository(t, map[string]string{"a": "1"})
	cmd := exec.Command("git", "-C", dir, "hash-object", "-t", "commit", "--literally", "-w", "--stdin")
	cmd.Stdin = strings.NewReader("tree " + run(t, dir, "rev-parse", "HEAD^{tree}") + "\n\nby nobody\n")
	made, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".git/refs/heads/made"), made, 0o644); err != nil {
		t.Fatal(err)
	}
	r := serve(t, dir, nil)
	if f, err := r.Fetch(t.Context(), "refs/heads/main", ""); err != nil || len(f.Files) != 1 {
		t.Errorf("%v, %v", f, err)
	}
	if f, err := r.Fetch(t.Context(), "refs/heads/made", ""); err == nil {
		t.Errorf("%v", f)
	}
}

// B46: a branch that is named like a commit isn't that commit, and a tag that moved is
// another one.
func TestNamedLikeACommit(t *testing.T) {
	dir := repository(t, map[string]string{"a": "good\n"})
	good := run(t, dir, "rev-parse", "HEAD")
	commit(t, dir, map[string]string{"a": "evil\n"})
	run(t, dir, "update-ref", "refs/heads/"+good, "HEAD")
	r := serve(t, dir, nil)
	f, err := r.Fetch(t.Context(), good, "")
	if err == nil && (f.Commit != good || string(f.Files["a"]) != "good\n") {
		t.Errorf("commit %s: %q", f.Commit, f.Files["a"])
	}
}

// A server that leads elsewhere gets nothing there: no request, and no credential.
func TestRedirects(t *testing.T) {
	dir := repository(t, map[string]string{"a": "1"})
	var mu sync.Mutex
	var seen []string
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, r.URL.Path+" "+r.Header.Get("Authorization"))
	}))
	t.Cleanup(other.Close)
	for name, code := range map[string]int{"moved": http.StatusMovedPermanently, "found": http.StatusFound, "temporary": http.StatusTemporaryRedirect} {
		t.Run(name, func(t *testing.T) {
			r := serve(t, dir, func(w http.ResponseWriter, r *http.Request) bool {
				http.Redirect(w, r, other.URL+r.URL.Path+"?"+r.URL.RawQuery, code)
				return true
			})
			if _, err := r.Refs(t.Context()); err == nil {
				t.Error("it was followed by a listing")
			}
			if _, err := r.Fetch(t.Context(), "refs/heads/main", ""); err == nil {
				t.Error("it was followed by a fetch")
			}
		})
	}
	if len(seen) > 0 {
		t.Errorf("the other host saw %v", seen)
	}
	if err := os.WriteFile(filepath.Join(dir, "x"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	// Nobody is asked for a password, also not in a window.
	asked := filepath.Join(t.TempDir(), "asked")
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho x | tee "+asked+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SSH_ASKPASS", program)
	run(t, dir, "config", "--global", "core.askPass", program)
	r := serve(t, dir, func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("WWW-Authenticate", "Basic")
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	if _, err := r.Refs(t.Context()); err == nil || !strings.Contains(err.Error(), "terminal prompts disabled") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(asked); err == nil {
		t.Error("a program asked")
	}
}

// A server that leads from an address to the same with .git, as one of GitLab does, serves
// it by that.
func TestLeadsToDotGit(t *testing.T) {
	dir := repository(t, map[string]string{"a": "1"})
	if err := os.Rename(filepath.Join(dir, ".git"), filepath.Join(dir, "x.git")); err != nil {
		t.Fatal(err)
	}
	head := run(t, filepath.Join(dir, "x.git"), "rev-parse", "HEAD")
	for name, to := range map[string]string{"its own": "/x.git", "another": "/y.git"} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var seen []string
			r := serve(t, dir, func(w http.ResponseWriter, r *http.Request) bool {
				mu.Lock()
				defer mu.Unlock()
				seen = append(seen, r.URL.Path)
				rest, short := strings.CutPrefix(r.URL.Path, "/x/")
				if short {
					http.Redirect(w, r, to+"/"+rest+"?"+r.URL.RawQuery, http.StatusMovedPermanently)
				}
				return short
			})
			r.url = strings.TrimSuffix(r.url, "/.git") + "/x"
			refs, err := r.Refs(t.Context())
			if err != nil || len(refs) != 1 || refs[0].Commit != head {
				t.Errorf("%v, %v", refs, err)
			}
			if f, err := r.Fetch(t.Context(), head, ""); err != nil || string(f.Files["a"]) != "1" {
				t.Errorf("%v, %v", f, err)
			}
			if slices.ContainsFunc(seen, func(p string) bool { return strings.HasPrefix(p, "/y") }) {
				t.Errorf("it was followed elsewhere: %q", seen)
			}
		})
	}
}

// A pack that is larger than may be, and one that isn't a pack, are errors.
func TestHostileServer(t *testing.T) {
	dir := repository(t, map[string]string{"a": "1", "small/b": "2"})
	noise := make([]byte, 1<<20)
	seed := uint64(1)
	for i := range noise {
		seed = seed*6364136223846793005 + 1442695040888963407
		noise[i] = byte(seed >> 56)
	}
	f, err := os.Create(filepath.Join(dir, "big"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range maxPack>>20 + 2 {
		noise[0] = byte(i)
		if _, err := f.Write(slices.Concat(noise[i*1000:], noise[:i*1000])); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	run(t, dir, "config", "core.compression", "0")
	commit(t, dir, nil)
	if got, err := serve(t, dir, nil).Fetch(t.Context(), "refs/heads/main", "small"); err == nil {
		t.Errorf("a pack of %d bytes was taken: %d files", maxPack, len(got.Files))
	}
	r := serve(t, dir, func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "git-upload-pack") {
			_, _ = w.Write([]byte("0008NAK\nPACK garbage"))
			return true
		}
		return false
	})
	if _, err := r.Fetch(t.Context(), "refs/heads/main", ""); err == nil {
		t.Error("garbage was taken")
	}
}
