package kit

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/cavaliergopher/cpio"
	"github.com/google/go-cmp/cmp"

	"github.com/llmdo/workshop/internal/vm/report"
)

// tree is a package of Debian's, unpacked.
func tree(t testing.TB) fstest.MapFS {
	kernel := kernelFile()
	modules := "lib/modules/" + release
	all := fstest.MapFS{
		"boot/vmlinuz-" + release:                        file(bzImage(packed(t, "lz4", kernel), len(kernel))),
		"usr/share/doc/linux-image-" + release + "/copy": file(nil),
		modules + "/modules.builtin":                     file([]byte("kernel/drivers/char/virtio_console.ko\n")),
		modules + "/kernel/lib/base.ko":                  file(moduleFile()),
	}
	for _, name := range wanted {
		if name != "virtio_console" {
			all[modules+"/kernel/"+name+".ko"] = file(moduleFile("depends=base"))
		}
	}
	return all
}

func made(t testing.TB, files fstest.MapFS) *Made {
	t.Helper()
	s, err := Find(files, "")
	if err != nil {
		t.Fatal(err)
	}
	m, err := Make(s)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// A kit has the kernel and the modules in order, and the same input is the same kit.
func TestKit(t *testing.T) {
	parent := t.TempDir()
	m := made(t, tree(t))
	dir, err := m.Write(parent)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Open(dir)
	if diff := cmp.Diff(m.Kit, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	if want := "linux-image-" + release; got.Kernel.Package != want {
		t.Errorf("package %q, want %q", got.Kernel.Package, want)
	}
	if kernel, err := os.ReadFile(filepath.Join(dir, Vmlinux)); !bytes.Equal(kernel, kernelFile()) {
		t.Errorf("%d bytes of kernel, %v", len(kernel), err)
	}
	archive, err := os.ReadFile(filepath.Join(dir, Initramfs))
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, name := range []string{"modules", "dev", "proc", "sys", "run", "tmp"} {
		want = append(want, "040755 "+name)
	}
	want = append(want, "0100444 modules/000-base.ko")
	for i, name := range slices.DeleteFunc(slices.Clone(wanted), func(s string) bool { return s == "virtio_console" }) {
		want = append(want, "0100444 modules/"+string([]byte{'0', byte('0' + (i+1)/10), byte('0' + (i+1)%10)})+"-"+name+".ko")
	}
	if diff := cmp.Diff(want, listed(t, archive)); diff != "" {
		t.Error(diff)
	}
	if again := made(t, tree(t)); again.Hash() != m.Hash() {
		t.Errorf("hash %s, then %s", m.Hash(), again.Hash())
	}
	files := tree(t)
	files["lib/modules/"+release+"/kernel/erofs.ko"] = file(moduleFile("depends="))
	if other := made(t, files); other.Hash() == m.Hash() {
		t.Error("a kit with another module has the same hash")
	}
	if entries, err := os.ReadDir(parent); len(entries) != 1 || err != nil {
		t.Errorf("%d entries beside it, %v", len(entries), err)
	}
}

// listed are the modes and names of an archive's files.
func listed(t testing.TB, archive []byte) (names []string) {
	for r := cpio.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if err == io.EOF {
			return names
		} else if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Mode.String()+" "+h.Name)
	}
}

// What was changed in a kit is found, and writing it again mends it.
func TestKitIsCompared(t *testing.T) {
	m := made(t, tree(t))
	parent := t.TempDir()
	dir, err := m.Write(parent)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(name string) error{
		Vmlinux: func(name string) error { return os.Truncate(name, 3) },
		Initramfs: func(name string) error {
			return os.WriteFile(name, bytes.Repeat([]byte("x"), int(m.Initramfs.Size)), 0o644)
		},
		report.KitFile: func(name string) error { return os.WriteFile(name, []byte("{}"), 0o644) },
	} {
		for kind, change := range map[string]func(name string) error{"changed": change, "removed": os.Remove, "made a directory": func(name string) error {
			return errors.Join(os.Remove(name), os.Mkdir(name, 0o755))
		}} {
			path := filepath.Join(dir, name)
			if err := errors.Join(os.Chmod(path, 0o644), change(path)); err != nil {
				t.Fatal(err)
			}
			if _, err := Open(dir); err == nil || !strings.HasPrefix(err.Error(), "kit "+dir+": ") {
				t.Errorf("%s %s: got %v", name, kind, err)
			}
			if again, err := m.Write(parent); again != dir || err != nil {
				t.Errorf("%s %s: written to %s, %v", name, kind, again, err)
			}
			if _, err := Open(dir); err != nil {
				t.Errorf("%s %s and written again: %v", name, kind, err)
			}
		}
	}
	moved := filepath.Join(parent, "moved")
	if err := os.Rename(dir, moved); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(moved); err == nil || !strings.Contains(err.Error(), "want that of its directory's name") {
		t.Errorf("by another name: got %v", err)
	}
}

func TestFind(t *testing.T) {
	add := func(files fstest.MapFS, names ...string) fstest.MapFS {
		for _, name := range names {
			files[name] = file(nil)
		}
		return files
	}
	for _, c := range []struct {
		name, release string
		files         fstest.MapFS
		image, want   string
	}{
		{"nothing", "", fstest.MapFS{}, "", "no kernel with modules: no boot/vmlinuz-RELEASE beside lib/modules/RELEASE/kernel"},
		{"no modules", "", add(fstest.MapFS{}, "boot/vmlinuz-6.1"), "", "no kernel with modules: "},
		{"modules of another", "", add(fstest.MapFS{}, "boot/vmlinuz-6.1", "lib/modules/6.2/kernel/a.ko"), "", "no kernel with modules: "},
		{"Debian", "", add(fstest.MapFS{}, "boot/vmlinuz-6.1", "lib/modules/6.1/kernel/a.ko"), "boot/vmlinuz-6.1", ""},
		{"Fedora", "", add(fstest.MapFS{}, "usr/lib/modules/6.1/vmlinuz", "usr/lib/modules/6.1/kernel/a.ko"), "usr/lib/modules/6.1/vmlinuz", ""},
		{"several", "", add(fstest.MapFS{}, "lib/modules/6.2/vmlinuz", "lib/modules/6.2/kernel/a", "lib/modules/6.1/vmlinuz", "lib/modules/6.1/kernel/a"), "", "several kernels: 6.1, 6.2"},
		{"one of several", "6.2", add(fstest.MapFS{}, "lib/modules/6.2/vmlinuz", "lib/modules/6.2/kernel/a", "lib/modules/6.1/vmlinuz", "lib/modules/6.1/kernel/a"), "lib/modules/6.2/vmlinuz", ""},
		{"another", "6.3", add(fstest.MapFS{}, "lib/modules/6.2/vmlinuz", "lib/modules/6.2/kernel/a"), "", "no kernel 6.3, only 6.2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := Find(c.files, c.release)
			if s.image != c.image {
				t.Errorf("got %q, want %q", s.image, c.image)
			}
			if got := ""; err != nil {
				if got = err.Error(); c.want == "" || !strings.HasPrefix(got, c.want) {
					t.Errorf("got %q, want %q", got, c.want)
				}
			} else if c.want != "" {
				t.Errorf("no error, want %q", c.want)
			}
		})
	}
	renamed := tree(t)
	renamed["boot/vmlinuz-7.0"] = renamed["boot/vmlinuz-"+release]
	renamed["lib/modules/7.0/kernel/a"] = file(nil)
	s, err := Find(renamed, "7.0")
	if err == nil {
		_, err = Make(s)
	}
	if want := "boot/vmlinuz-7.0: kernel " + release + ", want 7.0"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
