package workshop

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/hostpath"
)

// Any bytes as workshop.yaml: no panic, no hang, either a workshop or errors,
// complete diagnostics in order of position (B60), and no mount that B7
// refuses.
func FuzzLoad(f *testing.F) {
	for _, kind := range []string{"valid", "invalid"} {
		paths, _ := filepath.Glob(filepath.Join("testdata", kind, "*.yaml"))
		for _, p := range paths {
			data, err := os.ReadFile(p)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		begin := time.Now()
		w, l := Load(t.Context(), singleFile(data), "workshop.yaml", testOptions())
		if d := time.Since(begin); d > 10*time.Second {
			t.Fatalf("took %s", d)
		}
		if (w == nil) != l.HasErrors() {
			t.Fatalf("workshop %v with diagnostics %v", w, l)
		}
		checkList(t, l)
		text(t, singleFile(data), l) // the writer takes every range
		if w != nil {
			checkLoaded(t, w)
		}
	})
}

// checkLoaded holds for every workshop that Load returns.
func checkLoaded(t *testing.T, w *Workshop) {
	t.Helper()
	if !nameRE().MatchString(w.Name.V) || len(w.Workers) == 0 {
		t.Errorf("name %q, %d workers", w.Name.V, len(w.Workers))
	}
	for _, wk := range w.Workers {
		c := wk.Container
		if (c.Image.V == "") == (c.Build == nil) {
			t.Errorf("image %q and build %v", c.Image.V, c.Build)
		}
		if c.Resources.Memory.V <= 0 || c.Resources.CPU.V <= 0 || c.Resources.PIDs.V <= 0 || c.Tmp.V <= 0 {
			t.Errorf("no limit in %+v", c.Resources)
		}
		for _, m := range c.Mounts {
			checkMount(t, m)
		}
	}
}

func checkMount(t *testing.T, m Mount) {
	t.Helper()
	if !strings.HasPrefix(m.Target.V, "/") || path.Clean(m.Target.V) != m.Target.V || m.Target.V == "/" {
		t.Errorf("target %q", m.Target.V)
	}
	if strings.HasPrefix(m.Source.V, "/") {
		if why := hostpath.For(hostpath.Caller{Homes: []string{"/home/me"}}).Why(path.Clean(m.Source.V)); why != "" {
			t.Errorf("the source %q %s (B7)", m.Source.V, why)
		}
	}
	if m.ReadWrite && (m.Copy || len(m.Exclude) > 0) {
		t.Errorf("a writable copy: %+v (B9)", m)
	}
	if !m.OutsideProject && (strings.HasPrefix(m.Source.V, "/") || strings.HasPrefix(path.Clean(m.Source.V)+"/", "../")) {
		t.Errorf("the source %q is outside of the project", m.Source.V)
	}
}

// Any text as the short form of a mount.
func FuzzMount(f *testing.F) {
	for _, s := range []string{
		"./src:/workspace/src:ro", "./src", ":", "::", "a:b", "/:/x", "~/.ssh/id_ed25519:/k", "~:/k", "./a/../..:/x", "${SET}:/x", "${SRC:-./src}:/workspace:ro",
		"./a$$b:/c", "./a:/etc/passwd", "./a:/b/../c", "/var/run/docker.sock:/s", "./\u202e:/x", "./a:/b:rw", "./a:/b:z",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var m Mount
		d, n := testScalar(s)
		ok := m.decode(d, n, &field{keyName: "mounts"})
		if ok != (d.errors == 0) {
			t.Fatalf("ok = %v with %v", ok, d.problems.list)
		}
		if ok {
			checkMount(t, m)
		}
	})
}

// testScalar is a decoder and a scalar node as if s stood in a file.
func testScalar(s string) (*decoder, *node) {
	src := newSource("workshop.yaml", []byte(s))
	d := &decoder{
		src: src, problems: &problems{}, home: "/home/me", dir: ".", fsys: emptyFS{},
		vars: &variables{used: map[string]Variable{}, lookup: func(name string) (setting, bool) {
			v, ok := testEnv[name]
			return setting{v, OfUser}, ok
		}},
	}
	return d, &node{kind: scalarNode, text: s, tag: "!!str", rng: src.span(0, len(s))}
}

type emptyFS struct{}

func (emptyFS) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// Any text as a size: what is read is never negative or beyond 1 PiB, and its
// text reads the same again.
func FuzzSize(f *testing.F) {
	for _, s := range []string{"0", "1", "512M", "2G", "1.5g", "64mb", "64MiB", "-1", "1e9", "9999999P", "0x10", "inf", "nan", ".5k", "1 G", "99999999999999999999", "1.", "1kb", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := ParseSize(s)
		if err != nil {
			if n != 0 {
				t.Errorf("ParseSize(%q) = %d with %v", s, n, err)
			}
			return
		}
		if n < 0 || n > maxSize {
			t.Fatalf("ParseSize(%q) = %d", s, n)
		}
		if again, err := ParseSize(n.String()); err != nil || again != n {
			t.Errorf("ParseSize(%q) = %d, its text %q gives %d, %v", s, n, n, again, err)
		}
	})
}
