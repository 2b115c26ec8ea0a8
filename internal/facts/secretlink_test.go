package facts

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/workshop"
)

// B7, B45: a worker that writes in the project puts something else in the place
// of a secret's file, after the workshop's file was looked at.
func TestSecretReplaced(t *testing.T) {
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "ca.pem"), []byte("PRIVATE"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, plant := range map[string]func(keys string) error{
		"a link to a file of the caller's": func(keys string) error {
			return os.Symlink(filepath.Join(outside, "ca.pem"), filepath.Join(keys, "ca.pem"))
		},
		"a link above it": func(keys string) error { return errors.Join(os.Remove(keys), os.Symlink(outside, keys)) },
		"a FIFO":          func(keys string) error { return syscall.Mkfifo(filepath.Join(keys, "ca.pem"), 0o600) },
		"":                func(keys string) error { return os.WriteFile(filepath.Join(keys, "ca.pem"), []byte("CA"), 0o600) },
	} {
		for _, absolute := range []bool{false, true} {
			dir := t.TempDir()
			keys := filepath.Join(dir, "keys")
			err := errors.Join(os.Mkdir(keys, 0o755), plant(keys))
			if err != nil {
				t.Fatal(err)
			}
			p := "./keys/ca.pem"
			if absolute {
				p = filepath.Join(dir, p)
			}
			c := &collector{o: &Options{Workshop: &workshop.Workshop{}}}
			c.facts.ProjectDir = dir
			done := make(chan error, 1)
			go func() {
				f, err := c.openSecret(p)
				if err == nil {
					defer f.Close()
				}
				done <- err
			}()
			select {
			case err = <-done:
			case <-time.After(10 * time.Second):
				t.Fatalf("%s: it hangs", name)
			}
			if link := strings.HasPrefix(name, "a link"); link != (err != nil) || link && os.IsNotExist(err) {
				t.Errorf("%s, absolute %v: %v", name, absolute, err)
			}
		}
	}
}

// B45: the same in a directory outside of the project that a worker writes to;
// elsewhere a link is the caller's own.
func TestSecretReplacedOutside(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(os.Mkdir(at("project"), 0o755), os.Mkdir(at("shared"), 0o755), os.Mkdir(at("keys"), 0o755), os.Symlink("shared", at("link")),
		os.WriteFile(at("id"), []byte("PRIVATE"), 0o600), os.Symlink("../id", at("shared/planted")), os.Symlink("../id", at("keys/mine")),
		os.WriteFile(at("shared/ca"), []byte("CA"), 0o600), os.Symlink("ca", at("shared/current"))); err != nil {
		t.Fatal(err)
	}
	for _, source := range []string{"../shared", at("shared"), "../link", at("link")} {
		mount := workshop.Mount{ReadWrite: true, OutsideProject: true}
		mount.Source.V = source
		w := &workshop.Workshop{Workers: []workshop.Worker{{}}}
		w.Workers[0].Container.Mounts = []workshop.Mount{mount}
		c := &collector{o: &Options{Workshop: w}}
		c.facts.ProjectDir, c.facts.Sources = at("project"), map[string]compose.SourceFacts{source: {Dir: true, Real: at("shared")}}
		for p, want := range map[string]bool{
			"../shared/ca": true, "../shared/current": true, "../shared/planted": false, at("shared/planted"): false, "../keys/mine": true, at("keys/mine"): true,
			filepath.Join(c.abs(source), "ca"): true, filepath.Join(c.abs(source), "planted"): false,
		} {
			f, err := c.openSecret(p)
			if err == nil {
				f.Close()
			}
			if (err == nil) != want {
				t.Errorf("%s, with %s writable: %v", p, source, err)
			}
		}
	}
}

// B7, B45: a link of the project leads into a directory that a worker writes to, and the
// worker makes it lead to another file of the project.
func TestSecretByALinkOfTheProject(t *testing.T) {
	for name, tt := range map[string]struct {
		plant map[string]string // links, by name
		p     string
		want  string // empty: refused
	}{
		"as it was":                   {map[string]string{"out/data": "real"}, "./data/k", "value"},
		"nothing planted":             {nil, "./out/real/k", "value"},
		"a directory replaced":        {map[string]string{"out/data": "../private"}, "./data/k", ""},
		"the file replaced":           {map[string]string{"out/data": "real", "out/real/k": "../../private/k"}, "./data/k", ""},
		"by way of a link of the way": {map[string]string{"out/data": "real/../../private"}, "./data/k", ""},
		"in the mount":                {map[string]string{"out/data": "../private"}, "./out/data/k", ""},
		"an absolute link":            {map[string]string{"out/data": "/etc"}, "./data/hostname", ""},
		"control: not by the mount":   {map[string]string{"out/data": "../private"}, "./keys/k", "secret"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			write(t, dir, "out/real/k", "value")
			write(t, dir, "private/k", "secret")
			symlink(t, "out/data", filepath.Join(dir, "data"))
			symlink(t, "private", filepath.Join(dir, "keys"))
			for link, to := range tt.plant {
				_ = os.Remove(filepath.Join(dir, link))
				symlink(t, to, filepath.Join(dir, link))
			}
			mount := workshop.Mount{ReadWrite: true}
			mount.Source.V = "./out"
			w := &workshop.Workshop{Workers: []workshop.Worker{{}}}
			w.Workers[0].Container.Mounts = []workshop.Mount{mount}
			c := &collector{o: &Options{Workshop: w}}
			c.facts.ProjectDir, c.facts.Sources = dir, map[string]compose.SourceFacts{"./out": {Dir: true, Real: filepath.Join(dir, "out")}}
			s := &workshop.Secret{Name: "k"}
			s.File.V = tt.p
			if got, err := c.secretValue(s); string(got) != tt.want || (err != nil) != (tt.want == "") {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}
