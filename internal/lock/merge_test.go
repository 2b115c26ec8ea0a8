package lock

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/source"
)

// merged is the lock that a merge of git leaves of two, which have their last commit in
// common.
func merged(t *testing.T, style string, base, ours, theirs *Lock) []byte {
	t.Helper()
	dir := t.TempDir()
	commit := func(l *Lock) {
		if err := os.WriteFile(filepath.Join(dir, "workshop.lock"), l.Render(), 0o644); err != nil {
			t.Fatal(err)
		}
		testutil.Git(t, dir, "add", "-A")
		testutil.Git(t, dir, "commit", "-qm", "x")
	}
	testutil.Git(t, dir, "init", "-q", "-b", "main")
	commit(base)
	testutil.Git(t, dir, "checkout", "-qb", "other")
	commit(theirs)
	testutil.Git(t, dir, "checkout", "-q", "main")
	commit(ours)
	merge := exec.Command("git", "-c", "merge.conflictStyle="+style, "-c", "user.name=x", "-c", "user.email=x@example.org", "merge", "-q", "other")
	merge.Dir = dir
	if out, err := merge.CombinedOutput(); err == nil {
		t.Fatalf("no conflict: %s", out)
	}
	text, err := os.ReadFile(filepath.Join(dir, "workshop.lock"))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// B46: of a lock with conflicts, what both sides have stays, and nothing of one side alone.
func TestAgreed(t *testing.T) {
	tree := "h1:" + strings.Repeat("A", 43) + "="
	lockOf := func(digits string, more ...string) *Lock {
		l := Empty()
		l.Files["workshop.yaml"] = HashText([]byte(digits))
		l.Can = []string{"one net " + digits + ".example.org tcp/80,443"}
		add := func(id, digit string) {
			commit := strings.Repeat(digit, 40)
			l.Sources[id] = Source{Locked: source.Locked{Original: "^1", Ref: "refs/tags/v1.0." + digit, Commit: commit, Tree: tree}, Via: []string{"workshop.yaml"}}
		}
		add("git.example.org/a", "1")
		add("git.example.org/b", digits)
		add("git.example.org/b2", digits)
		for _, id := range more {
			add(id, "5")
		}
		l.Images["ghcr.io/acme/a:1"] = Image{Digest: HashText([]byte("a"))}
		l.Images["ghcr.io/acme/b:1"] = Image{Digest: HashText([]byte(digits))}
		return l
	}
	signedBy := func(l *Lock, id string, s *source.Signer) {
		x := l.Sources[id]
		x.Signed = s
		l.Sources[id] = x
	}
	who := &source.Signer{By: "acme", Key: "SHA256:" + strings.Repeat("A", 43)}
	base, ours, theirs := lockOf("2"), lockOf("3", "git.example.org/c"), lockOf("4")
	for _, l := range []*Lock{base, ours, theirs} {
		signedBy(l, "git.example.org/b", who)
	}
	signedBy(theirs, "git.example.org/b2", who)
	for _, style := range []string{"merge", "diff3"} {
		text := merged(t, style, base, ours, theirs)
		if l, list := Parse("workshop.lock", text); l != nil || len(list) == 0 {
			t.Fatalf("%s: it is read with its conflicts:\n%s", style, text)
		}
		want := Empty()
		want.Sources["git.example.org/a"] = base.Sources["git.example.org/a"]
		// What was signed stays so, whichever is chosen.
		want.Sources["git.example.org/b"] = Source{Locked: source.Locked{Signed: who}}
		want.Sources["git.example.org/b2"] = Source{Locked: source.Locked{Signed: who}}
		want.Images["ghcr.io/acme/a:1"] = base.Images["ghcr.io/acme/a:1"]
		if d := cmp.Diff(want, Agreed(text)); d != "" {
			t.Errorf("%s: %s\n%s", style, d, text)
		}
		if got := Agreed([]byte(strings.Replace(string(text), ">>>>>>>", "", 1))); got != nil {
			t.Errorf("%s: a marker is missing: %+v", style, got)
		}
		if got := Agreed([]byte(strings.Replace(string(text), strings.Repeat("1", 40), "x", 1))); got != nil {
			t.Errorf("%s: no lock: %+v", style, got)
		}
	}
	for _, text := range []string{"", string(base.Render()), "<<<<<<<\n", "=======\n", ">>>>>>>\n<<<<<<<\n", "<<<<<<< a\n<<<<<<< b\n=======\n>>>>>>>\n"} {
		if got := Agreed([]byte(text)); got != nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
}
