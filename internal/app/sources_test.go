package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/lock"
	"github.com/llmdo/workshop/internal/source"
	"github.com/llmdo/workshop/internal/trust"
)

// B46: a source that isn't locked is an error where it is named, and never guessed.
func TestSourceNotLocked(t *testing.T) {
	s := newShared(t)
	s.withoutGit(func() {
		s.fails("read", s.load(), CodeInvalid, "workshop.yaml:6:24: error: "+s.id.String()+" isn't in workshop.lock")
		s.fails("run", s.run(), CodeRefused, "run `workshop lock`")
		s.write("workshop.lock", "<<<<<<<\n")
		s.fails("lock with conflicts", s.load(), CodeInvalid, "as workshop.lock can't be read")
		s.write("workshop.lock", "version: 1\nfiles: {}\ncan: []\n...\n")
		s.fails("empty lock", s.load(), CodeInvalid, "isn't in workshop.lock")
		s.imports("{as: sast, from: 'git+https://git.example.org/a//../b'}")
		s.fails("no source", s.load(), CodeInvalid, "is not a")
		s.imports("{as: sast, from: 'git+https://git.example.org/a', version: ^y}")
		s.fails("no version", s.load(), CodeInvalid, "is not a range of versions")
	})
}

// A version that what is locked has outgrown is updated, by the command that the error names.
func TestSourceOutgrown(t *testing.T) {
	s := newShared(t)
	s.lock(LockOptions{})
	s.release("v2.0.0", "")
	s.imports("{as: sast, from: '" + s.from + "', version: ^2}")
	s.fails("up", s.run(), CodeRefused, "which isn't ^2")
	s.fails("up", s.run(), CodeRefused, "run `workshop update "+s.id.String()+"`")
	s.lock(LockOptions{Sources: []string{s.id.String()}})
	if s.fails("updated", s.run(), CodeOK, ""); s.locked().Ref != "refs/tags/v2.0.0" {
		t.Errorf("locked is %+v", s.locked())
	}
}

// B47: nobody is there, and nothing was agreed to: no packet is sent.
func TestSourceHeadless(t *testing.T) {
	s := newShared(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var connections atomic.Int32
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			_ = c.Close()
		}
	}()
	allow := l.Addr().String() + "/acme"
	s.imports("{as: sast, from: 'git+https://" + allow + "/sast'}")
	lockIt := func(o LockOptions) error { _, err := s.env.Lock(t.Context(), o); return err }
	for _, o := range []LockOptions{{}, {Yes: true}, {Upgrade: true, Yes: true}} {
		s.fails("lock", lockIt(o), CodeRefused, "nobody agreed to "+allow+"/sast on this machine, and nobody is there to ask; nothing was fetched")
	}
	s.settings("", "sources: {allow: ['"+allow+"']}\n")
	s.fails("allowed, without --yes", lockIt(LockOptions{}), CodeRefused, "--yes agrees to what your settings allow")
	s.settings("sources: {allow: [git.example.org]}\n", "sources: {allow: ['"+allow+"']}\n")
	s.fails("not by the machine", lockIt(LockOptions{Yes: true}), CodeRefused, "is not one of the sources that "+s.env.MachineSettings+" allows")
	s.answer(true, true)
	s.fails("not by the machine, with a person", lockIt(LockOptions{Yes: true}), CodeRefused, "is not one of the sources")
	s.settings("", "")
	s.answer(false)
	s.fails("declined", lockIt(LockOptions{}), CodeRefused, allow+"/sast was declined")
	s.answer(true)
	s.env.Offline = true
	s.fails("offline", lockIt(LockOptions{Offline: true}), CodeInvalid, "--offline asks nobody")
	s.answer()
	s.env.Offline = false
	s.write("workshop.lock", string((&lock.Lock{Sources: map[string]lock.Source{allow + "/sast": {Locked: source.Locked{Ref: "refs/tags/v1.0.0", Commit: strings.Repeat("a", 40), Tree: "h1:" + strings.Repeat("a", 43) + "="}, Via: []string{"workshop.yaml"}}}}).Render()))
	s.fails("up", s.run(), CodeRefused, "nobody agreed to")
	s.answer(false)
	s.fails("up, declined", s.run(), CodeRefused, "was declined")
	if n := connections.Load(); n != 0 || len(s.asked) != 1 {
		t.Errorf("%d connections, asked %v", n, s.asked)
	}
	s.answer(true)
	s.fails("the server is no git server", s.run(), CodeFailed, "run it again where the source can be reached")
	if connections.Load() == 0 {
		t.Error("no connection was counted")
	}
}

// B46, B47: a lock's way: asked, shown, agreed to once; then what it has is what is used,
// B46: settings that allow a source agree to what it published. A commit that no branch or
// tag points at, as that of a fork, takes a yes of its own.
func TestSourceUnpublished(t *testing.T) {
	s := newShared(t)
	allow, _, _ := strings.Cut(s.id.String(), "/")
	s.settings("", "sources: {allow: ['"+allow+"']}\n")
	s.lock(LockOptions{Yes: true})
	l := s.locked()
	s.forget()
	s.cold()
	s.fails("a tag points at it", s.run(), 0, "")
	s.release("v1.0.0", "  description: moved\n")
	s.fails("it is in the cache", s.run(), 0, "")
	s.cold()
	s.fails("none does", s.run(), CodeRefused, "no branch or tag of it points at the commit "+l.Commit)
	s.answer(false)
	s.fails("declined", s.run(), CodeRefused, "was declined")
	s.answer(true)
	s.fails("agreed to", s.run(), 0, "")
	if len(s.asked) != 1 || s.asked[0] != StageFetch || !s.last[0].Unpublished || s.last[0].Commit != l.Commit {
		t.Errorf("asked %v: %+v", s.asked, s.last)
	}
	s.answer()
	s.cold()
	s.fails("agreed to before", s.run(), 0, "")
}

// from wherever it comes.
func TestSourceLocked(t *testing.T) {
	s := newShared(t)
	s.release("v1.1.0", "  needs: {network: {mode: restricted, allow: [api.sast.example]}}\n")
	s.imports("{as: sast, from: '"+s.from+"', version: ^1}", "{as: other, from: '"+s.from+"', version: v1.1.0}")
	s.write("workshop.yaml", strings.Replace(s.read("workshop.yaml"), "{image: host}", "{image: host, network: {mode: restricted, allow: [api.sast.example]}}", 1)+
		"  grant: {sast: {network: {mode: restricted, allow: [api.sast.example]}}, other: {network: {mode: restricted, allow: [api.sast.example]}}}\n")
	for _, answers := range [][]bool{{false}, {true, false}} {
		s.answer(answers...)
		_, err := s.env.Lock(t.Context(), LockOptions{})
		s.fails("declined", err, CodeRefused, s.id.String()+" was declined")
		if _, err := os.Stat(filepath.Join(s.env.Dir, "workshop.lock")); !errors.Is(err, fs.ErrNotExist) || Exists(s.env.CacheDir()) || Exists(s.env.StateDir()) {
			t.Error("something was kept of what was declined")
		}
	}
	if r := s.last[0]; len(s.asked) != 2 || s.asked[1] != StageUse || r.Ref != "refs/tags/v1.1.0" || r.Files != 1 || r.Signer != "nobody who is known" ||
		r.Needs != "network:\n    allow:\n        - api.sast.example\n    mode: restricted" || r.Commit != testutil.Git(t, s.repo, "rev-parse", "v1.1.0") {
		t.Errorf("asked %v: %+v", s.asked, r)
	}
	s.lock(LockOptions{})
	first := s.read("workshop.lock")
	l := s.locked()
	if l.Original != "^1" || l.Ref != "refs/tags/v1.1.0" || strings.Join(l.Via, " ") != "workshop.yaml" || l.Signed != nil {
		t.Errorf("%+v", l)
	}
	again := func(what string, o LockOptions) {
		t.Helper()
		s.answer(false) // nobody agrees to anything more
		r, err := s.env.Lock(t.Context(), o)
		s.fails(what, err, 0, "")
		if len(s.asked) > 0 || r.Changed || s.read("workshop.lock") != first {
			t.Errorf("%s: asked %v, changed %t", what, s.asked, r.Changed)
		}
		s.answer()
	}
	s.withoutGit(func() {
		again("again", LockOptions{})
		s.fails("read", s.load(), 0, "")
		s.fails("run", s.run(), 0, "")
		if _, err := s.env.CheckedLock(t.Context()); err != nil {
			t.Error(err)
		}
	})
	// Releases that come later, and a tag that moves, change nothing.
	s.release("v1.2.0", "")
	s.release("v1.1.0", "  description: moved\n")
	s.cold()
	again("with a cold cache", LockOptions{})
	s.cold()
	s.fails("read, with a cold cache", s.load(), CodeInvalid, "`workshop vendor` fetches it into the project")
	s.env.Offline = true
	s.fails("run --offline, with a cold cache", s.run(), CodeInvalid, l.Tree)
	s.env.Offline = false
	s.fails("run, with a cold cache", s.run(), 0, "")
	s.env.Offline = true
	s.fails("run --offline", s.run(), 0, "")
	s.env.Offline = false

	// Another user of the repository is asked once per commit.
	s.cold()
	s.forget()
	s.fails("run of another user", s.run(), CodeRefused, "nobody agreed to")
	s.answer(true)
	s.fails("run of another user, who agrees", s.run(), 0, "")
	if len(s.asked) != 1 || s.asked[0] != StageFetch || s.last[0].Commit != l.Commit || s.last[0].Signer != "nobody, by workshop.lock" {
		t.Errorf("asked %v: %+v", s.asked, s.last)
	}
	s.answer(false)
	s.cold()
	s.fails("run again", s.run(), 0, "")
	// What was agreed to is one commit, with one content.
	other := l.Locked
	other.Tree = "h1:" + strings.Repeat("a", 43) + "="
	s.forget()
	s.cold()
	s.answer()
	if err := errors.Join(s.env.keepAccepted(s.id, other, ""), s.env.keepAccepted(s.id, source.Locked{Commit: strings.Repeat("a", 40), Tree: l.Tree}, "")); err != nil {
		t.Fatal(err)
	}
	s.fails("others were agreed to", s.run(), CodeRefused, "nobody agreed to")
	s.forget()
	s.settings("", "sources: {allow: ['"+s.id.Host()+"']}\n")
	testutil.Git(t, s.repo, "tag", "-f", "v1.1.0", l.Commit) // else TestSourceUnpublished
	s.fails("run, where the settings allow it", s.run(), 0, "")
	if list, err := trust.Sources(s.env.StateDir()).Of(s.id.String()); err != nil || len(list) > 0 {
		t.Errorf("%v, %v", list, err)
	}
	// B47: what the machine doesn't allow is not used, wherever it is.
	s.settings("sources: {allow: [git.example.org]}\n", "sources: {allow: ['"+s.id.Host()+"']}\n")
	s.fails("read, not allowed", s.load(), CodeRefused, "is not one of the sources")
	s.fails("run, not allowed", s.run(), CodeRefused, "is not one of the sources")
	s.settings("sources: [\n", "")
	s.fails("settings that can't be read", s.load(), CodeRefused, "settings: ")
	s.settings("", "")

	// The newest, once it is asked for.
	s.write("workshop.yaml", strings.Replace(strings.Replace(s.read("workshop.yaml"), "    - {as: other, from: '"+s.from+"', version: v1.1.0}\n", "", 1), ", other: {network: {mode: restricted, allow: [api.sast.example]}}", "", 1))
	s.fails("without the second", s.run(), 0, "")
	s.lock(LockOptions{})
	if now := s.locked(); now.Commit != l.Commit {
		t.Errorf("%+v", now)
	}
	s.lock(LockOptions{Upgrade: true})
	if now := s.locked(); now.Ref != "refs/tags/v1.2.0" {
		t.Errorf("%+v", now)
	}
	// --yes agrees to what the settings allow alone, also where another release was accepted.
	s.release("v1.3.0", "")
	_, err := s.env.Lock(t.Context(), LockOptions{Upgrade: true, Yes: true})
	s.fails("--yes beyond the settings", err, CodeRefused, "nobody agreed to")
}

// B46: what isn't as it was locked is refused: in the cache, in the vendor directory, at
// the source.
func TestSourceChanged(t *testing.T) {
	s := newShared(t)
	s.lock(LockOptions{})
	l := s.locked()
	root, err := os.OpenRoot(s.env.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	good, err := s.env.sourceCache().Get(l.Tree)
	if err != nil {
		t.Fatal(err)
	}
	evil := source.Tree{"workshop.yaml": []byte(strings.Replace(string(good["workshop.yaml"]), "Scan.", "Do as I say.", 1))}
	vendor := func(tree source.Tree) {
		t.Helper()
		if err := source.Vendor(root, s.id, tree); err != nil {
			t.Fatal(err)
		}
	}
	both := func(what, want string) {
		t.Helper()
		s.fails(what+", read", s.load(), CodeInvalid, want)
		s.fails(what+", run", s.run(), CodeRefused, want)
	}
	s.withoutGit(func() {
		vendor(good)
		s.cold()
		s.fails("vendored", s.load(), 0, "")
		s.fails("vendored, run", s.run(), 0, "")
		vendor(evil)
		both("planted in the vendor directory", "is not what workshop.lock has")
		both("and what to do", "run `workshop vendor`")
		if err := os.Remove(filepath.Join(s.env.Dir, source.VendorDir, s.id.VendorName(), "workshop.yaml")); err != nil {
			t.Fatal(err)
		}
		both("removed from the vendor directory", "is not what workshop.lock has")
		outside := t.TempDir()
		if err := errors.Join(os.RemoveAll(filepath.Join(s.env.Dir, source.VendorDir)), os.Symlink(outside, filepath.Join(s.env.Dir, source.VendorDir))); err != nil {
			t.Fatal(err)
		}
		both("a link", "/_vendor is not a directory")
		if err := os.Remove(filepath.Join(s.env.Dir, source.VendorDir)); err != nil {
			t.Fatal(err)
		}
		if err := s.env.sourceCache().Put(good); err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Join(s.env.CacheDir(), "sources", "*"))
		if err != nil || len(files) != 1 {
			t.Fatal(files, err)
		}
		if err := os.WriteFile(files[0], []byte(`{"workshop.yaml": "eA=="}`), 0o600); err != nil {
			t.Fatal(err)
		}
		both("planted in the cache", "was changed by another program")
	})
	s.cold()
	text := s.read("workshop.lock")
	s.write("workshop.lock", strings.Replace(text, l.Tree, "h1:"+strings.Repeat("a", 43)+"=", 1))
	s.answer(true)
	s.fails("another tree for the commit", s.run(), CodeRefused, "sent another tree for the commit")
	s.write("workshop.lock", strings.Replace(text, l.Commit, strings.Repeat("a", 40), 1))
	s.answer(true)
	s.fails("a commit that isn't there", s.run(), CodeFailed, "is "+l.Commit+" now, and the server doesn't send")
}

// One release is used of a source, and one that fits all files is found.
func TestSourceVersions(t *testing.T) {
	s := newShared(t)
	s.imports("{as: sast, from: '" + s.from + "'}")
	s.lock(LockOptions{})
	s.release("v1.5.0", "")
	s.release("v2.0.0", "")
	both := func(first, second string) {
		s.imports("{as: sast, from: '"+s.from+"', version: '"+first+"'}", "{as: other, from: '"+s.from+"', version: '"+second+"'}")
	}
	for _, c := range []struct{ first, second, want string }{
		{"", "^1", "refs/tags/v1.0.0"}, // as it was locked
		{"", "^1.5", "refs/tags/v1.5.0"},
		{">=1", "^1", "refs/tags/v1.5.0"},
		{"^2", ">=1", "refs/tags/v2.0.0"},
	} {
		both(c.first, c.second)
		s.lock(LockOptions{})
		if got := s.locked(); got.Ref != c.want || got.Original != c.first {
			t.Errorf("%s and %s: %+v", c.first, c.second, got)
		}
	}
	s.release("v3.0.0-rc.1", "")
	for version, want := range map[string]string{"^1": "v2.0.0", ">=1": ""} {
		both(version, "")
		s.answer(true, true)
		r, err := s.env.Lock(t.Context(), LockOptions{AllSources: true, DryRun: true})
		if got := fmt.Sprint(r.Newer); err != nil || (got != "[]") != (want != "") || !strings.Contains(got, want) {
			t.Errorf("newer than what %s allows: %v, want %q; %v", version, got, want, err)
		}
	}
	testutil.Git(t, s.repo, "tag", "-d", "v3.0.0-rc.1")
	// What only a release that isn't used imports isn't asked about.
	lib := filepath.Join(filepath.Dir(s.repo), "lib")
	testutil.Git(t, filepath.Dir(s.repo), "clone", "-q", s.repo, lib)
	testutil.Git(t, lib, "checkout", "-q", "v1.0.0")
	testutil.Git(t, lib, "tag", "-d", "v1.5.0", "v2.0.0")
	s.release("v1.9.0", "  imports: [{as: lib, from: '"+strings.Replace(s.from, "/sast/", "/lib/", 1)+"'}]\n")
	testutil.Git(t, s.repo, "tag", "-d", "v2.0.0")
	both("", "~1.5")
	s.answer(true, true)
	if _, err := s.env.Lock(t.Context(), LockOptions{Upgrade: true}); err != nil {
		t.Fatal(err, s.said.String())
	}
	if got := s.locked(); got.Ref != "refs/tags/v1.5.0" || strings.Contains(s.read("workshop.lock"), "/lib/") {
		t.Errorf("%+v", got)
	}
	if list, err := trust.Sources(s.env.StateDir()).Of(strings.Replace(s.id.String(), "/sast/", "/lib/", 1)); err != nil || len(list) > 0 {
		t.Errorf("what isn't used was accepted: %v, %v", list, err)
	}
	both("^1.9", ">=1")
	s.lock(LockOptions{})
	if text := s.read("workshop.lock"); !strings.Contains(text, "/lib/.git:\n    ref: refs/tags/v1.0.0\n") || !strings.Contains(text, "via: ["+s.id.String()+"]") {
		t.Error(text)
	}
	s.release("v2.0.0", "")
	both("^2", "")
	s.lock(LockOptions{})

	both("^2", "^1")
	s.fails("read", s.load(), CodeInvalid, "workshop.lock has refs/tags/v2.0.0 of "+s.id.String())
	s.answer(true, true)
	_, err := s.env.Lock(t.Context(), LockOptions{})
	s.fails("none fits", err, CodeInvalid, "no release is within all versions that are wanted, ^1 and ^2")
	both("^9", "^9")
	_, err = s.env.Lock(t.Context(), LockOptions{})
	s.fails("no such release", err, CodeInvalid, "no tag is a version within ^9")
}

// B46: what is used was read once: what becomes of the lock, the vendor directory and the
// cache while `up` reads changes nothing, or is refused.
func TestSourceIsReadOnce(t *testing.T) {
	s := newShared(t)
	s.lock(LockOptions{})
	l := s.locked()
	before := s.read("workshop.lock")
	s.release("v1.1.0", "  description: later\n")
	for what, change := range map[string]func(){
		"the lock":   func() { s.write("workshop.lock", strings.Replace(before, l.Commit, strings.Repeat("a", 40), 1)) },
		"no lock":    func() { _ = os.Remove(filepath.Join(s.env.Dir, "workshop.lock")) },
		"the vendor": func() { s.write(source.VendorDir+"/"+s.id.VendorName()+"/workshop.yaml", "evil") },
		"the cache":  func() { _ = os.WriteFile(filepath.Join(s.env.CacheDir(), "sources", "x"), nil, 0o600); s.cold() },
		"the file":   func() { s.imports("{as: evil, from: '" + s.from + "', version: v1.1.0}") },
		"the tag":    func() { s.release("v1.0.0", "  description: moved\n") },
	} {
		t.Run(what, func(t *testing.T) {
			s.t = t
			s.write("workshop.lock", before)
			s.imports("{as: sast, from: '" + s.from + "', version: ^1}")
			s.write("workshop.yaml", s.read("workshop.yaml")+"  description: '${D:-x}'\n") // it is compiled without values for the lock, too
			_ = os.RemoveAll(filepath.Join(s.env.Dir, ".workshop"))
			s.cold()
			s.forget()
			s.env.AgreeSources = func(context.Context, []SourceRequest) (bool, error) { change(); return true, nil }
			p, err := s.env.CompileToRun(t.Context())
			if err != nil {
				t.Fatal(err, s.said.String())
			}
			change()
			used := p.from.opened[s.id.String()]
			if used.Commit != l.Commit || used.Files.Is(l.Tree) != nil || p.Worker("sast--scan") == nil {
				t.Errorf("%+v", used.Locked)
			}
			if err := s.env.MayRun(t.Context(), p.Source); err != nil {
				t.Error(err)
			}
			now, _, err := p.newLock(t.Context(), p.lock)
			if err != nil || now.Sources[s.id.String()].Commit != l.Commit {
				t.Errorf("%v, %v", now, err)
			}
		})
	}
}

// B46: a source that isn't what the lock says is refused, also where it would fit.
func TestSourceDiffersFromLock(t *testing.T) {
	s := newShared(t)
	s.lock(LockOptions{})
	run := func(frozen bool) error {
		s.env.Settings.Frozen = &frozen
		p, err := s.env.CompileToRun(t.Context())
		if err != nil {
			return err
		}
		return s.env.MayRun(t.Context(), p.Source)
	}
	for _, frozen := range []bool{false, true} {
		s.fails("as locked", run(frozen), 0, "")
	}
	s.imports("{as: sast, from: '" + s.from + "', version: ^1.0.0}")
	s.fails("another version", run(false), CodeRefused, "source "+s.id.String()+": version is ^1.0.0, locked as ^1")
	_, err := s.env.CheckedLock(t.Context())
	if err != nil {
		t.Error(err)
	}
	s.write("workshop.yaml", "workshop: {name: app, container: {image: host}, workers: [{name: own, tools: [], instructions: x}]}\n")
	s.fails("not used any more", run(false), 0, "")
	s.fails("not used any more, frozen", run(true), CodeRefused, "source "+s.id.String()+" is in the lock and not used")
	s.lock(LockOptions{})
	if text := s.read("workshop.lock"); strings.Contains(text, "sources:") {
		t.Error(text)
	}
}

// A line that is written into the file is checked with the sources that it was read with.
func TestRewrittenWithSources(t *testing.T) {
	s := newShared(t)
	s.lock(LockOptions{})
	from, err := s.env.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.cold()
	before := s.read("workshop.yaml")
	after := before + "  description: more\n"
	s.withoutGit(func() {
		s.fails("written", s.env.replaceFile(t.Context(), from, []byte(before), []byte(after)), 0, "")
	})
	if s.read("workshop.yaml") != after {
		t.Error(s.read("workshop.yaml"))
	}
	bad := after + "    - {as: other, from: '" + s.from + "', version: ^2}\n"
	s.fails("another version", s.env.replaceFile(t.Context(), from, []byte(after), []byte(bad)), CodeInvalid, "would be invalid")
}
