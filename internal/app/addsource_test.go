package app

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
)

// What was written is told, whatever becomes of the lock.
func TestAddIsTold(t *testing.T) {
	for image, want := range map[string]string{"host": "", "oci:missing": "can't be locked"} {
		s := newShared(t)
		s.write("workshop.yaml", "workshop:\n  name: app\n  container: {image: \""+image+"\"}\n  workers: [{name: own, tools: [], instructions: x}]\n")
		s.answer(true, true, true)
		added, err := s.env.AddSource(t.Context(), AddOptions{Source: s.from, As: "sast"})
		s.fails(image, err, CodeInvalid, want)
		if !added.Written || !strings.Contains(s.read("workshop.yaml"), added.Line) {
			t.Errorf("%s: %+v\n%s", image, added, s.read("workshop.yaml"))
		}
	}
}

// What looks like an address to a person and is none, isn't asked for.
func TestAddressesOfSources(t *testing.T) {
	for from, want := range map[string]string{
		"git.example.org/acme/sast": "git+https://git.example.org/acme/sast", "127.0.0.1:8443/acme/sast@^1": "git+https://127.0.0.1:8443/acme/sast", "https://git/acme/sast": "git+https://git/acme/sast",
		"ssh://git@git.example.org/acme/sast": "git+ssh://git@git.example.org/acme/sast", "oci://registry.example.org/acme/sast@v1": "oci://registry.example.org/acme/sast", "git+https://git.example.org/a//b": "git+https://git.example.org/a//b",
		"oci://registry.example.org/acme/sast:v1": "!`workshop add oci://registry.example.org/acme/sast@v1`",
		"./sast": "!a directory of this machine", "../sast": "!a directory of this machine", "/srv/sast": "!a directory of this machine", "~/sast": "!a directory of this machine",
		"acme/sast": "!as in github.com/acme/sast", "git@git.example.org:acme/sast.git": "!`workshop add ssh://git@git.example.org/acme/sast.git`",
	} {
		line, err := sourceLine(AddOptions{Source: from, As: "sast"})
		if why, refused := strings.CutPrefix(want, "!"); refused {
			if err == nil || !strings.Contains(err.Error()+strings.Join(Hints(err), "\n"), why) {
				t.Errorf("%s: %v, want %q", from, err, why)
			}
		} else if err != nil || line.From != want {
			t.Errorf("%s: %s, %v", from, line.From, err)
		}
	}
}

// B8, B46: a source isn't added to what a worker may have written, and not to what somebody
// wrote while a person was asked.
func TestAddToChanged(t *testing.T) {
	s := newShared(t)
	const mine = "workshop: {name: web, container: {image: host}, workers: [{name: one, tools: [], instructions: x}]}\n"
	o := AddOptions{Source: s.from, As: "sast"}
	s.write("workshop.yaml", mine)
	s.env.AgreeSources = func(context.Context, []SourceRequest) (bool, error) {
		s.write("workshop.yaml", mine+"# another program's\n")
		return true, nil
	}
	_, err := s.env.AddSource(t.Context(), o)
	s.fails("meanwhile", err, CodeFailed, "was changed by another program; nothing was written")
	if s.read("workshop.yaml") != mine+"# another program's\n" {
		t.Error(s.read("workshop.yaml"))
	}

	b := newBaseline(t, "")
	b.write("workshop.yaml", mine)
	if b.ready.Source, err = b.a.Read(t.Context(), filepath.Join(b.dir, "workshop.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := b.a.Watch(t.Context(), b.ready, true, UpOptions{AcceptWatched: AcceptAll}); err != nil {
		t.Fatal(err)
	}
	b.write("workshop.yaml", mine+"# a worker's\n")
	b.a.AgreeSources = func(context.Context, []SourceRequest) (bool, error) { return true, nil }
	added, err := b.a.AddSource(t.Context(), o)
	if CodeOf(err) != CodeRefused || !strings.Contains(err.Error(), "(B8)") || added.Written {
		t.Errorf("%+v, %v", added, err)
	}
}

// The name of an import is the last part of its address.
func TestNamesOfImports(t *testing.T) {
	for _, c := range []struct{ source, want string }{
		{"git.example.org/acme/sast", "sast"},
		{"git.example.org/acme/sast.git", "sast"},
		{"git.example.org/acme/sast/", "sast"},
		{"git.example.org/acme/SAST@^2", "sast"},
		{"git.example.org/acme/sast.git@v1.0.0", "sast"},
		{"https://git.example.org/acme/workers//go/review", "review"},
		{"https://git.example.org/acme/workers.git//review@v1.0.0", "review"},
		{"ssh://git@git.example.org:2222/sast.git", "sast"},
		{"git+https://git.example.org/acme/sast", "sast"},
		{"oci://registry.example.org/acme/sast", "sast"},
		{"oci://registry.example.org/acme/sast@v1.4.2", "sast"},
		{"oci://localhost:5000/sast@^1", "sast"},
		{"git.example.org/acme/sast.workers", ""},
		{"git.example.org/acme/sast--workers", ""},
		{"oci://registry.example.org/acme/sast.workers", ""},
		{"git.example.org/acme/" + strings.Repeat("x", 64), ""},
	} {
		t.Run(c.source, func(t *testing.T) {
			line, err := sourceLine(AddOptions{Source: c.source})
			if c.want != "" && (err != nil || line.As != c.want) {
				t.Errorf("got %q, %v, want %s", line.As, err, c.want)
			}
			if c.want == "" && (CodeOf(err) != CodeUsage || !strings.Contains(strings.Join(Hints(err), ""), "--as NAME`")) {
				t.Errorf("got %q, %v, %v", line.As, err, Hints(err))
			}
		})
	}
}
