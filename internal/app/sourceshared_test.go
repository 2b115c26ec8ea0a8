package app

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/lock"
	"github.com/llmdo/workshop/internal/source"
)

// shared is a project that imports a source, which is served on the loopback.
type shared struct {
	t    *testing.T
	env  *Env
	repo string // of the source
	from string
	id   source.ID
	said strings.Builder
	// asked are the stages of questions, and answers what is said to each; more are a no.
	asked   []SourceStage
	answers []bool
	last    []SourceRequest
}

func newShared(t *testing.T) *shared {
	t.Helper()
	s := &shared{t: t}
	at := t.TempDir()
	address := testutil.ServeGit(t, at)
	s.repo = filepath.Join(at, "acme", "sast")
	if err := os.MkdirAll(s.repo, 0o755); err != nil {
		t.Fatal(err)
	}
	testutil.Git(t, s.repo, "init", "-q")
	s.release("v1.0.0", "")
	s.from = "git+" + address + "/acme/sast/.git"
	var err error
	if s.id, err = source.ParseID(s.from); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	vars := map[string]string{"XDG_CONFIG_HOME": filepath.Join(dir, "config"), "XDG_STATE_HOME": filepath.Join(dir, "state"), "XDG_CACHE_HOME": filepath.Join(dir, "cache")}
	s.env = testEnv(&Env{
		Dir: filepath.Join(dir, "project"), Home: filepath.Join(dir, "home"), MachineSettings: filepath.Join(dir, "machine.yaml"),
		Lookup: func(name string) (string, bool) { v, ok := vars[name]; return v, ok },
	}, &s.said)
	s.env.Settings.WaitTimeout = DefaultWaitTimeout
	s.imports("{as: sast, from: '" + s.from + "', version: ^1}")
	return s
}

// write writes a file of the project, or beside it.
func (s *shared) write(name, text string) {
	s.t.Helper()
	file := filepath.Join(s.env.Dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
		s.t.Fatal(err)
	}
}

func (s *shared) read(name string) string {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.env.Dir, name))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}

// imports writes the project's file with these imports.
func (s *shared) imports(lines ...string) {
	s.write("workshop.yaml", "workshop:\n  name: app\n  container: {image: host}\n  workers: [{name: own, tools: [], instructions: x}]\n  imports:\n    - "+strings.Join(lines, "\n    - ")+"\n")
}

// release tags a release of the source; more are lines of its file. It is signed by a key,
// if there is one.
func (s *shared) release(tag, more string, key ...string) {
	s.t.Helper()
	text := "workshop:\n  name: sast\n  version: " + strings.TrimPrefix(tag, "v") + "\n" + more + "  workers: [{name: scan, tools: [], instructions: Scan.}]\n"
	if err := os.WriteFile(filepath.Join(s.repo, "workshop.yaml"), []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
	testutil.Git(s.t, s.repo, "add", "-A")
	testutil.Git(s.t, s.repo, "commit", "-qm", tag, "--allow-empty")
	if len(key) > 0 {
		testutil.Git(s.t, s.repo, "-c", "gpg.format=ssh", "-c", "user.signingkey="+key[0], "tag", "-f", "-s", "-m", "x", tag)
		return
	}
	testutil.Git(s.t, s.repo, "tag", "-f", tag)
}

// answer says what a person does, from now on; nobody is there without answers.
func (s *shared) answer(answers ...bool) {
	s.asked, s.answers, s.last, s.env.AgreeSources = nil, answers, nil, nil
	if len(answers) > 0 {
		s.env.AgreeSources = func(_ context.Context, all []SourceRequest) (bool, error) {
			n := len(s.asked)
			s.asked, s.last = append(s.asked, all[0].Stage), all
			return n < len(s.answers) && s.answers[n], nil
		}
	}
}

// lock locks the workshop, as somebody who agrees does.
func (s *shared) lock(o LockOptions) {
	s.t.Helper()
	s.answer(true, true, true, true)
	if _, err := s.env.Lock(s.t.Context(), o); err != nil {
		s.t.Fatalf("%v\n%s", err, s.said.String())
	}
	s.answer()
}

func (s *shared) cold() {
	s.t.Helper()
	if err := os.RemoveAll(s.env.CacheDir()); err != nil {
		s.t.Fatal(err)
	}
}

// forget makes the user one who never agreed to anything.
func (s *shared) forget() {
	s.t.Helper()
	if err := os.RemoveAll(s.env.StateDir()); err != nil {
		s.t.Fatal(err)
	}
}

func (s *shared) settings(machine, user string) {
	s.t.Helper()
	for file, text := range map[string]string{s.env.MachineSettings: machine, s.env.userSettings(): user} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			s.t.Fatal(err)
		}
	}
}

// locked is what the project's lock has of the source.
func (s *shared) locked() lock.Source {
	s.t.Helper()
	l, list := lock.Parse("workshop.lock", []byte(s.read("workshop.lock")))
	if l == nil {
		s.t.Fatal(list)
	}
	return l.Sources[s.id.String()]
}

// fails checks an error's code and what was said with it; "" is none.
func (s *shared) fails(what string, err error, code int, want string) {
	s.t.Helper()
	said := s.said.String()
	s.said.Reset()
	if want == "" {
		if err != nil {
			s.t.Errorf("%s: %v\n%s", what, err, said)
		}
		return
	}
	if err != nil {
		said += err.Error() + strings.Join(Hints(err), "\n")
	}
	if CodeOf(err) != code || err == nil || !strings.Contains(said, want) {
		s.t.Errorf("%s: code %d, %v\n%s\nwant %d, %s", what, CodeOf(err), err, said, code, want)
	}
}

// withoutGit does something while there is no git program: nothing can be fetched.
func (s *shared) withoutGit(do func()) {
	s.t.Helper()
	path := os.Getenv("PATH")
	s.t.Setenv("PATH", s.t.TempDir())
	do()
	s.t.Setenv("PATH", path)
}

func (s *shared) load() error { _, err := s.env.Load(s.t.Context()); return err }
func (s *shared) run() error  { _, err := s.env.CompileToRun(s.t.Context()); return err }
