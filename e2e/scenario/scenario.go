//go:build linux

package scenario

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/dev/testutil"
)

// FailFast is the longest that any denial may take.
const FailFast = 2 * time.Second

// Scenario is one workshop on the real engine.
type Scenario struct {
	testing.TB
	*Lab
	// Dir is the scenario's copy of its testdata directory.
	Dir string
	// Project is the project's name on the engine, of this run alone.
	Project string
	// Env is added to the environment of our programs.
	Env []string
	ctx context.Context
}

// UID owns the directory of every scenario, and so is the workers' user.
const UID = 1000

// New copies testdata/<dir> of the test's package and gives the project a name
// of its own. What the scenario starts is removed when the test ends.
func New(t testing.TB, dir, intent string) *Scenario {
	t.Helper()
	return TheLab(t).open(t, intent, filepath.Join("testdata", dir))
}

// Example is New with an example of the repository, beside the others, which it
// may refer to.
func Example(t testing.TB, name, intent string) *Scenario {
	t.Helper()
	l := TheLab(t)
	s := l.open(t, intent, filepath.Join(l.Root, "examples"))
	_ = os.Remove(filepath.Join(s.Dir, "ca.pem"))
	s.Dir = filepath.Join(s.Dir, name)
	return s
}

// At is New without a directory: the test gives the files.
func At(t testing.TB, intent string, files map[string]string) *Scenario {
	t.Helper()
	s := TheLab(t).open(t, intent, "")
	for name, text := range files {
		s.Write(name, text)
	}
	return s
}

func (l *Lab) open(t testing.TB, intent, source string) *Scenario {
	t.Helper()
	l.tell(t, intent)
	s := l.begin(t, filepath.Join(t.TempDir(), "project"))
	s.fill(source)
	t.Cleanup(s.remove)
	return s
}

// tell begins a test: with its intent, and an internet that saw nothing.
func (l *Lab) tell(t testing.TB, intent string) {
	t.Helper()
	t.Log("intent: " + intent)
	l.Internet.Reset()
}

// begin is a scenario of a project that nobody has, in a directory that isn't
// there yet.
func (l *Lab) begin(t testing.TB, dir string) *Scenario {
	var id [3]byte
	_, _ = rand.Read(id[:])
	return &Scenario{TB: t, Lab: l, Dir: dir, Project: "wse2e" + hex.EncodeToString(id[:]), ctx: t.Context()}
}

// fill makes the directory, with the files of another one: "" for none.
func (s *Scenario) fill(source string) {
	s.Helper()
	s.must(os.Mkdir(s.Dir, 0o755))
	if source != "" {
		s.must(os.CopyFS(s.Dir, os.DirFS(source)))
	}
	traversable(s.Dir)
	s.own()
	s.Write("ca.pem", string(s.Internet.CA))
}

// own gives the whole directory to [UID].
func (s *Scenario) own() {
	s.must(chown(s.Dir, UID))
}

// Write puts a file into the scenario's directory, owned by its user.
func (s *Scenario) Write(name, text string) {
	s.Helper()
	path := filepath.Join(s.Dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		s.Fatal(err)
	}
	for p := path; p != s.Dir; p = filepath.Dir(p) {
		if err := os.Lchown(p, UID, UID); err != nil {
			s.Fatal(err)
		}
	}
}

// Read returns a file of the scenario's directory.
func (s *Scenario) Read(name string) string {
	s.Helper()
	b, err := os.ReadFile(filepath.Join(s.Dir, name))
	if err != nil {
		s.Fatal(err)
	}
	return string(b)
}

// Done is a finished run of one of our programs.
type Done struct {
	Code     int
	Out, Err string
	Took     time.Duration
	Counted  time.Duration // of Took: see testutil.Instant
}

// Run runs workshop in the scenario's directory, whatever comes of it.
func (s *Scenario) Run(args ...string) Done {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := s.Command(ctx, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	start := testutil.Now()
	err := cmd.Run()
	d := Done{Code: cmd.ProcessState.ExitCode(), Out: out.String(), Err: errs.String(), Took: time.Since(start.Wall()), Counted: testutil.Since(start)}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.Fatal(err)
	}
	return d
}

// Command is workshop with the scenario's project and environment.
func (s *Scenario) Command(ctx context.Context, args ...string) *exec.Cmd {
	return s.Program(ctx, s.Workshop(), args...)
}

// Program is [Scenario.Command] of another program of this machine.
func (s *Scenario) Program(ctx context.Context, path string, args ...string) *exec.Cmd {
	s.machine.uses(s)
	cmd := s.caller.command(ctx, path, args...)
	cmd.Dir = s.Dir
	cmd.Env = append(s.caller.environ(), "WORKSHOP_PROJECT_NAME="+s.Project, "NO_COLOR=1")
	cmd.Env = append(cmd.Env, s.Env...)
	return cmd
}

// TempDir is a directory of whoever runs our programs, until the test ends.
func (s *Scenario) TempDir() string {
	s.Helper()
	dir := s.TB.TempDir()
	traversable(dir)
	s.must(os.Chown(dir, s.caller.uid, s.caller.uid))
	return dir
}

// traversable opens the directories above a test's directory, which are 0700
// and root's: the worker's user must get through.
func traversable(dir string) {
	for d := filepath.Dir(dir); d != os.TempDir() && len(d) > 1; d = filepath.Dir(d) {
		_ = os.Chmod(d, 0o755)
	}
}

// Expect runs workshop and expects an exit code.
func (s *Scenario) Expect(code int, args ...string) Done {
	s.Helper()
	d := s.Run(args...)
	if d.Code != code {
		s.Fatalf("workshop %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), d.Code, code, d.Out, d.Err)
	}
	return d
}

// Up brings the workshop up.
func (s *Scenario) Up(args ...string) Done {
	s.Helper()
	d := s.Run(append([]string{"up"}, args...)...)
	if d.Code != 0 {
		s.dump()
		s.Fatalf("workshop up: exit code %d\n%s%s", d.Code, d.Out, d.Err)
	}
	return d
}

// records has what commands note of projects.
func (s *Scenario) records() string {
	var home, state string
	for _, e := range append(s.caller.environ(), s.Env...) {
		if v, ok := strings.CutPrefix(e, "HOME="); ok {
			home = v
		} else if v, ok := strings.CutPrefix(e, "XDG_STATE_HOME="); ok {
			state = v
		}
	}
	return filepath.Join(cmp.Or(state, filepath.Join(home, ".local/state")), "workshop/projects")
}

// remove ends what the scenario started. It doesn't rely on our programs.
func (s *Scenario) remove() {
	if s.Failed() {
		s.dump()
	}
	s.machine.clean(s)
}

// Own gives a directory, with all that is in it, to whoever runs our programs.
func Own(t testing.TB, dir string) {
	t.Helper()
	traversable(dir)
	if err := chown(dir, TheLab(t).caller.uid); err != nil {
		t.Fatal(err)
	}
}

func chown(dir string, uid int) error {
	return filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, uid, uid)
	})
}

// HasImage reports whether the engine has an image.
func (s *Scenario) HasImage(ref string) bool { return s.machine.hasImage(ref) }

// ImportImage gives the engine an image of one layer, until the test ends.
func (s *Scenario) ImportImage(ref string, tar []byte) {
	s.Helper()
	s.must(s.machine.importImage(s, ref, tar))
}

// Give hands a file or directory over to whoever runs our programs.
func (s *Scenario) Give(path string) { s.Helper(); s.must(os.Chown(path, s.caller.uid, s.caller.uid)) }
