package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmdo/workshop/internal/source"
)

// B43: what a worker put in the place of the vendor directory leads to nothing that is
// written or removed.
func TestVendorPlanted(t *testing.T) {
	for _, c := range []struct{ name, link, to, kept string }{
		{"the project itself", source.VendorDir, "..", "src/main.go"},
		{"a directory of it", source.VendorDir, "../src", "src/main.go"},
		{"the directory above", ".workshop", "src", "src/_vendor/x"},
		{"elsewhere", source.VendorDir, "../../home", "../home/x"},
		{"nothing", source.VendorDir, "none", "src/main.go"},
	} {
		for _, sources := range []bool{true, false} {
			t.Run(c.name, func(t *testing.T) {
				s := newShared(t)
				if sources {
					s.lock(LockOptions{})
				} else {
					s.write("workshop.yaml", "workshop: {name: app, container: {image: host}, workers: [{name: own, tools: [], instructions: x}]}\n")
				}
				s.write(c.kept, "kept\n")
				link := filepath.Join(s.env.Dir, c.link)
				if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.Symlink(c.to, link); err != nil {
					t.Fatal(err)
				}
				for _, check := range []bool{true, false} {
					if v, err := s.env.Vendor(t.Context(), check); err == nil {
						t.Errorf("check %v: %+v", check, v)
					}
				}
				if s.read(c.kept) != "kept\n" || !Exists(filepath.Join(s.env.Dir, "workshop.yaml")) {
					t.Error("something is gone")
				}
				if err := os.Remove(link); err != nil {
					t.Fatal(err)
				}
				_, err := s.env.Vendor(t.Context(), false)
				s.fails("without the link", err, 0, "")
				s.write(source.VendorDir+"/old/x", "")
				v, err := s.env.Vendor(t.Context(), false)
				if err != nil || len(v.Removed) != 1 || Exists(filepath.Join(s.env.Dir, source.VendorDir, "old")) {
					t.Errorf("%+v, %v", v, err)
				}
			})
		}
	}
}

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
