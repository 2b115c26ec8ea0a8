package app

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/source"
	"github.com/llmdo/workshop/internal/trust"
)

// key makes a key for signatures, and returns its file, its line of a file of signers
// without a name, and its fingerprint.
func key(t *testing.T) (file, line, fingerprint string) {
	t.Helper()
	_, err := exec.LookPath("ssh-keygen")
	testutil.Require(t, err == nil, "there is no ssh-keygen")
	file = filepath.Join(t.TempDir(), "key")
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", file).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	public, err := os.ReadFile(file + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("ssh-keygen", "-l", "-f", file+".pub").Output()
	if err != nil {
		t.Fatal(err)
	}
	return file, string(public), strings.Fields(string(out))[1]
}

// B46, B47: where the settings name who must have signed, that is what this user's machine
// saw, and not what a lock says.
func TestSourceSigners(t *testing.T) {
	s := newShared(t)
	acme, acmeLine, acmeKey := key(t)
	other, otherLine, _ := key(t)
	signers := func(lines ...string) {
		t.Helper()
		s.write("../signers", strings.Join(lines, ""))
	}
	lockIt := func(o LockOptions) error {
		s.answer(true, true, true)
		_, err := s.env.Lock(t.Context(), o)
		return err
	}
	s.settings("", "signers: ../../signers\n")
	s.fails("no file", lockIt(LockOptions{}), CodeRefused, "the signers can't be read")
	signers("acme-release " + acmeLine)
	s.fails("unsigned", lockIt(LockOptions{}), CodeRefused, "the tag is not signed; it must be signed by a key of ")
	s.release("v1.1.0", "", other)
	s.fails("by another key", lockIt(LockOptions{}), CodeRefused, "is not one of the signers; it must be signed by a key of ")
	s.release("v1.1.0", "", acme)
	s.fails("signed", lockIt(LockOptions{}), 0, "")
	l := s.locked()
	if l.Signed == nil || l.Signed.By != "acme-release" || l.Signed.Key != acmeKey || s.last[0].Signer != l.Signed.String() {
		t.Errorf("%+v, shown as %s", l, s.last[0].Signer)
	}
	s.answer()
	s.withoutGit(func() {
		s.fails("run", s.run(), 0, "")
		s.fails("read", s.load(), 0, "")
	})
	// By two files, each must have the key.
	s.write("../more", "more "+otherLine)
	s.settings("signers: more\n", "signers: ../../signers\n")
	s.fails("only one of two", s.run(), CodeRefused, "is not one of the signers")
	s.fails("only one of two, locked", lockIt(LockOptions{Upgrade: true}), CodeRefused, "is not one of the signers")
	s.write("../more", "more "+otherLine+"also "+acmeLine)
	s.answer()
	s.fails("both", s.run(), 0, "")
	s.settings("", "signers: ../../signers\n")

	// Of another user nothing is known but what the lock says.
	s.forget()
	s.fails("headless", s.run(), CodeRefused, "nobody agreed to")
	s.env.Offline = true
	s.fails("offline, in the cache", s.run(), CodeRefused, "who signed refs/tags/v1.1.0 of "+s.id.String()+" isn't known on this machine, and --offline asks nobody")
	s.env.Offline = false
	p, err := s.env.Compile(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.fails("compile", s.env.MayRun(t.Context(), p.Source), CodeRefused, "who signed refs/tags/v1.1.0 of "+s.id.String()+" isn't known on this machine")
	// What was agreed to without a signature isn't enough.
	if err := s.env.keepAccepted(s.id, l.Locked, ""); err != nil {
		t.Fatal(err)
	}
	s.withoutGit(func() { s.fails("agreed to only", s.run(), CodeFailed, "install git") })
	s.fails("verified", s.run(), 0, "")
	if list, err := trust.Sources(s.env.StateDir()).Of(s.id.String()); err != nil || len(list) != 2 || list[1].Signer != acmeKey {
		t.Errorf("%v, %v", list, err)
	}
	if p, err = s.env.Compile(t.Context()); err == nil {
		err = s.env.MayRun(t.Context(), p.Source)
	}
	s.fails("compile, verified", err, 0, "")
	s.env.Offline = true
	s.fails("offline, verified", s.run(), 0, "")
	s.env.Offline = false
	signers("acme-release valid-before=\"20200101\" " + acmeLine)
	s.fails("the key isn't valid any more", s.run(), CodeRefused, "is not valid at this time")
	signers("acme-release " + acmeLine)

	// A lock that lies: another signer; a tag that moved.
	text, unsigned := s.read("workshop.lock"), testutil.Git(t, s.repo, "rev-parse", "v1.0.0")
	s.write("workshop.lock", strings.Replace(text, l.Commit, unsigned, 1))
	s.answer(true)
	s.fails("another commit is known as signed", s.run(), CodeRefused, "nobody can say who signed that")
	s.forget()
	s.write("workshop.lock", strings.Replace(text, acmeKey, "SHA256:"+strings.Repeat("a", 43), 1))
	s.answer(true)
	s.fails("another signer by the lock", s.run(), CodeRefused, "and it is by acme-release")
	s.forget()
	s.write("workshop.lock", strings.Replace(text, l.Commit, unsigned, 1))
	s.answer(true)
	s.fails("signed by the lock alone", s.run(), CodeRefused, "nobody can say who signed that")
	s.write("workshop.lock", text)
	s.release("v1.1.0", "  description: moved\n", acme)
	s.answer(true)
	s.fails("the tag moved", s.run(), CodeRefused, "nobody can say who signed that")
}

// B46: who signs a source changes by a person's hand alone.
func TestSourceSignerChanges(t *testing.T) {
	s := newShared(t)
	acme, acmeLine, acmeKey := key(t)
	other, otherLine, otherKey := key(t)
	s.write("../signers", "acme-release "+acmeLine+"other "+otherLine)
	s.settings("", "signers: ../../signers\n")
	s.release("v1.1.0", "", acme)
	s.lock(LockOptions{})
	lockIt := func(o LockOptions) error {
		s.answer(true, true, true)
		_, err := s.env.Lock(t.Context(), o)
		return err
	}
	for _, settings := range []string{"signers: ../../signers\n", ""} { // the key of the lock counts without settings, too
		s.settings("", settings)
		s.release("v1.2.0", "", other)
		s.fails("another signer", lockIt(LockOptions{Upgrade: true}), CodeRefused, "is not one of the signers; refs/tags/v1.1.0 was signed by acme-release ("+acmeKey+")")
		s.fails("not upgraded", lockIt(LockOptions{}), 0, "")
		testutil.Git(t, s.repo, "tag", "-d", "v1.2.0")
		s.release("v1.2.0", "")
		s.fails("unsigned", lockIt(LockOptions{Upgrade: true}), CodeRefused, "the tag is not signed; refs/tags/v1.1.0 was signed by acme-release")
		s.imports("{as: sast, from: '" + s.from + "', version: ~1.2}")
		s.fails("unsigned, as the file wants it", lockIt(LockOptions{}), CodeRefused, "remove the entry of "+s.id.String()+" from workshop.lock, and run `workshop lock`")
		s.imports("{as: sast, from: '" + s.from + "', version: ^1}")
		testutil.Git(t, s.repo, "tag", "-d", "v1.2.0")
		s.release("v1.2.0", "", acme)
		s.fails("the same", lockIt(LockOptions{Upgrade: true}), 0, "")
		if l := s.locked(); l.Signed == nil || l.Signed.By != "acme-release" || l.Ref != "refs/tags/v1.2.0" {
			t.Errorf("%+v", l.Signed)
		}
		testutil.Git(t, s.repo, "tag", "-d", "v1.2.0")
		s.fails("back", lockIt(LockOptions{Upgrade: true}), 0, "")
	}
	// As the hint says.
	s.release("v1.2.0", "", other)
	before, after, ok := strings.Cut(s.read("workshop.lock"), "sources:\n")
	if !ok {
		t.Fatal(before)
	}
	s.write("workshop.lock", before+after[strings.Index(after, "images:"):])
	s.settings("", "signers: ../../signers\n")
	s.fails("the entry is removed", lockIt(LockOptions{}), 0, "")
	if l := s.locked(); l.Signed == nil || l.Signed.Key != otherKey {
		t.Errorf("%+v", l.Signed)
	}

	// A file may name the key itself.
	s.settings("", "")
	if err := os.Remove(filepath.Join(s.env.Dir, "workshop.lock")); err != nil {
		t.Fatal(err)
	}
	s.imports("{as: sast, from: '" + s.from + "', version: ^1, signer: '" + acmeKey + "'}")
	s.fails("another than the pinned", lockIt(LockOptions{}), CodeRefused, "is not one of the signers; it must be signed by "+acmeKey)
	s.imports("{as: sast, from: '" + s.from + "', version: ^1, signer: '" + otherKey + "'}")
	s.fails("pinned", lockIt(LockOptions{}), 0, "")
	if l := s.locked(); *l.Signed != (source.Signer{By: otherKey, Key: otherKey}) {
		t.Errorf("%+v", l.Signed)
	}
	s.imports("{as: sast, from: '" + s.from + "', version: ^1, signer: '" + acmeKey + "'}")
	s.fails("another pin than the lock has", s.load(), CodeRefused, "must be signed by "+acmeKey+"; by workshop.lock, refs/tags/v1.2.0 was signed by "+otherKey)
	s.imports("{as: sast, from: '"+s.from+"', version: ^1}", "{as: two, from: '"+s.from+"', signer: '"+otherKey+"'}")
	if err := os.Remove(filepath.Join(s.env.Dir, "workshop.lock")); err != nil {
		t.Fatal(err)
	}
	s.fails("a second file pins it", lockIt(LockOptions{}), 0, "")
	if l := s.locked(); l.Signed == nil || l.Signed.Key != otherKey {
		t.Errorf("%+v", l.Signed)
	}
}

// B8: where a worker may have written what names a source, the settings' agreement doesn't
// count: a person is asked.
func TestSourceOfWorker(t *testing.T) {
	b := newBaseline(t, "")
	user := filepath.Join(b.a.ConfigDir(), "config.yaml")
	if err := errors.Join(os.MkdirAll(filepath.Dir(user), 0o700), os.WriteFile(user, []byte("sources: {allow: [git.example.org]}\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	id, err := source.ParseID("git+https://git.example.org/acme/sast")
	if err != nil {
		t.Fatal(err)
	}
	agreed := func() bool {
		t.Helper()
		s, err := b.a.Read(t.Context(), filepath.Join(b.dir, "workshop.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		ok, err := s.from.agreed(id)
		if err != nil {
			t.Error(err)
		}
		return ok
	}
	if !agreed() {
		t.Error("the file is as it was accepted, and a person is asked")
	}
	b.write("workshop.yaml", aWorkers)
	if agreed() {
		t.Error("a worker may have written the file, and nobody is asked")
	}
	b.write("workshop.yaml", aDefinition)
	b.write("workshop.lock", "version: 1\nfiles: {}\ncan: []\n...\n")
	if agreed() {
		t.Error("a worker may have written the lock, and nobody is asked")
	}
}

// B8: what a worker may have written, and committed, isn't published in somebody's name
// unless a person takes it.
func TestPublishOfWorker(t *testing.T) {
	b := newBaseline(t, "")
	const mine = "workshop: {name: web, container: {image: host}, workers: [{name: one, tools: [], instructions: x}]}\n"
	const workers = mine + "# a worker's\n"
	b.write("workshop.yaml", mine)
	var err error
	if b.ready.Source, err = b.a.Read(t.Context(), filepath.Join(b.dir, "workshop.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := b.a.Watch(t.Context(), b.ready, true, UpOptions{AcceptWatched: AcceptAll}); err != nil {
		t.Fatal(err)
	}
	b.err.Reset()
	testutil.Git(t, b.dir, "init", "-q")
	testutil.Git(t, b.dir, "commit", "-q", "--allow-empty", "-m", "x")
	asked := 0
	publish := func(answer, dry bool) error {
		_, err := b.a.Publish(t.Context(), PublishOptions{Ref: "localhost:1/acme/w:v1.0.0", DryRun: dry, Ask: func(context.Context, string) (bool, error) { asked++; return answer, nil }})
		return err
	}
	const unknown = "is not committed"
	for _, c := range []struct {
		what, text  string
		answer, dry bool
		asked       int
		want        string
	}{
		{"as it was accepted", mine, false, false, 0, unknown},
		{"a worker's", workers, false, false, 1, "(B8)"},
		{"a worker's, taken", workers, true, false, 1, unknown},
		{"a worker's, dry", workers, false, true, 0, unknown},
	} {
		asked = 0
		b.write("workshop.yaml", c.text)
		if err := publish(c.answer, c.dry); err == nil || !strings.Contains(err.Error(), c.want) || asked != c.asked {
			t.Errorf("%s: asked %d times: %v", c.what, asked, err)
		}
		if shown := strings.Contains(b.err.String(), "# a worker's"); shown != (c.text == workers) {
			t.Errorf("%s: shown %v", c.what, shown)
		}
		b.err.Reset()
	}
}
