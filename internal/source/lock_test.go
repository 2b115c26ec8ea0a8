package source

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/llmdo/workshop/internal/dev/testutil"
)

// published is a repository with a library in it, served at the returned source.
func published(t *testing.T) (repo string, id ID) {
	t.Helper()
	at := t.TempDir()
	address := testutil.ServeGit(t, at)
	repo = filepath.Join(at, "acme/workshops")
	if err := os.MkdirAll(repo, 0o755); err != nil {
		t.Fatal(err)
	}
	testutil.Git(t, repo, "init", "-q")
	release(t, repo, "v1.4.0", "one\n")
	id, err := ParseID("git+" + address + "/acme/workshops/.git//lib")
	if err != nil {
		t.Fatal(err)
	}
	return repo, id
}

func release(t *testing.T, repo, tag, text string) {
	t.Helper()
	file := filepath.Join(repo, "lib/workers/a.md")
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
	testutil.Git(t, repo, "add", "-A")
	testutil.Git(t, repo, "commit", "-qm", tag, "--allow-empty")
	testutil.Git(t, repo, "tag", "-f", tag)
}

func latest(t *testing.T, id ID, version string) (Tree, Locked) {
	t.Helper()
	v, err := ParseVersion(version)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Latest(t.Context(), id, v, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r.Files, r.Locked
}

// B46: what a lock has is what is read, from wherever it comes, also after its tag has
// moved; and nothing is contacted that needn't be, or that nobody accepted.
func TestStore(t *testing.T) {
	repo, id := published(t)
	tree, l := latest(t, id, "^1")
	if l.Original != "^1" || l.Ref != "refs/tags/v1.4.0" || l.Commit != testutil.Git(t, repo, "rev-parse", "HEAD") || string(tree["workers/a.md"]) != "one\n" || l.Signed != nil {
		t.Errorf("%+v: %s", l, tree)
	}
	release(t, repo, "v1.4.0", "moved\n")
	if _, moved := latest(t, id, "v1.4.0"); moved.Commit == l.Commit || moved.Tree == l.Tree {
		t.Errorf("the tag moved, and is locked as %+v", moved)
	}
	project, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer project.Close()
	asked := 0
	s := Store{Project: project.FS(), Cache: Cache{filepath.Join(t.TempDir(), "cache")}, Offline: true}
	if _, err := s.Open(t.Context(), id, l); !errors.Is(err, ErrOffline) || !strings.Contains(err.Error(), l.Tree) {
		t.Errorf("offline: %v", err)
	}
	s.Offline = false
	if _, err := s.Open(t.Context(), id, l); err == nil || !strings.Contains(err.Error(), "accepted by nobody") {
		t.Errorf("nobody was asked: %v", err)
	}
	no := errors.New("no")
	s.Accepted = func(ID, Locked) error { return no }
	if _, err := s.Open(t.Context(), id, l); !errors.Is(err, no) {
		t.Errorf("refused: %v", err)
	}
	s.Accepted = func(got ID, of Locked) error {
		if asked++; got != id || of != l {
			t.Errorf("asked about %v, %v", got, of)
		}
		return nil
	}
	for name, want := range map[string]Locked{
		"another tree":     {Ref: l.Ref, Commit: l.Commit, Tree: "h1:AAAA="},
		"no commit of it":  {Ref: l.Ref, Commit: strings.Repeat("a", 40), Tree: l.Tree},
		"an option":        {Ref: "--upload-pack=id", Commit: "--upload-pack=id", Tree: "h1:BBBB="},
		"not even a hash":  {Ref: l.Ref, Commit: l.Commit, Tree: "../../x"},
		"a tag for commit": {Ref: l.Ref, Commit: l.Ref, Tree: l.Tree},
	} {
		asked := s
		asked.Accepted = func(ID, Locked) error { return nil }
		if got, err := asked.Open(t.Context(), id, want); err == nil {
			t.Errorf("%s: %s", name, got)
		}
	}
	for range 2 { // the second is from the cache
		got, err := s.Open(t.Context(), id, l)
		if err != nil || got.Is(l.Tree) != nil || string(got["workers/a.md"]) != "one\n" {
			t.Errorf("%s, %v", got, err)
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	s.Offline = true
	if _, err := s.Open(t.Context(), id, l); err != nil {
		t.Errorf("offline, of the cache: %v", err)
	}
	if err := errors.Join(Vendor(project, id, tree), os.RemoveAll(s.Cache.Dir)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Open(t.Context(), id, l); err != nil {
		t.Errorf("offline, vendored: %v", err)
	}
	if err := project.WriteFile(VendorDir+"/"+id.VendorName()+"/workers/a.md", []byte("changed\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	s.Offline = false
	if _, err := s.Open(t.Context(), id, l); err == nil || !strings.Contains(err.Error(), "is not what workshop.lock has") {
		t.Errorf("changed in the vendor directory: %v", err)
	}
}

func TestTreeFS(t *testing.T) {
	tree := Tree{"workshop.yaml": []byte("a\n"), "workers/x.md": []byte("b"), "workers/sub/y.md": nil, "workers/sub/z/w.md": []byte("c")}
	if err := fstest.TestFS(tree.FS(), "workshop.yaml", "workers/x.md", "workers/sub/y.md", "workers/sub/z/w.md"); err != nil {
		t.Error(err)
	}
	if got, err := fs.ReadDir(tree.FS(), "workers/sub"); err != nil || len(got) != 2 {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := fs.ReadDir(Tree{}.FS(), "."); err != nil || len(got) != 0 {
		t.Errorf("%v, %v", got, err)
	}
}

// B47: a name that isn't one on every machine is refused wherever a tree comes from.
func TestNames(t *testing.T) {
	for _, tree := range []Tree{
		{"../x": nil}, {"/x": nil}, {"a/../b": nil}, {".git/config": nil}, {"a/.GIT/x": nil}, {".git./x": nil}, {"CON": nil}, {"a.": nil}, {"a\x00b": nil}, {"a\x1bb": nil},
		{"a": nil, "A": nil}, {"d/a": nil, "D/b": nil}, {"s": nil, "ſ": nil}, {"a": nil, "a/b": nil}, {"": nil}, {"a\u202eb": nil},
	} {
		hash, err := tree.Hash()
		if err != nil {
			t.Fatal(err)
		}
		if tree.Is(hash) == nil {
			t.Errorf("%q is a tree", tree)
		}
	}
}

// B46: who signed a tag counts only for that tag of that commit.
func TestSignedRelease(t *testing.T) {
	repo, id := published(t)
	s := newSigned(t)
	public, other := s.key("key", "ed25519"), s.key("other", "ed25519")
	t.Setenv("HOME", filepath.Dir(os.Getenv("XDG_CONFIG_HOME"))) // that of the server
	testutil.Git(t, repo, "-c", "gpg.format=ssh", "-c", "user.signingKey="+filepath.Join(s.dir, "key"), "tag", "-s", "-m", "a release\n\nof ours", "v2.0.0")
	testutil.Git(t, repo, "update-ref", "refs/tags/v3.0.0", "refs/tags/v2.0.0")
	testutil.Git(t, repo, "tag", "-a", "-m", "x", "v4.0.0")
	for _, c := range []struct {
		version string
		all     Signers
		want    string
	}{
		{"v2.0.0", signers(t, "acme "+public), "acme"},
		{"v2.0.0", nil, ""},
		{"v2.0.0", signers(t, "acme "+other), "! is not one of the signers"},
		{"v3.0.0", signers(t, "acme "+public), "! signed for something else"},
		{"v4.0.0", signers(t, "acme "+public), ""},
		{"v1.4.0", signers(t, "acme "+public), ""},
	} {
		v, err := ParseVersion(c.version)
		if err != nil {
			t.Fatal(err)
		}
		var required []Signers
		if c.all != nil {
			required = []Signers{c.all}
		}
		l, err := Latest(t.Context(), id, v, nil, required)
		by := ""
		if l.Signed != nil {
			by = l.Signed.By
		}
		if why, bad := strings.CutPrefix(c.want, "! "); bad {
			if _, is := errors.AsType[*SignatureError](err); !is || !strings.Contains(err.Error(), why) {
				t.Errorf("%s: %s, %v; want %s", c.version, by, err, why)
			}
		} else if err != nil || by != c.want {
			t.Errorf("%s: %s, %v; want %s", c.version, by, err, c.want)
		}
	}
}

// B46, B47: what is verified is the tag that a lock has, at its commit, by a key that each
// file of signers knows.
func TestVerify(t *testing.T) {
	repo, id := published(t)
	s := newSigned(t)
	public, other := s.key("key", "ed25519"), s.key("other", "ed25519")
	t.Setenv("HOME", filepath.Dir(os.Getenv("XDG_CONFIG_HOME"))) // that of the server
	sign := func(tag string) {
		t.Helper()
		testutil.Git(t, repo, "-c", "gpg.format=ssh", "-c", "user.signingKey="+filepath.Join(s.dir, "key"), "tag", "-f", "-s", "-m", "x", tag)
	}
	sign("v2.0.0")
	_, l := latest(t, id, "v2.0.0")
	_, unsigned := latest(t, id, "v1.4.0")
	acme, both, others := signers(t, "acme "+public), signers(t, "both "+other, "both "+public), signers(t, "x "+other)
	pinned := func(key string) Signers {
		t.Helper()
		s, err := PinnedSigner(key)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	known, err := acme.Has(id, acme[0].key, time.Now())
	if err != nil || known.By != "acme" {
		t.Fatal(known, err)
	}
	for name, c := range map[string]struct {
		l    Locked
		all  []Signers
		want string
	}{
		"one":          {l, []Signers{acme}, ""},
		"each of two":  {l, []Signers{acme, both}, ""},
		"one of two":   {l, []Signers{acme, others}, "is not one of the signers"},
		"another key":  {l, []Signers{pinned(others[0].key)}, "is not one of the signers"},
		"unsigned":     {unsigned, []Signers{acme}, "not signed"},
		"nobody knows": {l, nil, "not signed"},
		"other commit": {Locked{Ref: l.Ref, Commit: strings.Repeat("a", 40), Tree: l.Tree}, []Signers{acme}, "nobody can say who signed that"},
	} {
		tree, who, err := Verify(t.Context(), id, c.l, c.all)
		_, is := errors.AsType[*SignatureError](err)
		switch {
		case c.want == "" && (err != nil || who != known || tree.Is(l.Tree) != nil):
			t.Errorf("%s: %v, %v", name, who, err)
		case c.want != "" && (!is || !strings.Contains(err.Error(), c.want) || tree != nil):
			t.Errorf("%s: %v, %v; want %s", name, who, err, c.want)
		}
	}
	if _, who, err := Verify(t.Context(), id, l, []Signers{pinned(known.Key)}); err != nil || who.String() != known.Key {
		t.Errorf("pinned: %v, %v", who, err)
	}
	if _, _, err := Verify(t.Context(), id, Locked{Ref: l.Ref, Commit: l.Commit, Tree: unsigned.Tree + "x"}, []Signers{acme}); err == nil || !strings.Contains(err.Error(), "another tree") {
		t.Error(err)
	}
	release(t, repo, "v2.0.1", "more\n")
	sign("v2.0.0") // it moved, and is signed
	if _, _, err := Verify(t.Context(), id, l, []Signers{acme}); err == nil || !strings.Contains(err.Error(), "is the commit") {
		t.Error(err)
	}
}

// B46: a tag that moves after it was chosen isn't what was chosen.
func TestTagMovesMeanwhile(t *testing.T) {
	repo, id := published(t)
	release(t, repo, "later", "two\n")
	program, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	script := "#!/bin/sh\ncase \"$*\" in *ls-remote*) " + program + " \"$@\" && exec " + program + " -C " + repo + " tag -f v1.4.0 later >/dev/null ;; esac\nexec " + program + " \"$@\"\n"
	if err := os.WriteFile(filepath.Join(dir, "git"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
	v, err := ParseVersion("^1")
	if err != nil {
		t.Fatal(err)
	}
	if r, err := Latest(t.Context(), id, v, nil, nil); err == nil || !strings.Contains(err.Error(), "moved from") {
		t.Errorf("%+v, %v", r.Locked, err)
	}
}

// One release is chosen for all files that name a source, or none.
func TestLatestOfAll(t *testing.T) {
	repo, id := published(t)
	release(t, repo, "v1.5.0", "two\n")
	release(t, repo, "v2.0.0", "three\n")
	version := func(text string) Version {
		v, err := ParseVersion(text)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	r, err := Latest(t.Context(), id, version(">=1"), []Version{version("^1.4"), version("")}, nil)
	if err != nil || r.Ref != "refs/tags/v1.5.0" || r.Original != ">=1" {
		t.Errorf("%+v, %v", r.Locked, err)
	}
	if r, err := Latest(t.Context(), id, version("^2"), []Version{version("^1.4")}, nil); err == nil || !strings.Contains(err.Error(), "no release is within all versions that are wanted, ^1.4 and ^2: it has v1.4.0, v1.5.0, v2.0.0") {
		t.Errorf("%+v, %v", r.Locked, err)
	}
}
