package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmdo/workshop/internal/dev/testutil"
)

// second makes another repository beside the source's, with one release.
func (s *shared) second(name string) (from, repo string) {
	s.t.Helper()
	repo = filepath.Join(filepath.Dir(s.repo), name)
	testutil.Git(s.t, filepath.Dir(s.repo), "clone", "-q", s.repo, repo)
	return strings.Replace(s.from, "/sast/", "/"+name+"/", 1), repo
}

// A release that needs more than the file grants, or is closed by the base, is named and
// not taken; a dry run shows the releases of other sources.
func TestReleaseRefused(t *testing.T) {
	s := newShared(t)
	from, repo := s.second("lib")
	base, baseRepo := s.second("base")
	if err := os.WriteFile(filepath.Join(baseRepo, "workshop.yaml"), []byte("workshop:\n  name: base\n  container: {image: 'x.example/x@sha256:"+strings.Repeat("a", 64)+"'}\n  workers: [{name: b, tools: [], instructions: x}]\n  open: {workers: true}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	testutil.Git(t, baseRepo, "commit", "-qam", "base")
	testutil.Git(t, baseRepo, "tag", "-f", "v1.0.0")
	s.imports("{as: sast, from: '"+s.from+"', version: ^1}", "{as: lib, from: '"+from+"', version: ^1}")
	s.lock(LockOptions{})
	before := s.read("workshop.lock")
	s.release("v1.1.0", "  needs: {network: {mode: restricted, allow: [api.sast.example]}}\n")
	testutil.Git(t, repo, "commit", "-qm", "x", "--allow-empty")
	testutil.Git(t, repo, "tag", "v1.3.0")

	s.answer(true, true)
	for what, o := range map[string]LockOptions{"update": {AllSources: true}, "upgrade": {Upgrade: true}, "by name": {Sources: []string{s.id.String()}}} {
		_, err := s.env.Lock(t.Context(), o)
		s.fails(what, err, CodeRefused, s.id.String()+": the release v1.1.0 needs more than the file grants: mode restricted; v1.0.0 stays, nothing was writtenwrite below workshop:\n  grant:\n    sast:\n      network: ")
		if s.read("workshop.lock") != before {
			t.Fatal(s.read("workshop.lock"))
		}
	}
	if len(s.asked) > 0 {
		t.Errorf("asked %v about what isn't taken", s.asked)
	}
	r, err := s.env.Lock(t.Context(), LockOptions{AllSources: true, DryRun: true})
	if err != nil || s.said.Len() > 0 {
		t.Fatal(err, s.said.String())
	}
	s.fails("dry run", r.Refused, CodeRefused, s.id.String()+": the release v1.1.0 needs more than the file grants")
	var lines []string
	for _, d := range r.Differences {
		lines = append(lines, d.String())
	}
	if text := strings.Join(lines, "\n"); !strings.Contains(text, "/lib/.git: ref is refs/tags/v1.3.0, locked as refs/tags/v1.0.0") || strings.Contains(text, "/sast/") || s.read("workshop.lock") != before {
		t.Error(text)
	}
	// What the file's own version wants isn't a newer release that can stay away.
	s.imports("{as: sast, from: '" + s.from + "', version: ^1.1}")
	s.answer(true, true)
	_, err = s.env.Lock(t.Context(), LockOptions{AllSources: true})
	s.fails("wanted", err, CodeRefused, "workshop.yaml is invalid")

	// A base that closes what it had open.
	s.write("workshop.yaml", "workshop:\n  name: app\n  extends: {from: '"+base+"', version: ^1}\n  workers: [{name: own, tools: [], instructions: x}]\n")
	s.lock(LockOptions{})
	if err := os.WriteFile(filepath.Join(baseRepo, "workshop.yaml"), []byte("workshop:\n  name: base\n  container: {image: 'x.example/x@sha256:"+strings.Repeat("a", 64)+"'}\n  workers: [{name: b, tools: [], instructions: x}]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	testutil.Git(t, baseRepo, "commit", "-qam", "closed")
	testutil.Git(t, baseRepo, "tag", "v1.1.0")
	_, err = s.env.Lock(t.Context(), LockOptions{AllSources: true})
	s.fails("closed", err, CodeRefused, "/base/.git: the release v1.1.0 can't be taken: workshop.yaml:4:")
	if !strings.Contains(err.Error(), "; v1.0.0 stays, nothing was written") {
		t.Error(err)
	}
}
