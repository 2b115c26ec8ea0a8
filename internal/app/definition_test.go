package app

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/facts"
)

const (
	aDefinition = "workshop:\n  name: web\n  container: {image: host}\n  workers: [one]\n"
	aWorkers    = aDefinition + "  # a worker's\n"
)

// beside is another project of a directory at or below that of the case.
func (b *baselineCase) beside(name, dir string) *baselineCase {
	other := &baselineCase{T: b.T, dir: filepath.Join(b.dir, dir), seen: b.seen}
	other.a = testEnv(&Env{Dir: other.dir, Home: b.a.Home, Lookup: b.a.Lookup}, &other.err)
	var service types.ServiceConfig
	service.Volumes = []types.ServiceVolumeConfig{{Type: types.VolumeTypeBind, Source: other.dir, ReadOnly: true}}
	other.ready = &Project{ProjectRef: ProjectRef{Name: name}, Compiled: &compose.Compiled{
		Project: &types.Project{Services: types.Services{"one": service}}, Roles: map[string]compose.Role{"one": compose.RoleWorker},
		Facts: &compose.Facts{Project: name, ProjectDir: other.dir, RuntimeDir: filepath.Join(b.a.Home, ".cache/workshop/run", facts.RuntimeID(name, other.dir))},
	}}
	return other
}

// B8: what is noted is the text that is obeyed, whatever a worker makes of the file after
// it was read.
func TestObeyedIsNoted(t *testing.T) {
	for name, before := range map[string]func(*baselineCase){
		"the first up": func(b *baselineCase) {
			if err := facts.ForgetRecord(b.a.recordsDir(), "web"); err != nil {
				t.Fatal(err)
			}
		},
		"a later one": func(b *baselineCase) { b.write("workshop.yaml", aDefinition+"  # mine\n") },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBaseline(t, "")
			before(b)
			var err error
			if b.ready.Source, err = b.a.Read(t.Context(), filepath.Join(b.dir, "workshop.yaml")); err != nil {
				t.Fatal(err)
			}
			b.write("workshop.yaml", aWorkers)
			if err := b.a.Watch(t.Context(), b.ready, true, UpOptions{AcceptWatched: AcceptAll}); err != nil {
				t.Fatal(err)
			}
			b.looks(b.dir, true)
			b.up(UpOptions{}, CodeRefused)
		})
	}
}

// B8: a definition that workers of any project can have written isn't obeyed, by
// whatever name or from whatever directory, before or after the `down` of theirs.
func TestDefinitionOfOthers(t *testing.T) {
	b := newBaseline(t, "")
	two := b.beside("two", ".")
	two.up(UpOptions{}, CodeOK) // it is as it was
	if err := facts.ForgetRecord(b.a.recordsDir(), "two"); err != nil {
		t.Fatal(err)
	}
	b.write("workshop.yaml", aWorkers)
	two.up(UpOptions{}, CodeRefused)
	two.says("+   5 |   # a worker's", "--accept-watched=")
	two.up(UpOptions{AcceptWatched: AcceptAll}, CodeOK)
	two.up(UpOptions{}, CodeOK)
	if err := facts.ForgetRecord(b.a.recordsDir(), "two"); err != nil {
		t.Fatal(err)
	}
	if err := b.a.forget(ProjectRef{Name: "web", Dir: b.dir}, b.seen, true); err != nil {
		t.Fatal(err)
	}
	two.up(UpOptions{}, CodeOK) // it was accepted, for all
	if err := facts.ForgetRecord(b.a.recordsDir(), "two"); err != nil {
		t.Fatal(err)
	}
	b.write("workshop.yaml", aDefinition)
	two.up(UpOptions{}, CodeRefused)
}

// B8: a worker of another project restores what that one's baseline has of a definition,
// or removes what it hasn't: what was accepted, or written by this program, counts.
func TestRollbackByAnotherProject(t *testing.T) {
	b := newBaseline(t, "")
	if err := facts.ForgetRecord(b.a.recordsDir(), "web"); err != nil {
		t.Fatal(err)
	}
	first := strings.Replace(aDefinition, "host}", "host, env: {LEVEL: \"${LEVEL:-1}\"}}", 1)
	b.write("sub/workshop.yaml", first)
	b.write("sub/workers/one.md", "---\nallowed-tools: Read\n---\nx\n")
	b.up(UpOptions{}, CodeOK)
	sub := b.beside("sub", "sub")
	sub.up(UpOptions{}, CodeOK)
	accept := func() {
		t.Helper()
		sub.up(UpOptions{}, CodeRefused)
		sub.up(UpOptions{AcceptWatched: sub.digest()}, CodeOK)
		sub.up(UpOptions{}, CodeOK)
		b.looks(b.dir, false)
	}
	rolledBack := func(undo func()) {
		t.Helper()
		sub.up(UpOptions{}, CodeRefused)
		b.looks(b.dir, true)
		undo()
		sub.up(UpOptions{}, CodeOK)
		b.looks(b.dir, false)
	}
	second := first + "  # mine\n"
	b.write("sub/workshop.yaml", second)
	accept()
	b.write("sub/workshop.yaml", first)
	rolledBack(func() { b.write("sub/workshop.yaml", second) })

	b.write("sub/.env", "LEVEL=2\n")
	accept()
	if err := os.Remove(filepath.Join(b.dir, "sub/.env")); err != nil {
		t.Fatal(err)
	}
	rolledBack(func() { b.write("sub/.env", "LEVEL=2\n") })

	// As `firewall deny --save` and the answer always do.
	third := second + "  approvals: {default: deny}\n"
	if err := sub.a.replaceFile(t.Context(), sub.ready.Source, []byte(second), []byte(third)); err != nil {
		t.Fatal(err)
	}
	sub.up(UpOptions{}, CodeOK)
	b.looks(b.dir, false)
	b.write("sub/workshop.yaml", second)
	rolledBack(func() { b.write("sub/workshop.yaml", third) })

	// Nor after the `down` of the project.
	if err := facts.ForgetRecord(b.a.recordsDir(), "sub"); err != nil {
		t.Fatal(err)
	}
	b.write("sub/workshop.yaml", second)
	sub.up(UpOptions{}, CodeRefused)
	b.write("sub/workshop.yaml", third)
	sub.up(UpOptions{}, CodeOK)
}

// B8: what another command works on isn't written at the same time, and not waited for
// without end; a lock of a command that was killed stays.
func TestRecordsOfOthersAreLocked(t *testing.T) {
	b := newBaseline(t, "")
	sub := b.beside("sub", "sub")
	b.write("sub/workshop.yaml", aDefinition)
	lock, err := b.a.Change(t.Context(), "web")
	if err != nil {
		t.Fatal(err)
	}
	sub.up(UpOptions{AcceptWatched: AcceptAll}, CodeOK)
	sub.says("another workshop command works on project web")
	lock.Unlock()
	file := filepath.Join(b.a.StateDir(), "web.lock")
	if err := os.WriteFile(file, []byte("4321"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.write("sub/workshop.yaml", aWorkers)
	sub.up(UpOptions{AcceptWatched: AcceptAll}, CodeOK)
	if strings.Contains(sub.err.String(), "works on") || !Exists(file) {
		t.Errorf("the lock that was left is there: %v\n%s", Exists(file), sub.err.String())
	}
}

// digest is what the last refusal printed.
func (b *baselineCase) digest() string {
	b.Helper()
	found := regexp.MustCompile("--accept-watched=([0-9a-f]{32})`").FindStringSubmatch(b.err.String())
	if found == nil {
		b.Fatalf("no digest in %s", b.err.String())
	}
	return found[1]
}

// B8: a read-only mount that is added to what is up covers the file from the next `down`
// on, which the refusal says, if each worker with the writable mount has it.
func TestLateCover(t *testing.T) {
	const late = "it was writable in one since the first `up` (its read-only mount counts from the next `down` on); nothing was started or loaded"
	for _, tt := range []struct {
		name   string
		covers bool // the file has a read-only mount in one
		other  bool // another worker has the writable mount alone
		late   bool
	}{
		{"no cover", false, false, false},
		{"a cover", true, false, true},
		{"not of each worker", true, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBaseline(t, "")
			volumes := []types.ServiceVolumeConfig{{Type: types.VolumeTypeBind, Source: b.dir, Target: "/w"}}
			if tt.covers {
				volumes = append(volumes, types.ServiceVolumeConfig{Type: types.VolumeTypeBind, Source: filepath.Join(b.dir, "workshop.yaml"), Target: "/w/workshop.yaml", ReadOnly: true})
			}
			var one, two types.ServiceConfig
			one.Volumes, two.Volumes = volumes, volumes[:1]
			b.ready.Compiled.Project.Services["one"] = one
			if tt.other {
				b.ready.Compiled.Project.Services["two"] = two
				b.ready.Compiled.Roles["two"] = compose.RoleWorker
			}
			b.write("workshop.yaml", aWorkers)
			b.up(UpOptions{}, CodeRefused)
			b.says("it was writable in one since the first `up`")
			if got := strings.Contains(b.err.String(), late); got != tt.late {
				t.Errorf("says that it counts later: %v, want %v:\n%s", got, tt.late, b.err.String())
			}
		})
	}
}

// B8: the same of a project below a directory that workers of another may write.
func TestDefinitionBelow(t *testing.T) {
	for name, change := range map[string]func(*baselineCase){
		"its file of variables":     func(b *baselineCase) { b.write("sub/.env", "LEVEL=2\n") },
		"another one was there":     func(b *baselineCase) { _ = os.Remove(filepath.Join(b.dir, "sub/.env")) },
		"the file of a worker":      func(b *baselineCase) { b.write("sub/workers/one.md", "---\nallowed-tools: Bash\n---\nx\n") },
		"nothing":                   nil,
		"a file that it hasn't got": func(b *baselineCase) { b.write("sub/workers/two.md", "x") },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBaseline(t, "")
			if err := facts.ForgetRecord(b.a.recordsDir(), "web"); err != nil {
				t.Fatal(err)
			}
			b.write("sub/workshop.yaml", strings.Replace(aDefinition, "host}", "host, env: {LEVEL: \"${LEVEL:-1}\"}}", 1))
			b.write("sub/.env", "LEVEL=1\n")
			b.write("sub/workers/one.md", "---\nallowed-tools: Read\n---\nx\n")
			b.up(UpOptions{}, CodeOK)
			sub := b.beside("sub", "sub")
			want := CodeOK
			if change != nil {
				if change(b); !strings.Contains(name, "hasn't") {
					want = CodeRefused
				}
			}
			sub.up(UpOptions{}, want)
		})
	}
}

// B8, B40, B42: tools, whose instructions, approvals and delegation are of the files,
// aren't opened where a worker can have written those, though it runs as before.
func TestToolsOfChangedDefinition(t *testing.T) {
	b := newBaseline(t, "")
	b.write("workers/one.md", "---\nallowed-tools: Read\n---\nx\n")
	b.up(UpOptions{AcceptWatched: AcceptAll}, CodeOK)
	c := &Project{ProjectRef: ProjectRef{Name: "web", Dir: b.dir}, Source: b.ready.Source}
	open := func() error {
		h, err := b.a.OpenTools(t.Context(), c, nil, ToolsOptions{})
		if err == nil {
			h.Close()
		}
		return err
	}
	if err := open(); err != nil {
		t.Fatal(err)
	}
	b.write("workshop.yaml", aWorkers)
	var err error
	if c.Source, err = b.a.Read(t.Context(), filepath.Join(b.dir, "workshop.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := open(); codeOfError(err) != CodeRefused || !strings.Contains(err.Error(), "a worker may have written that (B8)") {
		t.Errorf("got %v, want a refusal", err)
	}
}

// B8: --accept-watched takes what was shown, not what a worker made of it since; nobody
// is asked about a line whose end isn't shown; a removed file of variables is shown.
func TestAcceptedIsShown(t *testing.T) {
	b := newBaseline(t, "")
	b.write("workshop.yaml", aWorkers)
	b.up(UpOptions{}, CodeRefused)
	digest := b.digest()
	b.write("workshop.yaml", aWorkers+"  # more\n")
	b.up(UpOptions{AcceptWatched: digest}, CodeRefused)
	b.says("+   6 |   # more", "it changed since")
	b.write("workshop.yaml", aWorkers)
	b.write(".envrc", "planted after the digest was printed")
	b.up(UpOptions{AcceptWatched: digest, Strict: true}, CodeRefused)
	b.up(UpOptions{AcceptWatched: digest}, CodeOK)
	b.looks(b.dir, true)
	b.says("changed since the first `up`: .envrc")
	b.up(UpOptions{}, CodeOK)
	for _, d := range []string{digest, strings.Repeat("0", 32)} { // of nothing
		b.up(UpOptions{AcceptWatched: d, DryRun: true}, CodeOK)
		b.says("warning: nothing is to be accepted with --accept-watched=" + d)
		b.up(UpOptions{AcceptWatched: d}, CodeRefused)
		b.looks(b.dir, true)
	}

	b.write("workshop.yaml", aWorkers+"  #"+strings.Repeat("x", 2*maxShownLine)+"\n")
	b.up(UpOptions{Ask: func(context.Context, string) (bool, error) {
		t.Error("asked about a line that isn't shown as a whole")
		return true, nil
	}}, CodeRefused)
	b.says("more bytes")
	if n := b.err.Len(); n > 4*maxShownLine {
		t.Errorf("%d bytes are shown", n)
	}

	b.write("workshop.yaml", strings.Replace(aDefinition, "host}", "host, env: {LEVEL: \"${LEVEL:-1}\"}}", 1))
	b.write(".env", "LEVEL=2\n")
	b.up(UpOptions{AcceptWatched: AcceptAll}, CodeOK)
	b.up(UpOptions{}, CodeOK)
	if err := os.Remove(filepath.Join(b.dir, ".env")); err != nil {
		t.Fatal(err)
	}
	b.up(UpOptions{}, CodeRefused)
	b.says(".env was removed since the last `up`")
	b.up(UpOptions{AcceptWatched: AcceptAll}, CodeOK)
	b.up(UpOptions{}, CodeOK)
}

// B8: a file that several workers share is read once: who writes it between two reads
// doesn't get one text noted and the other obeyed.
func TestFilesAreReadOnce(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "one.md")
	fsys := projectFS{dir: dir, read: map[string]*kept{}}
	for _, text := range []string{"first", "second"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := fsys.Open("one.md")
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(f)
		if err != nil || string(got) != "first" || string(fsys.read["one.md"].text) != "first" {
			t.Errorf("%q, kept %q, %v", got, fsys.read["one.md"].text, err)
		}
		if info, err := f.Stat(); err != nil || info.Size() != int64(len("first")) {
			t.Errorf("%v %v", info, err)
		}
		f.Close()
	}
}

// B8: a file of --env-file is the same by whatever path it and the project are named, and
// where symbolic links lead to it through what a worker may write.
func TestEnvFileByAnotherPath(t *testing.T) {
	const text = "workshop:\n  name: web\n  container: {image: host, env: {LEVEL: \"${LEVEL:-1}\"}}\n  workers: [one]\n"
	for name, tt := range map[string]struct {
		project, file string // by what path
		write         string
	}{
		"as it is":                    {"real/deep/web", "real/deep/web/out/my.env", "out/my.env"},
		"the project through a link":  {"ln", "real/deep/web/out/my.env", "out/my.env"},
		"the file through a link":     {"real/deep/web", "ln/out/my.env", "out/my.env"},
		"both":                        {"ln", "ln/out/my.env", "out/my.env"},
		"a link into the mount":       {"real/deep/web", "real/deep/web/vars/my.env", "out/my.env"},
		"a link elsewhere, into it":   {"real/deep/web", "vars/my.env", "out/my.env"},
		"a directory that is a link":  {"real/deep/web", "vars/my.env", ""},
		"the same, below the project": {"ln", "real/deep/web/vars/my.env", ""},
	} {
		t.Run(name, func(t *testing.T) {
			top := RealPath(t.TempDir())
			at := func(name string) string { return filepath.Join(top, name) }
			b := &baselineCase{T: t, dir: at("real/deep/web")}
			b.a = testEnv(&Env{Dir: at(tt.project), Home: at("home"), Lookup: func(string) (string, bool) { return "", false }}, &b.err)
			b.a.Settings.EnvFiles = []string{at(tt.file)}
			var service types.ServiceConfig
			service.Volumes = []types.ServiceVolumeConfig{{Type: types.VolumeTypeBind, Source: filepath.Join(b.dir, "out"), Target: "/out"}}
			b.ready = &Project{ProjectRef: ProjectRef{Name: "web"}, Compiled: &compose.Compiled{
				Project: &types.Project{Services: types.Services{"one": service}}, Roles: map[string]compose.Role{"one": compose.RoleWorker},
				Facts: &compose.Facts{Project: "web", ProjectDir: b.dir, RuntimeDir: at("home/run")},
			}}
			b.write("workshop.yaml", text)
			b.write("out/sub/my.env", "LEVEL=1\n")
			b.write("out/my.env", "LEVEL=1\n")
			b.write("evil/my.env", "LEVEL=2\n")
			into := "out"
			if tt.write == "" {
				into = "out/sub"
			}
			for link, to := range map[string]string{"ln": "real/deep/web", "vars": "real/deep/web/" + into, "real/deep/web/vars": into} {
				if err := os.Symlink(to, at(link)); err != nil {
					t.Fatal(err)
				}
			}
			up := func(want int) {
				t.Helper()
				var err error
				if b.ready.Source, err = b.a.Read(t.Context(), at(tt.project+"/workshop.yaml")); err != nil {
					t.Fatal(err)
				}
				if err = b.a.Watch(t.Context(), b.ready, true, UpOptions{}); codeOfError(err) != want {
					t.Errorf("up: %v, want exit code %d", err, want)
				}
				if err = b.a.ReviewDefinition(t.Context(), b.ready, nil); codeOfError(err) != want {
					t.Errorf("call: %v, want exit code %d", err, want)
				}
			}
			up(CodeOK)
			up(CodeOK)
			if tt.write != "" {
				b.write(tt.write, "LEVEL=2\n")
			} else if err := errors.Join(os.Rename(at("real/deep/web/out/sub"), at("real/deep/web/out/old")), os.Symlink("../evil", at("real/deep/web/out/sub"))); err != nil {
				t.Fatal(err)
			}
			up(CodeRefused)
		})
	}
}

// B8, B41: nor is it obeyed where a directory on the way is a link into what workers may
// write, of the project or of another one.
func TestWorkersBelowALink(t *testing.T) {
	const worker = "---\nallowed-tools: Read\n---\nx\n"
	for name, attack := range map[string]func(b *baselineCase){
		"written": func(b *baselineCase) { b.write("w/one.md", strings.Replace(worker, "Read", "Bash", 1)) },
		"replaced by a link": func(b *baselineCase) {
			b.write("../examples/one.md", strings.Replace(worker, "Read", "Bash", 1))
			if err := errors.Join(os.Rename(filepath.Join(b.dir, "w"), filepath.Join(b.dir, "old")), os.Symlink("../examples", filepath.Join(b.dir, "w"))); err != nil {
				b.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBaseline(t, "")
			b.write("w/one.md", worker)
			above := b.beside("above", "..")
			above.write("workshop.yaml", strings.Replace(aDefinition, "name: web", "name: above", 1))
			if err := os.Symlink(filepath.Base(b.dir)+"/w", filepath.Join(above.dir, "workers")); err != nil {
				t.Fatal(err)
			}
			above.up(UpOptions{AcceptWatched: AcceptAll}, CodeOK)
			above.up(UpOptions{}, CodeOK)
			attack(b)
			above.up(UpOptions{}, CodeRefused)
			above.says("workers/one.md changed, and a worker may have written that (B8): symbolic links lead to it through ", "allowed-tools: Bash")
			if err := above.a.ReviewDefinition(t.Context(), above.ready, nil); codeOfError(err) != CodeRefused {
				t.Errorf("call: %v, want a refusal", err)
			}
			above.up(UpOptions{AcceptWatched: AcceptAll}, CodeOK)
			above.up(UpOptions{}, CodeOK)
			b.looks(b.dir, name != "written") // it is noted there too; a removed one is named
			if err := facts.ForgetRecord(b.a.recordsDir(), "above"); err != nil {
				t.Fatal(err)
			}
			want := CodeOK
			if name != "written" { // the worker can replace it again
				want = CodeRefused
			}
			above.up(UpOptions{}, want)
		})
	}
}

// B8: a yes to the lines of a file that a link leads to is one to what the link leads to.
func TestAcceptedBelowALink(t *testing.T) {
	b := newBaseline(t, "")
	b.write("sub/workers/one.md", "---\nallowed-tools: Read\n---\nx\n")
	if err := os.Symlink("sub/workers", filepath.Join(b.dir, "workers")); err != nil {
		t.Fatal(err)
	}
	b.up(UpOptions{AcceptWatched: AcceptAll}, CodeOK)
	b.looks(b.dir, false)
	b.write("sub/workers/one.md", "---\nallowed-tools: Bash\n---\nx\n")
	b.looks(b.dir, true)
	b.up(UpOptions{Ask: func(context.Context, string) (bool, error) { return true, nil }}, CodeOK)
	b.looks(b.dir, false)
	b.up(UpOptions{Implicit: true}, CodeOK)
	b.write("sub/workers/two.md", "x")
	b.looks(b.dir, true)
}

// B8, B46: a lock that a worker wrote or removed isn't obeyed; one that `lock` wrote is.
func TestLockIsReviewed(t *testing.T) {
	b := newBaseline(t, "")
	b.write("workers/one.md", "---\nname: one\ndescription: d\nallowed-tools: Read\n---\nx\n")
	b.up(UpOptions{AcceptWatched: AcceptAll}, CodeOK)
	locked := func() {
		t.Helper()
		if r, err := b.a.Lock(t.Context(), LockOptions{Offline: true}); err != nil || !r.Changed {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	locked()
	b.up(UpOptions{}, CodeOK)
	text, err := os.ReadFile(filepath.Join(b.dir, "workshop.lock"))
	if err != nil {
		t.Fatal(err)
	}
	b.write("workshop.lock", strings.Replace(string(text), "one tool read_file", "one tool shell", 1))
	b.up(UpOptions{}, CodeRefused)
	b.says("+  15 |   - one tool shell", "--accept-watched=")
	if _, err := b.a.Lock(t.Context(), LockOptions{Offline: true}); codeOfError(err) != CodeRefused {
		t.Errorf("lock took it: %v", err)
	}
	b.write("workshop.lock", string(text))
	b.up(UpOptions{}, CodeOK)
	if err := os.Remove(filepath.Join(b.dir, "workshop.lock")); err != nil {
		t.Fatal(err)
	}
	b.up(UpOptions{}, CodeRefused)
}
