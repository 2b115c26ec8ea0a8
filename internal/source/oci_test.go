package source

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/image"
)

// inRegistry is a source of a registry on the loopback. Nobody's configuration is read.
func inRegistry(t *testing.T, each func(http.ResponseWriter, *http.Request) bool) ID {
	t.Helper()
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	s := httptest.NewServer(testutil.Registry(each))
	t.Cleanup(s.Close)
	id, err := ParseID("oci://" + s.Listener.Addr().String() + "/acme/go-review")
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func library(text string) Tree {
	return Tree{"workshop.yaml": []byte("workshop: {}\n"), "workers/a.md": []byte(text), "empty": nil}
}

// pack is an artifact of a release.
func pack(t *testing.T, tree Tree, tag string) image.Artifact {
	t.Helper()
	a, err := Pack(tree, tag)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func publish(t *testing.T, id ID, tag, text string) image.Artifact {
	t.Helper()
	a := pack(t, library(text), tag)
	if _, err := Publish(t.Context(), id, a, nil); err != nil {
		t.Fatal(err)
	}
	return a
}

// B46, B47: of a registry, a version means a tag or a digest, and what was locked is what
// comes, also after a tag has moved.
func TestOCI(t *testing.T) {
	id := inRegistry(t, nil)
	one := publish(t, id, "v1.4.0", "one\n")
	publish(t, id, "v1.4.10", "ten\n")
	publish(t, id, "1.5.0-rc.1", "soon\n")
	publish(t, id, "v2.0.0", "two\n")
	publish(t, id, "nightly", "night\n")
	for version, want := range map[string]string{
		"":                      "v2.0.0",
		"^1.4":                  "v1.4.10",
		"<1.4.10":               "v1.4.0",
		">=1.5.0-a, <2":         "1.5.0-rc.1",
		"v1.4.0":                "v1.4.0",
		"nightly":               "nightly",
		"v1.4":                  "! there is no tag v1.4: did you mean the range ^1.4?",
		"1.4.0":                 "! there is no tag 1.4.0: did you mean the tag v1.4.0, or ^1.4.0",
		"weekly":                "! there is no tag weekly: it has 1.5.0-rc.1, nightly, v1.4.0",
		"v3.0.0":                "! there is no tag v3.0.0: it has 1.5.0-rc.1, nightly, v1.4.0",
		"^3":                    "! no tag is a version within ^3: it has 1.5.0-rc.1, nightly, v1.4.0",
		"main/x":                "! there is no tag main/x",
		strings.Repeat("a", 40): "! a registry has no commits",
		"sha256:" + hex64:       "! the registry doesn't have it",
		"sha256:ab":             "! there is no tag",
	} {
		v, err := ParseVersion(version)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Latest(t.Context(), id, v, nil, nil)
		if why, bad := strings.CutPrefix(want, "! "); bad {
			if _, is := errors.AsType[*VersionError](err); !is || !strings.Contains(err.Error(), why) {
				t.Errorf("%q: %+v, %v; want %s", version, got.Locked, err, why)
			}
			continue
		}
		if err != nil || got.Ref != "refs/tags/"+want || got.Original != version || !image.IsDigest(got.Commit) || got.Files.Is(got.Tree) != nil || !v.Allows(got.Ref, got.Commit) {
			t.Errorf("%q: %+v, %v; want %s", version, got.Locked, err, want)
		}
	}
	byDigest, l := latest(t, id, one.Digest())
	if l.Ref != one.Digest() || l.Commit != one.Digest() || string(byDigest["workers/a.md"]) != "one\n" {
		t.Errorf("%+v", l)
	}
	_, l = latest(t, id, "v1.4.0")
	moved := pack(t, library("moved\n"), "v1.4.0")
	tag(t, id, moved)
	if _, now := latest(t, id, "v1.4.0"); now.Commit == l.Commit || now.Tree == l.Tree {
		t.Errorf("the tag moved, and is locked as %+v", now)
	}
	s := Store{Cache: Cache{t.TempDir()}, Accepted: func(ID, Locked) error { return nil }}
	if got, err := s.Open(t.Context(), id, l); err != nil || got.Is(l.Tree) != nil || string(got["workers/a.md"]) != "one\n" {
		t.Errorf("%s, %v", got, err)
	}
	s.Offline = true
	if _, err := s.Open(t.Context(), id, l); err != nil {
		t.Errorf("offline, of the cache: %v", err)
	}
	s = Store{Accepted: s.Accepted}
	for name, other := range map[string]Locked{
		"another tree":    {Ref: l.Ref, Commit: moved.Digest(), Tree: l.Tree},
		"a tag":           {Ref: l.Ref, Commit: "v1.4.0", Tree: l.Tree},
		"a commit of git": {Ref: l.Ref, Commit: strings.Repeat("a", 40), Tree: l.Tree},
		"nothing of it":   {Ref: l.Ref, Commit: "sha256:" + hex64, Tree: l.Tree},
		"a path":          {Ref: l.Ref, Commit: "../../x", Tree: l.Tree},
	} {
		if got, err := s.Open(t.Context(), id, other); err == nil {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// tag makes a tag whatever is there: as its owner could, but not [Publish].
func tag(t *testing.T, id ID, a image.Artifact) {
	t.Helper()
	o, err := openOCI(id)
	if err != nil {
		t.Fatal(err)
	}
	p, err := o.repo.Pusher(t.Context())
	if err == nil {
		err = p.Push(t.Context(), a, a.Version)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// One version has one tag.
func TestOCITwoTags(t *testing.T) {
	id := inRegistry(t, nil)
	publish(t, id, "v1.0.0", "one\n")
	publish(t, id, "1.0.0", "two\n")
	v, err := ParseVersion("^1")
	if err != nil {
		t.Fatal(err)
	}
	if r, err := Latest(t.Context(), id, v, nil, nil); err == nil || !strings.Contains(err.Error(), "the tags 1.0.0 and v1.0.0 are one version") {
		t.Errorf("%+v, %v", r.Locked, err)
	}
}

// B47: names and sizes of files are those of git's sources, and nothing but them is read.
func TestOCIContent(t *testing.T) {
	id := inRegistry(t, nil)
	many := Tree{}
	for i := range maxFiles + 1 {
		many["f"+string(rune('a'+i%26))+strings.Repeat("x", i/26)] = nil
	}
	packed := func(tree Tree) []byte {
		data, err := json.Marshal(tree)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	mib := make([]byte, maxFile)
	for name, layer := range map[string][]byte{
		"out of it":      packed(Tree{"../x": {1}}),
		"absolute":       packed(Tree{"/etc/x": {1}}),
		"git's":          packed(Tree{".git/config": {1}}),
		"case":           packed(Tree{"a": {1}, "A": {1}}),
		"a device":       packed(Tree{"CON": {1}}),
		"many":           packed(many),
		"large":          packed(Tree{"a": append([]byte{1}, mib...)}),
		"large together": packed(Tree{"a": mib, "b": mib, "c": mib, "d": mib, "e": mib, "f": mib, "g": mib, "h": mib, "i": {1}}),
		"nothing":        []byte(`{}`),
		"null":           []byte(`null`),
		"null content":   []byte(`{"a":null}`),
		"twice":          []byte(`{"a":"YQ==","a":"Yg=="}`),
		"out of order":   []byte(`{"b":"YQ==","a":"Yg=="}`),
		"trailing":       []byte(`{"a":"YQ=="}{}`),
		"spaces":         []byte(`{"a": "YQ=="}`),
		"a list":         []byte(`["a"]`),
		"an archive":     {0x1f, 0x8b, 8, 0},
	} {
		a := workshopArtifact
		a.Layer, a.Version = layer, "v1.0.0"
		tag(t, id, a)
		v, err := ParseVersion("v1.0.0")
		if err != nil {
			t.Fatal(err)
		}
		if r, err := Latest(t.Context(), id, v, nil, nil); err == nil {
			t.Errorf("%s: %q", name, r.Files)
		}
	}
	for name, tree := range map[string]Tree{"bad": {"../x": nil}, "many": many, "nothing": {}} {
		if _, err := Pack(tree, "v1.0.0"); err == nil {
			t.Errorf("%s is packed", name)
		}
	}
	if _, err := Pack(library("x"), "v1+x"); err == nil {
		t.Error("packed for what is not a tag")
	}
	got, err := unpack(pack(t, library("x"), "v1.0.0").Layer)
	if hash, _ := library("x").Hash(); err != nil || got.Is(hash) != nil {
		t.Errorf("%v, %v", got, err)
	}
}

// A tag that is there is never moved; the same content is there already.
func TestPublish(t *testing.T) {
	var puts atomic.Int64
	id := inRegistry(t, func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			puts.Add(1)
		}
		return false
	})
	one := pack(t, library("one\n"), "v1.0.0")
	if got, err := Publish(t.Context(), id, one, nil); err != nil || got != (Published{New: true}) {
		t.Fatal(got, err)
	}
	before := puts.Load()
	if got, err := Publish(t.Context(), id, pack(t, library("one\n"), "v1.0.0"), nil); err != nil || got != (Published{}) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := Publish(t.Context(), id, pack(t, library("two\n"), "v1.0.0"), nil); !errors.Is(err, ErrOtherContent) || !strings.Contains(err.Error(), one.Digest()) {
		t.Errorf("%+v, %v", got, err)
	}
	if puts.Load() != before {
		t.Error("something was sent")
	}
	image := pack(t, library("x"), "v3.0.0")
	image.Type = "application/x"
	tag(t, id, image)
	if got, err := Publish(t.Context(), id, pack(t, library("x"), "v3.0.0"), nil); !errors.Is(err, ErrOtherContent) {
		t.Errorf("in the place of an image: %+v, %v", got, err)
	}
	ofGit, err := ParseID("git+https://git.example.org/acme/w")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Publish(t.Context(), ofGit, one, nil); err == nil {
		t.Error("published to git")
	}
}

// B46: who signed a manifest counts only for that manifest under that tag, by a key of the
// list that is valid now, for workshops.
func TestSignedManifest(t *testing.T) {
	s := newSigned(t)
	public, other := s.key("key", "ed25519"), s.key("other", "ecdsa")
	id := inRegistry(t, nil)
	sign := func(key, namespace string, a image.Artifact) []byte {
		t.Helper()
		file := filepath.Join(s.dir, "digest")
		if err := errors.Join(os.RemoveAll(file+".sig"), os.WriteFile(file, []byte(a.Digest()), 0o600)); err != nil {
			t.Fatal(err)
		}
		s.run("ssh-keygen", "-q", "-Y", "sign", "-n", namespace, "-f", key, file)
		text, err := os.ReadFile(file + ".sig")
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	attach := func(a image.Artifact, text []byte) {
		t.Helper()
		sig := signatureArtifact
		sig.Layer, sig.Subject, sig.SubjectSize = text, a.Digest(), int64(len(a.Manifest()))
		o, err := openOCI(id)
		if err != nil {
			t.Fatal(err)
		}
		p, err := o.repo.Pusher(t.Context())
		if err == nil {
			err = p.Push(t.Context(), sig, "")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	good := pack(t, library("good\n"), "v1.0.0")
	text, key, err := Sign(t.Context(), filepath.Join(s.dir, "key"), good.Digest())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Publish(t.Context(), id, good, text); err != nil || got != (Published{New: true, Signed: true}) {
		t.Fatal(got, err)
	}
	publish(t, id, "v2.0.0", "unsigned\n")
	attach(publish(t, id, "v3.0.0", "for files\n"), sign("key", "file", pack(t, library("for files\n"), "v3.0.0")))
	attach(publish(t, id, "v4.0.0", "another's signature\n"), text)
	attach(publish(t, id, "v5.0.0", "damaged\n"), []byte("x"))
	renamed := good // under another tag: the old release in the place of a new one
	o, err := openOCI(id)
	if err != nil {
		t.Fatal(err)
	}
	p, err := o.repo.Pusher(t.Context())
	if err == nil {
		err = p.Push(t.Context(), renamed, "v6.0.0")
	}
	if err != nil {
		t.Fatal(err)
	}
	two := publish(t, id, "v7.0.0", "two signatures\n")
	attach(two, sign("other", "workshop", two))
	attach(two, sign("key", "workshop", two))

	acme, others := signers(t, "acme "+public), signers(t, "x "+other)
	pinned, err := PinnedSigner(key)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, version string
		all           []Signers
		want          string
	}{
		{"signed", "v1.0.0", []Signers{acme}, "acme"},
		{"signed, by digest", good.Digest(), []Signers{acme}, "acme"},
		{"nobody asks", "v1.0.0", nil, ""},
		{"pinned", "v1.0.0", []Signers{pinned}, key},
		{"two lists", "v1.0.0", []Signers{acme, signers(t, "x "+other, "both "+public)}, "acme"},
		{"one of two lists", "v1.0.0", []Signers{acme, others}, "! is not one of the signers"},
		{"unknown", "v1.0.0", []Signers{others}, "! is not one of the signers"},
		{"expired", "v1.0.0", []Signers{signers(t, `acme valid-before="20200101Z" `+public)}, "! is not valid at this time"},
		{"for git alone", "v1.0.0", []Signers{signers(t, `acme namespaces="git" `+public)}, "! doesn't sign for workshop"},
		{"unsigned", "v2.0.0", []Signers{acme}, ""},
		{"another namespace", "v3.0.0", []Signers{acme}, `! is for "file", want "workshop"`},
		{"another manifest's", "v4.0.0", []Signers{acme}, "! doesn't fit"},
		{"damaged", "v5.0.0", []Signers{acme}, "! is not one of SSH"},
		{"another tag", "v6.0.0", []Signers{acme}, `! signed as "v1.0.0"`},
		{"one of two signatures", "v7.0.0", []Signers{acme}, "acme"},
		{"the other one", "v7.0.0", []Signers{others}, "x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v, err := ParseVersion(c.version)
			if err != nil {
				t.Fatal(err)
			}
			r, err := Latest(t.Context(), id, v, nil, c.all)
			by := ""
			if r.Signed != nil {
				by = r.Signed.By
			}
			if why, bad := strings.CutPrefix(c.want, "! "); bad {
				if _, is := errors.AsType[*SignatureError](err); !is || !strings.Contains(err.Error(), why) {
					t.Errorf("%s, %v; want %s", by, err, why)
				}
			} else if err != nil || by != c.want {
				t.Errorf("%s, %v; want %s", by, err, c.want)
			}
		})
	}
	_, l := latest(t, id, "v1.0.0")
	tag(t, id, pack(t, library("moved\n"), "v1.0.0"))
	known, err := acme.Has(id, key, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if tree, who, err := Verify(t.Context(), id, l, []Signers{acme}); err != nil || who != known || tree.Is(l.Tree) != nil {
		t.Errorf("what is locked, after the tag moved: %v, %v", who, err)
	}
	_, unsigned := latest(t, id, "v2.0.0")
	if _, _, err := Verify(t.Context(), id, unsigned, []Signers{acme}); err == nil || !strings.Contains(err.Error(), "not signed") {
		t.Errorf("unsigned: %v", err)
	}
}

// A signature is added to what is there, once for each key.
func TestPublishSigned(t *testing.T) {
	s := newSigned(t)
	s.key("key", "ecdsa") // another signature each time
	s.key("other", "ed25519")
	id := inRegistry(t, nil)
	a := publish(t, id, "v1.0.0", "one\n")
	for i, want := range []struct {
		key  string
		want Published
	}{{"key", Published{Signed: true}}, {"key", Published{}}, {"other", Published{Signed: true}}, {"other", Published{}}} {
		text, _, err := Sign(t.Context(), filepath.Join(s.dir, want.key), a.Digest())
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Publish(t.Context(), id, a, text); err != nil || got != want.want {
			t.Errorf("%d: %+v, %v", i, got, err)
		}
	}
	text, _, err := Sign(t.Context(), filepath.Join(s.dir, "key"), "sha256:"+hex64)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Publish(t.Context(), id, pack(t, library("two\n"), "v2.0.0"), text); err == nil {
		t.Errorf("with a signature of something else: %+v", got)
	}
	if got, err := Publish(t.Context(), id, pack(t, library("two\n"), "v2.0.0"), nil); err != nil || !got.New {
		t.Errorf("a failed signature leaves a tag: %+v, %v", got, err)
	}
}

func TestSign(t *testing.T) {
	s := newSigned(t)
	s.key("key", "ed25519")
	if _, _, err := Sign(t.Context(), filepath.Join(s.dir, "none"), "x"); err == nil || !strings.Contains(err.Error(), "No such file") {
		t.Errorf("no key: %v", err)
	}
	program := filepath.Join(s.dir, "ssh-keygen")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho hello\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", s.dir+":"+os.Getenv("PATH"))
	if text, _, err := Sign(t.Context(), filepath.Join(s.dir, "key"), "x"); err == nil || !strings.Contains(err.Error(), "can't be used") {
		t.Errorf("%s, %v", text, err)
	}
	t.Setenv("PATH", t.TempDir())
	if _, _, err := Sign(t.Context(), filepath.Join(s.dir, "key"), "x"); !errors.Is(err, ErrNoKeygen) {
		t.Errorf("%v", err)
	}
}

// B47: a registry that lies is found out by the hash, and one that is not there is said so.
func TestHostileOCI(t *testing.T) {
	good, evil := pack(t, library("good\n"), "v1.0.0"), pack(t, library("evil\n"), "v1.0.0")
	var lie atomic.Bool
	id := inRegistry(t, func(w http.ResponseWriter, r *http.Request) bool {
		if lie.Load() && r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/manifests/") {
			w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
			w.Header().Set("Docker-Content-Digest", good.Digest())
			_, _ = w.Write(evil.Manifest())
			return true
		}
		return false
	})
	publish(t, id, "v1.0.0", "good\n")
	tree, l := latest(t, id, "v1.0.0")
	if diff := cmp.Diff("good\n", string(tree["workers/a.md"])); diff != "" {
		t.Error(diff)
	}
	lie.Store(true)
	s := Store{Accepted: func(ID, Locked) error { return nil }}
	if got, err := s.Open(t.Context(), id, l); err == nil || !strings.Contains(err.Error(), "does not match") {
		t.Errorf("%s, %v", got, err)
	}
}

func FuzzUnpack(f *testing.F) {
	f.Add([]byte(`{"a":"YQ==","b":""}`))
	f.Fuzz(func(t *testing.T, layer []byte) {
		tree, err := unpack(layer)
		if err != nil {
			return
		}
		again, err := Pack(tree, "v1.0.0")
		if err != nil || string(again.Layer) != string(layer) {
			t.Errorf("%q: %q, %v", layer, again.Layer, err)
		}
	})
}
