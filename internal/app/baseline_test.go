package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/facts"
)

// baselineCase is a project that is up, and that its workers write to.
type baselineCase struct {
	*testing.T
	a     *Env
	err   bytes.Buffer
	dir   string
	ready *Project
	seen  engine.Observed
}

func newBaseline(t *testing.T, project string) *baselineCase {
	b := &baselineCase{T: t, dir: RealPath(t.TempDir()), seen: engine.Observed{Containers: []engine.Container{{Service: "one"}}}}
	home := RealPath(t.TempDir())
	b.a = testEnv(&Env{Dir: b.dir, Home: home, Lookup: func(string) (string, bool) { return "", false }}, &b.err)
	b.a.Settings.Project = project
	var service types.ServiceConfig
	service.Volumes = []types.ServiceVolumeConfig{{Type: types.VolumeTypeBind, Source: b.dir}}
	b.ready = &Project{ProjectRef: ProjectRef{Name: "web"}, Compiled: &compose.Compiled{
		Project: &types.Project{Services: types.Services{"one": service}}, Roles: map[string]compose.Role{"one": compose.RoleWorker},
		Facts: &compose.Facts{Project: "web", ProjectDir: b.dir, RuntimeDir: filepath.Join(home, ".cache/workshop/run", facts.RuntimeID("web", b.dir))},
	}}
	b.write("workshop.yaml", "workshop:\n  name: web\n  container: {image: host}\n  workers: [one]\n")
	b.write(".envrc", "mine")
	if err := os.MkdirAll(b.ready.Compiled.Facts.RuntimeDir, 0o700); err != nil {
		t.Fatal(err)
	}
	b.up(UpOptions{}, CodeOK)
	return b
}

func (b *baselineCase) write(name, text string) {
	b.Helper()
	file := filepath.Join(b.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o600)); err != nil {
		b.Fatal(err)
	}
}

func (b *baselineCase) up(o UpOptions, code int) {
	b.Helper()
	var err error
	if b.ready.Source, err = b.a.Read(b.Context(), filepath.Join(b.dir, "workshop.yaml")); err != nil {
		b.Fatal(err)
	}
	b.err.Reset()
	err = b.a.Watch(context.Background(), b.ready, true, o)
	if codeOfError(err) != code {
		b.Errorf("up %+v: %v, want exit code %d", o, err, code)
	}
	if err != nil {
		fmt.Fprintln(&b.err, err)
		if f, ok := errors.AsType[*Failure](err); ok {
			fmt.Fprintln(&b.err, f.AllHints())
		}
	}
}

// in is a command in a directory, with -p.
func (b *baselineCase) in(dir, project string) *Env {
	a := *b.a
	a.Dir, a.Settings.Project = dir, project
	return &a
}

// looks is `ps -p NAME` from a directory; it returns what it names.
func (b *baselineCase) looks(dir string, changed bool) ProjectRef {
	b.Helper()
	b.err.Reset()
	a := b.in(dir, "web")
	t, err := a.Find(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	if got := a.CompareWatched(context.Background(), t.Name, b.seen); got != changed {
		b.Errorf("from %s: changed %v, want %v\n%s", dir, got, changed, b.err.String())
	}
	return t
}

func (b *baselineCase) says(wants ...string) {
	b.Helper()
	for _, want := range wants {
		if !strings.Contains(b.err.String(), want) {
			b.Errorf("it doesn't say %q:\n%s", want, b.err.String())
		}
	}
}

// TestBaselineStays: B8: what a worker planted before it stopped the workshop is
// named until somebody takes it, by whatever means it is started again.
func TestBaselineStays(t *testing.T) {
	b := newBaseline(t, "")
	b.looks(b.dir, false)
	b.write(".envrc", "a worker's")
	b.up(UpOptions{Implicit: true}, CodeRefused)
	b.says("watched files (B8): 1 change since the first `up`; nothing was started", "`workshop ps` names them")
	b.up(UpOptions{Strict: true}, CodeRefused)
	b.says("watched files (B8): 1 change since the first `up`; nothing was started", "look at the named files; `workshop up --accept-watched` accepts them as they are")
	b.up(UpOptions{}, CodeOK)
	b.says("changed since the first `up`", ".envrc", "--accept-watched")
	b.looks(b.dir, true)

	// Nor does a mount that is no more end it.
	mounts := b.ready.Compiled.Project.Services["one"]
	b.ready.Compiled.Project.Services["one"] = types.ServiceConfig{}
	b.up(UpOptions{}, CodeOK)
	b.looks(b.dir, true)
	b.ready.Compiled.Project.Services["one"] = mounts

	// A start that fails ends nothing that was noted before.
	noted, err := b.a.Record("web")
	if err := errors.Join(err, b.a.forgetSecrets(ProjectRef{Name: "web", Dir: b.dir}, noted, engine.Observed{})); err != nil {
		t.Fatal(err)
	}
	b.looks(b.dir, true)

	// Nor does `down`, and no other directory may have the name.
	if err := b.a.forget(ProjectRef{Name: "web", Dir: b.dir}, b.seen, true); err != nil {
		t.Fatal(err)
	}
	b.looks(b.dir, true)
	if all, err := facts.Records(b.a.recordsDir()); len(all) != 1 || !all[0].Down || err != nil {
		t.Errorf("it is up: %v %v", all, err)
	}
	b.err.Reset()
	if err := b.a.CheckDirectory(t.Context(), ProjectRef{Name: "web", Dir: t.TempDir()}); codeOfError(err) != CodeRefused {
		t.Errorf("got %v, want a refusal", err)
	}
	b.says("changed since the first `up`: .envrc")
	b.up(UpOptions{Strict: true}, CodeRefused)
	b.up(UpOptions{Implicit: true}, CodeRefused)
	b.up(UpOptions{}, CodeOK)
	b.says("changed since the first `up`: .envrc")

	b.up(UpOptions{Strict: true, AcceptWatched: AcceptAll}, CodeOK)
	b.says("changed since the first `up`")
	b.looks(b.dir, false)
}

// TestDefinitionThatAWorkerMayHaveWritten: B8, B40: what says what workers are granted
// isn't obeyed after a change that may be a worker's, until somebody has read it. What
// no worker could write is.
func TestDefinitionThatAWorkerMayHaveWritten(t *testing.T) {
	const evil = "workshop:\n  name: web\n  container: {image: host, mounts: [{source: /srv, target: /evil, outside_project: true}]}\n  workers: [one]\n"
	rename := func(b *baselineCase, text string) {
		b.write("new", text)
		if err := os.Rename(filepath.Join(b.dir, "new"), filepath.Join(b.dir, "workshop.yaml")); err != nil {
			b.Fatal(err)
		}
	}
	t.Run("writable", func(t *testing.T) {
		b := newBaseline(t, "")
		for _, o := range []UpOptions{{}, {Strict: true}, {Implicit: true}} {
			b.write("workshop.yaml", evil)
			b.up(o, CodeRefused)
			b.says("workshop.yaml, since the last `up`:\n  -   3 |   container: {image: host}\n  +   3 |   container: {image: host, mounts: [{source: /srv, target: /evil, outside_project: true}]}",
				"workshop.yaml changed, and a worker may have written that (B8): it was writable in one since the first `up`; nothing was started or loaded")
		}
		// A dry run shows the same, refuses nothing and accepts nothing.
		for _, o := range []UpOptions{{DryRun: true}, {DryRun: true, AcceptWatched: AcceptAll}} {
			b.up(o, CodeOK)
			b.says("workshop.yaml, since the last `up`:\n  -   3 |")
		}
		b.up(UpOptions{DryRun: true}, CodeOK)
		b.says("it was writable in one since the first `up`; `up` asks before it obeys that", "`workshop up --accept-watched=")
		b.up(UpOptions{DryRun: true, Strict: true}, CodeRefused)
		b.up(UpOptions{}, CodeRefused)
		b.up(UpOptions{AcceptWatched: AcceptAll}, CodeOK)
		b.up(UpOptions{}, CodeOK)
	})
	held := func(t *testing.T) *baselineCase {
		b := newBaseline(t, "")
		if err := b.a.forget(ProjectRef{Name: "web", Dir: b.dir}, engine.Observed{}, false); err != nil {
			t.Fatal(err)
		}
		s := b.ready.Compiled.Project.Services["one"]
		s.Volumes[0].Target = "/w"
		s.Volumes = append(s.Volumes, types.ServiceVolumeConfig{Type: types.VolumeTypeBind, Source: filepath.Join(b.dir, "workshop.yaml"), Target: "/w/workshop.yaml", ReadOnly: true})
		b.ready.Compiled.Project.Services["one"] = s
		b.up(UpOptions{}, CodeOK)
		return b
	}
	starts := func(b *baselineCase, want string) {
		b.Helper()
		if got := b.a.StartHint(b.Context(), ProjectRef{Name: "web", Dir: b.dir, File: filepath.Join(b.dir, "workshop.yaml")}); got != want {
			b.Errorf("hint %q, want %q", got, want)
		}
	}
	t.Run("read-only", func(t *testing.T) {
		b := held(t)
		b.write("workshop.yaml", evil) // in place: it is the person's
		starts(b, "start it with `workshop up`")
		b.up(UpOptions{Strict: true}, CodeOK)
		b.looks(b.dir, false)
	})
	t.Run("read-only until it was replaced", func(t *testing.T) {
		b := held(t)
		rename(b, evil)
		b.looks(b.dir, true)
		starts(b, "a worker may have written what changed in workshop.yaml (B8): `workshop up --dry-run` shows it, and how to accept it")
		b.up(UpOptions{}, CodeRefused)
		b.says("(B8): it was replaced on this machine, as by an editor that saves a file anew, so its read-only mount in one was lost for a moment;")
		b.up(UpOptions{Strict: true}, CodeRefused)
		b.up(UpOptions{AcceptWatched: AcceptAll}, CodeOK)
		b.looks(b.dir, false)
		b.write("workshop.yaml", evil+"# mine\n")
		b.up(UpOptions{Strict: true}, CodeOK)

		rename(b, "# by an editor\n"+evil)
		b.write(".envrc", "a worker's")
		asked := 0
		ask := func(_ context.Context, question string) (bool, error) {
			if want := "workshop.yaml was replaced on this machine"; !strings.Contains(question, want) {
				t.Errorf("it asks %q, want %q", question, want)
			}
			asked++
			return asked > 1, nil
		}
		b.up(UpOptions{Ask: ask}, CodeRefused)
		b.up(UpOptions{Ask: ask}, CodeOK)
		b.says("changed since `up --accept-watched`: .envrc")
		b.up(UpOptions{Ask: ask}, CodeOK)
		b.says("changed since `up --accept-watched`: .envrc")
		rename(b, strings.Repeat("# one of many\n", maxShownLines+1)+evil)
		b.up(UpOptions{Ask: ask}, CodeRefused)
		b.up(UpOptions{AcceptWatched: AcceptAll}, CodeOK)
		if asked != 2 {
			t.Errorf("asked %d times", asked)
		}
		b.write("workshop.yaml", "# in place\n"+evil)
		b.up(UpOptions{Strict: true}, CodeOK)
	})
	t.Run("variables", func(t *testing.T) {
		b := newBaseline(t, "")
		b.write(".env", "A=1\n")
		b.up(UpOptions{}, CodeOK) // the file has none
		if err := b.a.forget(ProjectRef{Name: "web", Dir: b.dir}, engine.Observed{}, false); err != nil {
			t.Fatal(err)
		}
		b.write("workshop.yaml", "workshop:\n  name: web\n  container: {image: host, env: {A: $A}}\n  workers: [one]\n")
		b.up(UpOptions{}, CodeOK)
		b.write(".env", "A=2\n")
		b.up(UpOptions{}, CodeRefused)
		b.says("warning: .env changed since the last `up`; its values aren't shown")
		r, err := b.a.Record("web")
		if err != nil || len(r.Definition) != 2 || strings.Contains(fmt.Sprint(r.Definition)+b.err.String(), "A=") {
			t.Errorf("values are kept or shown: %v %v\n%s", err, r.Definition, b.err.String())
		}
	})
}

// TestReplacedRoot: B8: a directory that workers wrote to, and that has another name on
// the host now, is named until an `up` that a person asked for.
func TestReplacedRoot(t *testing.T) {
	b := newBaseline(t, "")
	files := []string{"workshop.yaml", ".envrc"}
	replace := func() {
		t.Helper()
		old := b.dir + ".old"
		if err := errors.Join(os.RemoveAll(old), os.Rename(b.dir, old), os.Mkdir(b.dir, 0o755)); err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			text, err := os.ReadFile(filepath.Join(old, f))
			if err != nil {
				t.Fatal(err)
			}
			b.write(f, string(text))
		}
		b.looks(b.dir, true)
		b.says("replaced, renamed or removed on the host: ", "look at it before")
	}
	replace()
	b.up(UpOptions{Strict: true}, CodeRefused)
	b.looks(b.dir, true)
	b.up(UpOptions{Implicit: true}, CodeOK)
	b.looks(b.dir, true)
	b.up(UpOptions{}, CodeOK)
	b.says("replaced, renamed or removed on the host: ")
	b.looks(b.dir, false)
	b.up(UpOptions{Strict: true}, CodeOK)
	replace()
	b.up(UpOptions{Strict: true, AcceptWatched: AcceptAll}, CodeOK)
	b.looks(b.dir, false)

	// A record of an earlier version doesn't know what it was.
	r, err := b.a.Record("web")
	if err != nil {
		t.Fatal(err)
	}
	r.RootIDs = nil
	if err := r.Save(); err != nil {
		t.Fatal(err)
	}
	b.looks(b.dir, false)
}

// TestFirstUpAccepts: B8: the first `up` may say --accept-watched, too.
func TestFirstUpAccepts(t *testing.T) {
	b := newBaseline(t, "")
	if err := b.a.forget(ProjectRef{Name: "web", Dir: b.dir}, engine.Observed{}, false); err != nil {
		t.Fatal(err)
	}
	b.up(UpOptions{AcceptWatched: AcceptAll}, CodeOK)
	b.looks(b.dir, false)
}

// TestEnvFilesAreWatched: B8, B45: so is a file of --env-file that a worker may write.
func TestEnvFilesAreWatched(t *testing.T) {
	b := newBaseline(t, "")
	b.write("vars/dev", "A=1\n")
	b.a.Settings.EnvFiles = []string{"vars/dev"}
	b.up(UpOptions{AcceptWatched: AcceptAll}, CodeOK)
	b.looks(b.dir, false)
	b.write("vars/dev", "A=2\n")
	b.up(UpOptions{Strict: true}, CodeRefused)
	b.says("changed since `up --accept-watched`", "vars/dev")
}

// TestBaselineIsFound: B8, B60: whatever becomes of the workshop's file, of runtime
// directories and of the directory that somebody is in.
func TestBaselineIsFound(t *testing.T) {
	for _, project := range []string{"", "web"} {
		b := newBaseline(t, project)
		elsewhere := t.TempDir()
		b.looks(elsewhere, false)
		if err := os.RemoveAll(b.ready.Compiled.Facts.RuntimeDir); err != nil {
			t.Fatal(err)
		}
		b.looks(b.dir, false)
		file := filepath.Join(b.dir, "workshop.yaml")
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		b.write(".mcp.json", "a worker's")
		for _, dir := range []string{b.dir, elsewhere} {
			if got := b.looks(dir, true); got.Dir != b.dir {
				t.Errorf("from %s: in %q, want %s", dir, got.Dir, b.dir)
			}
			b.says("removed since the first `up`", "workshop.yaml", "new since the first `up`", ".mcp.json")
		}
		// Without a name, the failure says it.
		a := b.in(b.dir, "")
		for _, spoil := range []func(){func() {}, func() { b.write("workshop.yaml", "{{") }, func() { _ = os.Remove(file); _ = os.Mkdir(file, 0o700) }} {
			spoil()
			_, err := a.Find(t.Context())
			var f *Failure
			if !errors.As(err, &f) || !strings.Contains(strings.Join(f.AllHints(), "\n"), "`workshop -p web down`") {
				t.Errorf("%v: no hint of what is up", err)
			}
		}
		_ = os.Remove(file)
		b.write("workshop.yaml", "{{")
		want := "1 error; workshop.yaml changed since `up`, and a worker may have written that (B8)"
		up := *a
		up.Warnings = WarnNew
		for _, c := range []struct {
			name  string
			load  func() error
			hints int
		}{
			{"ps", func() error { _, err := a.Find(t.Context()); return err }, 1},
			{"exec", func() error { _, err := a.Load(t.Context()); return err }, 1},
			{"up", func() error { _, err := up.Load(t.Context()); return err }, 0},
			{"reload", func() error { _, err := up.Reload(t.Context(), false); return err }, 1},
		} {
			err := c.load()
			var f *Failure
			if !errors.As(err, &f) || !strings.HasSuffix(err.Error(), want) || len(f.Hints) != c.hints {
				t.Errorf("%s: got %v, hints %q, want it to end in %q, and %d hints", c.name, err, Hints(err), want, c.hints)
			}
		}
		// Another one above isn't taken for it.
		_ = os.Remove(file)
		a.Dir = filepath.Join(b.dir, "below")
		if err := os.Mkdir(a.Dir, 0o700); err != nil {
			t.Fatal(err)
		}
		above := filepath.Join(filepath.Dir(b.dir), "workshop.yaml")
		if err := os.WriteFile(above, []byte("workshop:\n  name: other\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Find(t.Context()); codeOfError(err) != CodeRefused {
			t.Errorf("with a file above: %v, want a refusal", err)
		}
		b.looks(a.Dir, true)
		_ = os.Remove(above)
	}
}

// TestNoBaseline: B8: what can't be compared counts as changed.
func TestNoBaseline(t *testing.T) {
	b := newBaseline(t, "")
	record := filepath.Join(b.a.recordsDir(), "web")
	for _, spoil := range []func() error{
		func() error { return os.Remove(filepath.Join(record, "protected.json")) },
		func() error { return os.WriteFile(filepath.Join(record, "project.json"), nil, 0o600) },
		func() error { return os.RemoveAll(record) },
	} {
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		b.err.Reset()
		if !b.a.CompareWatched(t.Context(), "web", b.seen) {
			t.Error("nothing changed")
		}
		b.says("can't be compared")
	}
	if b.a.CompareWatched(t.Context(), "web", engine.Observed{}) {
		t.Error("nothing is up, and something changed")
	}
}

// TestDownByName: B8, B11: `down -p` ends what was noted, and secrets, whatever the
// project's directory has and XDG_RUNTIME_DIR says; where it can't, it says so.
func TestDownByName(t *testing.T) {
	b := newBaseline(t, "")
	runtime := b.ready.Compiled.Facts.RuntimeDir
	if err := os.Remove(filepath.Join(b.dir, "workshop.yaml")); err != nil {
		t.Fatal(err)
	}
	got := b.looks(b.dir, true)
	b.a.Home = filepath.Dir(b.a.Home) // another place for secrets
	b.a.Lookup = func(name string) (string, bool) {
		return filepath.Join(filepath.Dir(filepath.Dir(filepath.Dir(filepath.Dir(runtime)))), ".local/state"), name == "XDG_STATE_HOME"
	}
	if err := b.a.forget(got, b.seen, false); err != nil {
		t.Fatal(err)
	}
	if Exists(runtime) || Exists(filepath.Join(b.a.recordsDir(), "web")) {
		t.Error("secrets or record are left")
	}
	if err := b.a.forget(ProjectRef{Name: "web"}, b.seen, false); codeOfError(err) == CodeOK {
		t.Error("nobody knows the directory, and it is no failure")
	}
	b.seen.Containers[0].Directory = b.dir // as it names it
	if err := b.a.forget(ProjectRef{Name: "web"}, b.seen, false); err != nil {
		t.Errorf("the engine knows it: %v", err)
	}
}

// TestAnotherDirectory: a project that was brought up elsewhere isn't replaced.
func TestAnotherDirectory(t *testing.T) {
	b := newBaseline(t, "")
	if err := b.a.CheckDirectory(t.Context(), ProjectRef{Name: "web", Dir: b.dir}); err != nil {
		t.Error(err)
	}
	if err := b.a.CheckDirectory(t.Context(), ProjectRef{Name: "web", Dir: t.TempDir()}); codeOfError(err) != CodeRefused {
		t.Errorf("got %v, want a refusal", err)
	}
	// One of the directory is meant where it is up under another name.
	second := *b.ready.Compiled.Facts
	second.Project, second.ProjectDir = "second", RealPath(t.TempDir())
	up := *b.ready
	up.Name, up.Compiled = "second", &compose.Compiled{Project: up.Compiled.Project, Roles: up.Compiled.Roles, Facts: &second}
	if err := b.in(second.ProjectDir, "second").Watch(t.Context(), &up, true, UpOptions{}); err != nil {
		t.Fatal(err)
	}
	err := b.a.CheckDirectory(t.Context(), ProjectRef{Name: "web", Dir: second.ProjectDir})
	if got, want := Hints(err), []string{"this directory's project is second: add `-p second`"}; !slices.Equal(got, want) {
		t.Errorf("%v, hints %q, want %q", err, got, want)
	}
	// Elsewhere, what needs the file says where it is.
	_, err = b.in(t.TempDir(), "web").Load(t.Context())
	if got, want := Hints(err), []string{"web was brought up from " + b.dir + ": `workshop -f " + filepath.Join(b.dir, "workshop.yaml") + " up`"}; !slices.Equal(got, want) {
		t.Errorf("%v, hints %q, want %q", err, got, want)
	}
	// What is gone can't be compared.
	other := *b.ready.Compiled.Facts
	other.ProjectDir = RealPath(t.TempDir())
	b.ready.Compiled.Facts = &other
	if err := os.RemoveAll(b.dir); err != nil {
		t.Fatal(err)
	}
	b.dir = other.ProjectDir
	b.write("workshop.yaml", "workshop:\n  name: web\n  container: {image: host}\n  workers: [one]\n")
	b.up(UpOptions{Strict: true}, CodeRefused)
	b.says("which is gone", "watched files (B8): 1 place not fully compared; nothing was started", "`workshop up` starts without comparing it")
	b.up(UpOptions{}, CodeOK)
}

// TestPendingElsewhere: B8: what changed and wasn't accepted before `down` isn't forgotten
// for another directory of the same name; nor is that of a directory that was moved.
func TestPendingElsewhere(t *testing.T) {
	b := newBaseline(t, "")
	clone := ProjectRef{Name: "web", Dir: RealPath(t.TempDir())}
	b.write(".mcp.json", "a worker's")
	if err := b.a.forget(ProjectRef{Name: "web", Dir: b.dir}, b.seen, true); err != nil {
		t.Fatal(err)
	}
	check := func(want int) {
		t.Helper()
		if err := b.a.CheckDirectory(t.Context(), clone); codeOfError(err) != want {
			t.Errorf("got %v, want exit code %d", err, want)
		}
	}
	check(CodeRefused)
	if err := os.Rename(filepath.Join(b.dir, ".mcp.json"), filepath.Join(b.dir, "reviewed")); err != nil {
		t.Fatal(err)
	}
	check(CodeOK) // nothing is left to accept
	if err := os.Rename(filepath.Join(b.dir, "reviewed"), filepath.Join(b.dir, ".mcp.json")); err != nil {
		t.Fatal(err)
	}
	check(CodeRefused)

	moved := b.dir + ".moved"
	if err := os.Rename(b.dir, moved); err != nil {
		t.Fatal(err)
	}
	b.dir = moved
	other := *b.ready.Compiled.Facts
	other.ProjectDir = moved
	b.ready.Compiled.Facts = &other
	b.up(UpOptions{Strict: true}, CodeRefused)
	b.says("which is gone: what its workers wrote can't be compared")
	b.up(UpOptions{Implicit: true}, CodeRefused)
	b.up(UpOptions{}, CodeOK)
}
