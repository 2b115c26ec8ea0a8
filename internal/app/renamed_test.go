package app

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/facts"
)

// TestRenamedWhileUp: B8, B60: a worker that may write to the project's directory
// can't give the project another name, by which nothing of it is up.
func TestRenamedWhileUp(t *testing.T) {
	dir := RealPath(t.TempDir())
	home := filepath.Join(dir, "home")
	a := testEnv(&Env{Dir: dir, Home: home, Lookup: func(string) (string, bool) { return "", false }}, io.Discard)
	write := func(name, text string) {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	broughtUp := func(project string, named bool) {
		t.Helper()
		c := &compose.Compiled{Project: &types.Project{}, Facts: &compose.Facts{Project: project, ProjectDir: dir}}
		if err := facts.NewRecord(a.recordsDir(), c, named, true).Keep(nil); err != nil {
			t.Fatal(err)
		}
	}
	named := func(want string) {
		t.Helper()
		got, err := a.Find(t.Context())
		if err != nil || got.Name != want {
			t.Errorf("got %q, %v; want %s", got.Name, err, want)
		}
	}
	refused := func(names ...string) {
		t.Helper()
		var f *Failure
		_, err := a.Find(t.Context())
		if !errors.As(err, &f) || f.Code != CodeRefused {
			t.Fatalf("got %v, want a refusal", err)
		}
		for _, name := range names {
			if !strings.Contains(err.Error(), name) {
				t.Errorf("%v doesn't name %s", err, name)
			}
		}
	}
	write("workshop.yaml", "workshop:\n  name: review\n")
	named("review")
	// Brought up by -p: that is no word of the directory's.
	broughtUp("by-hand", false)
	named("review")
	broughtUp("review", true)
	named("review")

	write("fake/commondir", "x")
	write(".git", "gitdir: fake\n")
	refused("project review", "review-fake")
	if err := os.Remove(filepath.Join(dir, ".git")); err != nil {
		t.Fatal(err)
	}
	write("workshop.yaml", "workshop:\n  name: other\n")
	refused("project review", "other")
	a.Settings.Project = "review"
	named("review")
	a.Settings.Project = ""
	if err := facts.ForgetRecord(a.recordsDir(), "review"); err != nil {
		t.Fatal(err)
	}
	named("other")
}

// TestPlantedBelow: B8, B60: a worker that may write to a directory of the project
// can't put a nearer workshop.yaml there, by which something else is up.
func TestPlantedBelow(t *testing.T) {
	dir := RealPath(t.TempDir())
	home := filepath.Join(dir, "home")
	src := filepath.Join(dir, "src")
	var records string
	at := func(cwd, project, file string) error {
		a := testEnv(&Env{Dir: cwd, Home: home, Lookup: func(string) (string, bool) { return "", false }}, io.Discard)
		a.Settings.Project, a.Settings.File = project, file
		records = a.recordsDir()
		_, err := a.Find(t.Context())
		// What tools, call, restart and firewall work on.
		if _, compileErr := a.quietCompile(t.Context()); codeOfError(compileErr) != codeOfError(err) {
			t.Errorf("in %s: compile says %v, target %v", cwd, compileErr, err)
		}
		return err
	}
	write := func(name, text string) string {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
		return file
	}
	valid := func(name string) string {
		return "workshop:\n  name: " + name + "\n  container: {image: host}\n  workers: [one]\n"
	}
	for _, dir := range []string{"", "src/deep/", "other/"} {
		write(dir+"workers/one.md", "---\nname: one\ndescription: does nothing\ntools: [read_file]\n---\nNothing.\n")
	}
	refused := func(err error) {
		t.Helper()
		var f *Failure
		if !errors.As(err, &f) || f.Code != CodeRefused || !strings.Contains(err.Error(), "src/workshop.yaml") && !strings.Contains(err.Error(), "workshop.yaml is new") {
			t.Errorf("got %v, want a refusal that names the file", err)
		}
	}
	fine := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	write("workshop.yaml", valid("review"))
	planted := write("src/deep/workshop.yaml", valid("nothing"))
	fine(at(filepath.Dir(planted), "", "")) // nothing is up

	var service types.ServiceConfig
	service.Volumes = []types.ServiceVolumeConfig{{Type: types.VolumeTypeBind, Source: src}}
	c := &compose.Compiled{
		Project: &types.Project{Services: types.Services{"w": service}},
		Roles:   map[string]compose.Role{"w": compose.RoleWorker},
	}
	c.Facts = &compose.Facts{Project: "review", ProjectDir: dir, RuntimeDir: home}
	// By -p too: what runs counts, not how it was named.
	r := facts.NewRecord(records, c, false, true)
	if err := r.Keep(nil); err != nil {
		t.Fatal(err)
	}
	refused(at(filepath.Dir(planted), "", ""))
	refused(at(filepath.Dir(planted), "review", "")) // which would look for it there
	fine(at(filepath.Dir(planted), "", planted))
	fine(at(dir, "", ""))
	fine(at(filepath.Dir(write("other/workshop.yaml", valid("mine"))), "", ""))

	s, err := r.Take(t.Context(), home, os.LookupEnv)
	if err := errors.Join(err, r.Keep(s)); err != nil {
		t.Fatal(err)
	}
	fine(at(filepath.Dir(planted), "", "")) // it was there at up
	write("src/deep/workshop.yaml", valid("another"))
	refused(at(filepath.Dir(planted), "", ""))
	if err := facts.ForgetRecord(records, "review"); err != nil {
		t.Fatal(err)
	}
	fine(at(filepath.Dir(planted), "", ""))
}

// codeOfError is a failure's exit code, and CodeOK for what is wrong with a file.
func codeOfError(err error) int {
	f, ok := errors.AsType[*Failure](err)
	if !ok {
		return CodeOK
	}
	return f.Code
}
