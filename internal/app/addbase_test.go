package app

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/llmdo/workshop/internal/dev/testutil"
)

// base makes the source a base, with these lines in its container.
func (s *shared) base(tag, text string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.repo, "workshop.yaml"), []byte("workshop:\n  name: go-review\n"+text), 0o644); err != nil {
		s.t.Fatal(err)
	}
	testutil.Git(s.t, s.repo, "add", "-A")
	testutil.Git(s.t, s.repo, "commit", "-qm", tag)
	testutil.Git(s.t, s.repo, "tag", tag)
}

const plainBase = `  container:
    image: 127.0.0.1:1/acme/review@sha256:0000000000000000000000000000000000000000000000000000000000000000
    network: {mode: restricted, allow: [api.acme.example]}
    mounts: ["./src:/workspace/src"]
  workers: [{name: reviewer, tools: [read_file], instructions: x}, {name: other, tools: [read_file], instructions: x, container: {network: none}}]
`

// A base is enough for a workshop: whatever the project has until then, it is added, or
// what is to be written is said and nothing is written.
func TestAddBase(t *testing.T) {
	for _, c := range []struct {
		name, file string // of the project; "" for none
		base       string
		want, says string // the file's text, or part of what is said
	}{
		{"no file", "", plainBase, "workshop:\n  name: project\n  extends: {from: \"FROM\", version: \"^1.1\"}\n", ""},
		{"a name", "workshop: {name: x}\n", plainBase, "workshop: {name: x, extends: {from: \"FROM\", version: \"^1.1\"}}\n", ""},
		{"a name in a block", "workshop:\n  name: x\n", plainBase, "workshop:\n  name: x\n  extends: {from: \"FROM\", version: \"^1.1\"}\n", ""},
		{"no workers", "workshop:\n  name: x\n  workers: []\n", plainBase, "", "remove it: the workers of the base are there without a word"},
		{"a base without an image", "", "  container: {tmp: 10M}\n  open: {images: ['acme/*']}\n  workers: [{name: w, tools: [], instructions: x}]\n", "",
			"write workshop.yaml with what is missing, and run `workshop lock`:\nworkshop:\n  name: project\n  extends:"},
		{"declined", "", "-", "", "was declined"},
		{"a base that is wrong", "", "  nosuch: 1\n" + plainBase, "", "the base can't be extended: 1 error; nothing was written"},
		{"another mistake", "workshop:\n  name: x\n  nosuch: 1\n", plainBase, "", "nosuch"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newShared(t)
			s.base("v1.1.0", strings.TrimPrefix(c.base, "-"))
			file := filepath.Join(s.env.Dir, "workshop.yaml")
			if c.file == "" {
				if err := os.Remove(file); err != nil {
					t.Fatal(err)
				}
			} else {
				s.write("workshop.yaml", c.file)
			}
			s.answer(c.base != "-", true)
			added, err := s.env.AddSource(t.Context(), AddOptions{Source: s.from, Extends: true})
			now, _ := os.ReadFile(file)
			if c.says != "" {
				if err == nil || added.Written || string(now) != c.file || !strings.Contains(s.said.String()+err.Error()+strings.Join(Hints(err), "\n"), c.says) {
					t.Errorf("%v\n%s\n%s", err, s.said.String(), now)
				}
				if c.base == "-" && strings.Contains(strings.Join(Hints(err), ""), "what is missing") {
					t.Error(Hints(err))
				}
				// No place is named of a file that isn't there.
				if said := s.said.String() + err.Error(); c.file == "" && (strings.Contains(said, " workshop.yaml:") || strings.HasPrefix(said, "workshop.yaml")) {
					t.Errorf("a place in no file:\n%s", said)
				}
				return
			}
			if want := strings.Replace(c.want, "FROM", s.id.From(), 1); !added.Written || string(now) != want || added.New != (c.file == "") {
				t.Errorf("%v\n%s\ngot\n%s\nwant\n%s", err, s.said.String(), now, want)
			}
			if len(s.last) != 1 || !slices.Equal(s.last[0].Grants, []string{
				"other, reviewer image 127.0.0.1:1/acme/review@sha256:0000000000000000000000000000000000000000000000000000000000000000", "other, reviewer mount ./src at /workspace/src ro", "other network none", "other, reviewer tool read_file",
				"reviewer network restricted", "reviewer allow api.acme.example tcp/80,443",
			}) {
				t.Errorf("%+v", s.last)
			}
		})
	}
}

// What --yes takes is shown as a question would have, but where nobody reads it.
func TestAddShown(t *testing.T) {
	for _, c := range []struct {
		name            string
		terminal, quiet bool
		want            int
	}{{"yes", false, false, 1}, {"in a terminal", true, false, 1}, {"quiet", false, true, 0}} {
		t.Run(c.name, func(t *testing.T) {
			s := newShared(t)
			s.base("v1.1.0", plainBase)
			s.settings("", "sources: {allow: ['"+s.id.Host()+"']}\n")
			s.write("workshop.yaml", "workshop: {name: x}\n")
			if c.terminal {
				s.answer(false) // there is no question
			}
			var shown []SourceRequest
			s.env.Quiet, s.env.ShowSources = c.quiet, func(all []SourceRequest) { shown = append(shown, all...) }
			added, err := s.env.AddSource(t.Context(), AddOptions{Source: s.from, Extends: true, LockOptions: LockOptions{Yes: true}})
			if !added.Written || len(s.asked) > 0 || len(shown) != c.want {
				t.Fatalf("%+v, %v, asked %v, shown %+v\n%s", added, err, s.asked, shown, s.said.String())
			}
			if c.want > 0 && (shown[0].Stage != StageUse || shown[0].Ref != "refs/tags/v1.1.0" || !slices.Contains(shown[0].Grants, "reviewer allow api.acme.example tcp/80,443")) {
				t.Errorf("%+v", shown)
			}
		})
	}
}

// A base that somebody wants to import is named, with the command that extends it.
func TestAddBaseAsImport(t *testing.T) {
	s := newShared(t)
	s.base("v1.1.0", plainBase)
	const mine = "workshop: {name: web, container: {image: host}, workers: [{name: one, tools: [], instructions: x}]}\n"
	s.write("workshop.yaml", mine)
	s.answer(true, true)
	added, err := s.env.AddSource(t.Context(), AddOptions{Source: s.from, As: "base"})
	if s.fails("imported", err, CodeUsage, "is a base, which says itself what workers are granted"); added.Written || s.read("workshop.yaml") != mine {
		t.Errorf("%+v\n%s", added, s.read("workshop.yaml"))
	}
	if hints := strings.Join(Hints(err), "\n"); !strings.Contains(hints, "`workshop add --extends "+s.from+"`") {
		t.Error(hints)
	}
}
