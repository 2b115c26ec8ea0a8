package lock

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/llmdo/workshop/internal/source"
)

var (
	aCommit = strings.Repeat("9f2c", 10)
	aTree   = "h1:" + strings.Repeat("p", 43) + "="
	aKey    = "SHA256:" + strings.Repeat("Q", 43)
)

const review = "git.example.org/acme/workshops//go-review"

// withSources is a lock of two sources, one of them signed.
func withSources() *Lock {
	l := Empty()
	l.Files["workshop.yaml"] = HashText([]byte(file))
	l.Sources[review] = Source{
		Locked: source.Locked{Original: "^1.4", Ref: "refs/tags/v1.4.2", Commit: aCommit, Tree: aTree, Signed: &source.Signer{By: "acme-release", Key: aKey}},
		Via:    []string{"workshop.yaml"},
	}
	l.Sources["[2001:db8::1]:444/x"] = Source{
		Locked: source.Locked{Ref: "refs/heads/main", Commit: strings.Repeat("1", 64), Tree: aTree},
		Via:    []string{review, "my, [own].yaml"},
	}
	l.Can = []string{"one tool shell"}
	return l
}

func TestSourceText(t *testing.T) {
	want := title + `
version: 1
files:
  workshop.yaml: ` + HashText([]byte(file)) + `
sources:
  "[2001:db8::1]:444/x":
    ref: refs/heads/main
    commit: "1111111111111111111111111111111111111111111111111111111111111111"
    tree: ` + aTree + `
    via: [git.example.org/acme/workshops//go-review, "my, [own].yaml"]
  git.example.org/acme/workshops//go-review:
    original: ^1.4
    ref: refs/tags/v1.4.2
    commit: ` + aCommit + `
    tree: ` + aTree + `
    signed: {by: acme-release, key: "` + aKey + `"}
    via: [workshop.yaml]
can:
  - one tool shell
...
`
	l := withSources()
	if d := cmp.Diff(want, string(l.Render())); d != "" {
		t.Error(d)
	}
	got, list := Parse("workshop.lock", l.Render())
	if len(list) > 0 || cmp.Diff(l, got) != "" {
		t.Errorf("%v: %s", list, cmp.Diff(l, got))
	}
}

// A source of a registry has the digest of its manifest as the commit.
func TestSourceOfRegistry(t *testing.T) {
	digest := "sha256:" + strings.Repeat("ab", 32)
	l := Empty()
	l.Sources["registry.example.org:5000/acme/w/:oci"] = Source{Locked: source.Locked{Original: "^1.4", Ref: "refs/tags/v1.4.2", Commit: digest, Tree: aTree}, Via: []string{"workshop.yaml"}}
	l.Sources["[2001:db8::1]:5000/w/:oci"] = Source{Locked: source.Locked{Original: digest, Ref: digest, Commit: digest, Tree: aTree}, Via: []string{"workshop.yaml"}}
	got, list := Parse("workshop.lock", l.Render())
	if len(list) > 0 || cmp.Diff(l, got) != "" {
		t.Errorf("%v: %s", list, cmp.Diff(l, got))
	}
	for _, bad := range []string{digest[:70], "sha512:" + strings.Repeat("ab", 32), strings.ToUpper(digest)} {
		if _, list := Parse("workshop.lock", []byte(strings.ReplaceAll(string(l.Render()), digest, bad))); len(list) == 0 {
			t.Errorf("%s is taken", bad)
		}
	}
}

// B46: a source that isn't whole is an error with a line.
func TestBadSource(t *testing.T) {
	good := string(withSources().Render())
	for _, c := range []struct{ name, old, with, want string }{
		{"no commit", "    commit: " + aCommit + "\n", "", "workshop.lock:12:5: the source has no commit"},
		{"no tree", "    tree: " + aTree + "\n    signed", "    signed", "the source has no tree"},
		{"no ref", "    ref: refs/tags/v1.4.2\n", "", "the source has no ref"},
		{"not named", "    via: [workshop.yaml]\n", "", "the source has no via"},
		{"named by nobody", "via: [workshop.yaml]", "via: []", "workshop.lock:17:10: this part of the lock is not a list of names"},
		{"named by one", "via: [workshop.yaml]", "via: workshop.yaml", "is not a list of names"},
		{"named by a mapping", "via: [workshop.yaml]", "via: [{a: b}]", "is not a name"},
		{"named by an alias", "via: [workshop.yaml]", "via: [&a x, *a]", "is not a name"},
		{"short commit", "commit: " + aCommit, "commit: " + aCommit[:12], `workshop.lock:14:13: "9f2c9f2c9f2c" is not a commit: want its whole name`},
		{"an option for a commit", "commit: " + aCommit, "commit: --upload-pack=id", "is not a commit"},
		{"an option for a ref", "ref: refs/tags/v1.4.2", "ref: --upload-pack=id", "is not a branch or tag"},
		{"a ref of others", "ref: refs/tags/v1.4.2", "ref: refs/pull/1/head", "is not a branch or tag"},
		{"another hash", "tree: " + aTree + "\n    signed", "tree: " + HashText(nil) + "\n    signed", "is not the hash of a tree"},
		{"no version", "original: ^1.4", "original: ''", "is not a version"},
		{"a bad version", "original: ^1.4", "original: ^y", "is not a range of versions"},
		{"no key", `, key: "` + aKey + `"`, "", "the signer has no name, or no key"},
		{"no name", "by: acme-release, ", "", "the signer has no name, or no key"},
		{"a bad key", aKey, "MD5:00", "is not the fingerprint of a key"},
		{"unknown", "    via: [workshop.yaml]\n", "    via: [workshop.yaml]\n    more: 1\n", `a source of the lock has an unknown key "more"`},
		{"unknown of the signer", "{by:", "{at: 1, by:", `a signer of the lock has an unknown key "at"`},
		{"twice", "    via: [workshop.yaml]\n", "    via: [workshop.yaml]\n    tree: " + aTree + "\n", `the key "tree" is given twice`},
		{"a source twice", "can:\n", "  " + review + ": {}\ncan:\n", "is given twice"},
		{"no mapping", "sources:\n", "sources: []\nx:\n", "is not a mapping"},
		{"a command for a name", review + ":", "h.example/$(id):", `"h.example/$(id)" is not the name of a source`},
		{"an escape for a name", review + ":", `"h.example/\e[2J":`, "is not the name of a source"},
		{"another way to write a name", review + ":", "git.example.org/acme/workshops.git:", "is not the name of a source"},
		{"a text", "sources:\n", "sources:\n  a: b\n", "is not a mapping"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Replace(good, c.old, c.with, 1)
			if text == good {
				t.Fatal("nothing was changed")
			}
			l, list := Parse("workshop.lock", []byte(text))
			if l != nil || !strings.Contains(textOf(list), c.want) {
				t.Errorf("got %v, %s, want %s", l, textOf(list), c.want)
			}
		})
	}
}

func TestCompareSources(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Source)
		want   string
	}{
		{"nothing", func(*Source) {}, ""},
		{"version", func(s *Source) { s.Original = "" }, "source " + review + ": version is none, locked as ^1.4"},
		{"ref", func(s *Source) { s.Ref = "refs/tags/v1.4.3" }, "source " + review + ": ref is refs/tags/v1.4.3, locked as refs/tags/v1.4.2"},
		{"commit", func(s *Source) { s.Commit = strings.Repeat("a", 40) }, "source " + review + ": commit is " + strings.Repeat("a", 40) + ", locked as " + aCommit},
		{"tree", func(s *Source) { s.Tree = "h1:x" }, "source " + review + ": tree is h1:x, locked as " + aTree},
		{"signer", func(s *Source) { s.Signed = nil }, "source " + review + ": signer is none, locked as acme-release (" + aKey + ")"},
		{"via", func(s *Source) { s.Via = append(s.Via, "x.example/y") }, "source " + review + ": named by is workshop.yaml, x.example/y, locked as workshop.yaml"},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := withSources()
			s := now.Sources[review]
			c.change(&s)
			now.Sources[review] = s
			var got []string
			for _, d := range Compare(withSources(), now) {
				if d.Kind != SourceK || d.Name != review {
					t.Errorf("%+v", d)
				}
				got = append(got, d.String())
			}
			if text := strings.Join(got, "\n"); text != c.want {
				t.Errorf("got %s, want %s", text, c.want)
			}
		})
	}
	now := withSources()
	delete(now.Sources, review)
	if d := Compare(withSources(), now); len(d) != 1 || d[0].String() != "source "+review+" is in the lock and not used" {
		t.Error(d)
	}
	if d := Compare(now, withSources()); len(d) != 1 || d[0].String() != "source "+review+" isn't in the lock" {
		t.Error(d)
	}
}
