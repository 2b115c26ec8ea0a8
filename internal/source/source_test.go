package source

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/module"

	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/git"
)

var hex64 = strings.Repeat("ab", 32)

func TestParseID(t *testing.T) {
	for text, want := range map[string]string{
		"git+https://git.example.org/acme/workshops//go-review":   "git.example.org/acme/workshops//go-review",
		"git+https://GIT.example.org/acme/workshops.git//a/b/":    "git.example.org/acme/workshops//a/b",
		"git+https://git.example.org/acme/workshops.git.git//a":   "git.example.org/acme/workshops//a",
		"git+https://git.example.org:443/acme/workshops/":         "git.example.org/acme/workshops",
		"git+https://git.example.org/acme/.git//a":                "git.example.org/acme/.git//a",
		"git+https://git.example.org:8443/acme/workshops":         "git.example.org:8443/acme/workshops",
		"git+https://[2001:db8::1]:443/acme":                      "[2001:db8::1]/acme",
		"git+https://[2001:db8::1]:444/acme//x":                   "[2001:db8::1]:444/acme//x",
		"git+ssh://git@git.example.org:22/acme/workshops//review": "git.example.org/acme/workshops//review",
		"oci://registry.example.org/acme/go-review":               "registry.example.org/acme/go-review/:oci",
		"oci://Registry.example.org:443/acme/go-review":           "registry.example.org/acme/go-review/:oci",
		"oci://localhost:5000/w":                                  "localhost:5000/w/:oci",
		"oci://[2001:db8::1]:5000/acme/w":                         "[2001:db8::1]:5000/acme/w/:oci",
		"oci://docker.io/w":                                       "docker.io/library/w/:oci",
		"oci://registry.example.org/acme/latest":                  "registry.example.org/acme/latest/:oci",
		"oci://registry.example.org/acme/w:1.4":                   "! its tag or digest is the version",
		"oci://registry.example.org/acme/w@sha256:" + hex64:       "! its tag or digest is the version",
		"oci://registry.example.org/acme/w//dir":                  "! has no directory",
		"oci://registry.example.org//acme":                        "! has no directory",
		"oci://user:secret@registry.example.org/w":                "! it has credentials",
		"oci://registry.example.org/acme/../w":                    "! want oci://",
		"oci://registry.example.org/Acme/w":                       "! in lower case",
		"oci://registry.example.org/acme/w?x":                     "! want oci://",
		"oci://registry.example.org/acme/w/":                      "! want oci://",
		"oci://registry.example.org/":                             "! want oci://",
		"oci://acme/w":                                            "! want oci://",
		"oci://-oProxyCommand=id:1/a":                             "! want oci://",
		"oci://registry.example.org/a\x1b[2J":                     "! want oci://",
		"oci:registry.example.org/acme/w":                         "! or oci://",
		"git+oci://registry.example.org/acme/w":                   "! want https:// or ssh://",
		"https://git.example.org/acme":                            "! want git+https",
		"git+http://git.example.org/acme":                         "! want https:// or ssh://",
		"git+file:///etc//x":                                      "! is not the address",
		"git+ext::id":                                             "! want git+https",
		"git+https://git.example.org/acme//../x":                  "! without ..",
		"git+https://git.example.org/acme//a/../b":                "! without ..",
		"git+https://git.example.org/acme//.":                     "! without ..",
		"git+https://git.example.org/acme/../other":               "! without ..",
		"git+https://git.example.org/acme//a//b":                  "! without ..",
		"git+https://git.example.org/%2e%2e/x":                    "! without ..",
		"git+https://git.example.org/a%0ab":                       "! is not a plain path",
		"git+https://git.example.org/acme//a\x1b[2J":              "! ",
		"git+https://user:secret@git.example.org/a":               "! it has credentials",
		"git+ssh://-oProxyCommand=id/a":                           "! not valid",
		"git+https://git.example.org/acme/sast@1.0.0":             "! version: ^1.0.0",
		"git+https://git.example.org/acme/sast@^v2":               "! version: ^2",
		"git+https://git.example.org/acme/w//go/review@v1.0.0":    "! version: ^1.0.0",
		"git+https://git.example.org/acme/w//@acme/review":        "git.example.org/acme/w//@acme/review",
		"git+https://git.example.org/acme/a@b":                    "git.example.org/acme/a@b",
		"":                                                        "! want git+https",
	} {
		id, err := ParseID(text)
		if why, bad := strings.CutPrefix(want, "! "); bad {
			if err == nil || !strings.Contains(err.Error(), why) {
				t.Errorf("%q: %v, %v; want %s", text, id, err, why)
			}
			continue
		}
		if err != nil || id.String() != want || !IsName(want) {
			t.Errorf("%q: %v, %v; want %s", text, id, err, want)
			continue
		}
		if again, err := ParseID(id.From()); err != nil || again != id {
			t.Errorf("%q: written as %s: %v, %v", text, id.From(), again, err)
		}
	}
}

func TestResolve(t *testing.T) {
	commit := func(c string) string { return strings.Repeat(c, 40) }
	tag := func(name, c string) git.Ref {
		return git.Ref{Name: "refs/tags/" + name, Object: commit(c), Commit: commit(c)}
	}
	refs := []git.Ref{
		{Name: "refs/heads/main", Object: commit("f"), Commit: commit("f")}, {Name: "refs/heads/" + commit("a"), Object: commit("e"), Commit: commit("e")},
		tag("v1.3.9", "1"), tag("v1.4.0", "2"), tag("1.4.2", "3"), tag("v1.10.0", "4"), tag("v1.11.0-rc.1", "5"), tag("v2.0.0", "6"), tag("nightly", "7"), tag("v1.4", "8"), tag("v99", "9"),
	}
	for version, want := range map[string]string{
		"^1.4":             "v1.10.0",
		"~1.4.0":           "1.4.2",
		"":                 "v2.0.0",
		">=1.3, <1.4":      "v1.3.9",
		"^1.11.0-rc.0":     "v1.11.0-rc.1",
		"v1.4":             "v1.4",
		"nightly":          "nightly",
		commit("f"):        "refs/heads/main",
		commit("e"):        "refs/heads/" + commit("a"),
		commit("a"):        "! no branch or tag points at the commit",
		"^3":               "! no tag is a version within ^3: it has",
		"main":             "! main is a branch",
		"none":             "! there is no tag none: it has v1.3.9",
		"1.3.9":            "! there is no tag 1.3.9: did you mean the tag v1.3.9, or ^1.3.9 for what is compatible? it has v1.3.9",
		"v1.4.2":           "! there is no tag v1.4.2: did you mean the tag 1.4.2, or ^1.4.2 for what is compatible?",
		"1.3":              "! there is no tag 1.3: did you mean the range ^1.3?",
		">=1.2,<1.4 || ^3": "v1.3.9",
	} {
		v, err := ParseVersion(version)
		if err != nil {
			t.Errorf("%q: %v", version, err)
			continue
		}
		r, err := v.Resolve(refs)
		if why, bad := strings.CutPrefix(want, "! "); bad {
			if err == nil || !strings.Contains(err.Error(), why) {
				t.Errorf("%q: %v, %v; want %s", version, r, err, why)
			}
			continue
		}
		if err != nil || strings.TrimPrefix(r.Name, "refs/tags/") != want {
			t.Errorf("%q: %v, %v; want %s", version, r, err, want)
		}
	}
	v, _ := ParseVersion("^1")
	if r, err := v.Resolve([]git.Ref{tag("v1.0.0", "1"), tag("1.0.0", "2")}); err == nil {
		t.Errorf("two commits of one version: %v", r)
	}
	for _, newer := range []string{"v1.1.0", "v0.1.0"} { // among them the newest counts
		r, err := v.Resolve([]git.Ref{tag("1.0.0", "2"), tag("v1.0.0", "1"), tag(newer, "3")})
		if isNewest := newer == "v1.1.0"; isNewest != (err == nil) || isNewest && r.Name != "refs/tags/v1.1.0" {
			t.Errorf("two commits of one version beside %s: %v, %v", newer, r, err)
		}
	}
	for _, bad := range []string{"^", "^y", "1.4 ||", "^1,0", "1,0", "^1.4,", ">=1, 2 || ^1", "a\nb", ">=1 <", strings.Repeat("1", 101)} {
		if v, err := ParseVersion(bad); err == nil {
			t.Errorf("%q is taken: %v", bad, v)
		}
	}
}

// B46: a tree counts only as what was locked, wherever it comes from.
func TestKept(t *testing.T) {
	tree := Tree{"workshop.yaml": []byte("a\n"), "workers/x.md": []byte("b\r\n")}
	hash, err := tree.Hash()
	if err != nil || !strings.HasPrefix(hash, "h1:") {
		t.Fatal(hash, err)
	}
	c := Cache{filepath.Join(t.TempDir(), "cache")}
	if _, err := c.Get(hash); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if err := c.Put(tree); err != nil {
		t.Fatal(err)
	}
	if got, err := c.Get(hash); err != nil || cmp.Diff(tree, got) != "" {
		t.Errorf("%v, %v", got, err)
	}
	for name, text := range map[string]string{"another tree": `{"workshop.yaml": "YQ=="}`, "no tree": "x", "nothing": ""} {
		if err := os.WriteFile(c.file(hash), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := c.Get(hash); err == nil || errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "was changed by another program") {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}

	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	id, err := ParseID("git+https://git.example.org:8443/acme/w//a/b")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Vendored(root.FS(), id); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if err := errors.Join(Vendor(root, id, Tree{"old": nil}), Vendor(root, id, tree)); err != nil {
		t.Fatal(err)
	}
	got, err := Vendored(root.FS(), id)
	if err != nil || got.Is(hash) != nil {
		t.Errorf("%v, %v", got, err)
	}
	at := filepath.Join(dir, VendorDir, id.VendorName())
	if filepath.Base(at) != "git.example.org_8443,acme,w,,a,b" {
		t.Error(at)
	}
	if err := os.WriteFile(filepath.Join(at, "more"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := Vendored(root.FS(), id); err != nil || got.Is(hash) == nil {
		t.Errorf("a file more is not noticed: %v, %v", got, err)
	}
	for _, to := range []string{"/etc/passwd", "workshop.yaml"} {
		if err := errors.Join(os.Remove(filepath.Join(at, "more")), os.Symlink(to, filepath.Join(at, "more"))); err != nil {
			t.Fatal(err)
		}
		if got, err := Vendored(root.FS(), id); err == nil {
			t.Errorf("a symbolic link to %s is read: %v", to, got)
		}
	}
	if err := os.Remove(filepath.Join(at, "more")); err != nil {
		t.Fatal(err)
	}
	if got, err := Vendored(root.FS(), id); err != nil || got.Is(hash) != nil {
		t.Errorf("%v, %v", got, err)
	}
	for _, name := range []string{VendorDir + "/" + id.VendorName(), VendorDir, ".workshop"} { // each by a link, also inside of the project
		if err := errors.Join(root.Rename(name, "moved"), root.Symlink(filepath.Join(strings.Repeat("../", strings.Count(name, "/")), "moved"), name)); err != nil {
			t.Fatal(err)
		}
		if got, err := Vendored(root.FS(), id); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is a link: %v, %v", name, got, err)
		}
		if err := errors.Join(root.Remove(name), root.Rename("moved", name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.RemoveAll(filepath.Join(dir, ".workshop")), os.Symlink(t.TempDir(), filepath.Join(dir, ".workshop"))); err != nil {
		t.Fatal(err)
	}
	if err := Vendor(root, id, tree); err == nil {
		t.Error("it is written outside of the project")
	}
}

// The vendor directory of a commit is read as the project's; neither is read without end.
func TestVendoredOfCommit(t *testing.T) {
	id, err := ParseID("git+https://git.example.org/acme/w")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	testutil.Git(t, dir, "init", "-q")
	project := filepath.Join(dir, "below")
	at := filepath.Join(project, VendorDir, id.VendorName())
	write := func(name string, size int64) {
		t.Helper()
		file := filepath.Join(at, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, nil, 0o644), os.Truncate(file, size)); err != nil {
			t.Fatal(err)
		}
	}
	commit := func() fs.FS {
		t.Helper()
		testutil.Git(t, dir, "add", "-A")
		testutil.Git(t, dir, "commit", "-qm", "x", "--allow-empty")
		files, err := git.Tree(t.Context(), dir, "HEAD")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(files.Close)
		below, err := fs.Sub(files, "below")
		if err != nil {
			t.Fatal(err)
		}
		return below
	}
	if _, err := Vendored(commit(), id); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	write("workshop.yaml", 3)
	write("workers/a.md", 1<<20)
	want := Tree{"workshop.yaml": make([]byte, 3), "workers/a.md": make([]byte, 1<<20)}
	for name, fsys := range map[string]fs.FS{"commit": commit(), "directory": os.DirFS(project)} {
		if got, err := Vendored(fsys, id); err != nil || cmp.Diff(want, got) != "" {
			t.Errorf("%s: %d files, %v", name, len(got), err)
		}
	}
	both := func(what string) {
		t.Helper()
		for name, fsys := range map[string]fs.FS{"commit": commit(), "directory": os.DirFS(project)} {
			if _, err := Vendored(fsys, id); err == nil || errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s, %s: %v", name, what, err)
			}
		}
	}
	write("workers/a.md", 1<<20+1)
	both("a file that is too large")
	write("workers/a.md", 1)
	for i := range 9 {
		write(fmt.Sprint("large", i), 1<<20)
	}
	both("files that are too large together")
	for i := range 300 {
		write(fmt.Sprint("large", i%9), 0)
		write(fmt.Sprint("many/", i), 0)
	}
	both("too many files")
	if err := errors.Join(os.RemoveAll(at), os.WriteFile(at, nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	both("a file in its place")
}

// What a lock has is of a version, or must be locked anew.
func TestAllows(t *testing.T) {
	commit, other := strings.Repeat("a", 40), strings.Repeat("b", 40)
	for _, c := range []struct {
		version, ref string
		want         bool
	}{
		{"^1.4", "refs/tags/v1.4.2", true}, {"^1.4", "refs/tags/1.9.0", true}, {"^1.4", "refs/tags/v2.0.0", false}, {"^1.4", "refs/tags/v1.3.9", false},
		{"^1.4", "refs/tags/v1.5", false}, {"^1.4", "refs/tags/v1.5.0-rc.1", false}, {"^1.4", "refs/heads/v1.4.2", false}, {"^1.4", "", false},
		{"", "refs/tags/v9.0.0", true}, {"", "refs/heads/main", false}, {"", "refs/tags/release", false},
		{"v1.4.2", "refs/tags/v1.4.2", true}, {"v1.4.2", "refs/tags/1.4.2", false}, {"v1.4.2", "refs/heads/v1.4.2", false},
		{commit, "refs/heads/main", true}, {other, "refs/heads/main", false}, {other, "refs/tags/" + other, false},
	} {
		v, err := ParseVersion(c.version)
		if err != nil {
			t.Fatal(err)
		}
		if got := v.Allows(c.ref, commit); got != c.want {
			t.Errorf("%q allows %q: %t", c.version, c.ref, got)
		}
		// What was resolved is allowed, too.
		if got, err := v.Resolve([]git.Ref{{Name: c.ref, Commit: commit}}); err == nil && !c.want {
			t.Errorf("%q resolves to %v", c.version, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("git+https://git.example.org/acme/w//a", "^1.4")
	f.Add("oci://registry.example.org/acme/w", "sha256:ab")
	f.Add("git+ssh://git@git.example.org/~a/w", ">=1, <2 || 3.x")
	f.Add("git+https://git.example.org/acme/.git//lib", "v1")
	f.Fuzz(func(t *testing.T, from, version string) {
		if id, err := ParseID(from); err == nil {
			if again, err := ParseID(id.From()); err != nil || again != id {
				t.Errorf("%q: %v, then %v, %v", from, id, again, err)
			}
			if !IsName(id.String()) {
				t.Errorf("%q: %s is no name", from, id)
			}
			if name := id.VendorName(); !fs.ValidPath(name) || strings.Contains(name, "/") {
				t.Errorf("%q: vendored as %q", from, name)
			}
		}
		if v, err := ParseVersion(version); err == nil {
			r, err := v.Resolve([]git.Ref{{Name: "refs/tags/v1.0.0", Commit: strings.Repeat("a", 40)}})
			if err == nil && !v.Allows(r.Name, r.Commit) {
				t.Errorf("%q resolves to %v, which it doesn't allow", version, r)
			}
		}
	})
}

// A repository of a registry is never taken for one of git at the same place, and is
// matched by what allows HOST/PATH (sources.allow).
func TestOCINames(t *testing.T) {
	oci, err := ParseID("oci://registry.example.org/acme/w")
	if err != nil {
		t.Fatal(err)
	}
	for _, from := range []string{"git+https://registry.example.org/acme/w", "git+https://registry.example.org/acme/w//oci", "git+https://registry.example.org/acme/w//_oci"} {
		other, err := ParseID(from)
		if err != nil || other == oci || other.String() == oci.String() || other.VendorName() == oci.VendorName() {
			t.Errorf("%s: %s, %s, %v", from, other, other.VendorName(), err)
		}
	}
	if id, err := ParseID("git+https://registry.example.org/acme/w/:oci"); err == nil {
		t.Errorf("of git: %s", id)
	}
	for _, pattern := range []string{"registry.example.org", "registry.example.org/acme", "registry.example.org/acme/w", "registry.example.org/*/w", "registry.example.org/acme/w/:oci"} {
		if !module.MatchPrefixPatterns(pattern, oci.String()) {
			t.Errorf("%s doesn't match %s", pattern, oci)
		}
	}
}
