package docker

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/workshop"
)

// planOf plans the build of one worker's image from a directory, without an engine.
func planOf(t *testing.T, dir, dockerfile string) (*engine.Plan, Build) {
	t.Helper()
	k := workshop.Container{Build: &workshop.Build{Context: value(dir), Dockerfile: value(dockerfile)}}
	c, err := compose.Compile(&workshop.Workshop{
		File: "workshop.yaml", Name: value("w"), Container: k, Workers: []workshop.Worker{{Name: "one", Container: k}},
	})
	if err != nil {
		t.Fatal(err)
	}
	builds, err := Builds(t.Context(), c)
	if err != nil || len(builds) != 1 {
		t.Fatalf("%+v, %v", builds, err)
	}
	return &engine.Plan{
		Compiled: c, Desired: engine.Desired{Compiled: c, Builds: Hashes(builds)},
		Steps: []engine.Step{{Op: engine.OpBuildImage, Service: "one"}},
	}, builds[0]
}

// B46: the hash for the lock is of the bytes that the hash of the plan is of.
func TestContentOfABuild(t *testing.T) {
	dir := testutil.Tree(t, "Dockerfile", "a/b")
	hash, err := ContentHash(t.Context(), dir, "Dockerfile")
	if _, b := planOf(t, dir, "Dockerfile"); err != nil || b.Content != hash {
		t.Errorf("%s, want %s, %v", b.Content, hash, err)
	}
}

// A user agrees to the content that was planned, and sees its Dockerfile: a worker may
// exchange the files before they are asked and put them back afterwards.
func TestApprovedIsWhatWasPlanned(t *testing.T) {
	dir := testutil.Tree(t, "Dockerfile", "a/b")
	file := filepath.Join(dir, "Dockerfile")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("FROM evil\n")
	plan, planned := planOf(t, dir, "Dockerfile")
	var asked []Build
	e := &Engine{opts: Options{ApproveBuild: func(_ context.Context, b Build) error { asked = append(asked, b); return nil }}}
	write("FROM good\n")
	if err := e.approve(t.Context(), plan); err == nil || !strings.Contains(err.Error(), "changed since they were hashed") || len(asked) > 0 {
		t.Errorf("%v, asked about %+v", err, asked)
	}
	write("FROM evil\n")
	if err := e.approve(t.Context(), plan); err != nil || len(asked) != 1 || asked[0].Hash != planned.Hash || string(asked[0].Text) != "FROM evil\n" {
		t.Errorf("%v, asked about %+v", err, asked)
	}
	e.opts.ApproveBuild = nil
	if err := e.approve(t.Context(), plan); !errors.Is(err, ErrNotApproved) {
		t.Error(err)
	}
}

func TestDockerfileInAContext(t *testing.T) {
	for _, c := range []struct {
		name, dockerfile, to, ignore, want, problem string
	}{
		{"plain", "Dockerfile", "", "", "Dockerfile", ""},
		{"below", "a/../a/b", "", "", "a/b", ""},
		{"a link", "link", "a/b", "", "a/b", ""},
		{"a link below", "a/link", "../Dockerfile", "", "Dockerfile", ""},
		{"a link to what isn't sent", "link", "a/b", "a\n", "", "not in the build context"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := testutil.Tree(t, "Dockerfile", "a/b")
			for _, name := range []string{"Dockerfile", "a/b"} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if c.to != "" {
				if err := os.Symlink(c.to, filepath.Join(dir, c.dockerfile)); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(filepath.Join(dir, ".dockerignore"), []byte(c.ignore), 0o644); err != nil {
				t.Fatal(err)
			}
			plan, _ := planOf(t, dir, c.dockerfile)
			_, f, err := spool(t.Context(), plan, "one")
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			text, err := dockerfileIn(f, c.dockerfile)
			if string(text) != c.want || (err == nil) != (c.problem == "") || err != nil && !strings.Contains(err.Error(), c.problem) {
				t.Errorf("%q, %v; want %q, %q", text, err, c.want, c.problem)
			}
		})
	}
}
