package kit

import (
	"debug/elf"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func file(data []byte) *fstest.MapFile { return &fstest.MapFile{Data: data} }

// moduleTree has a kernel's modules, one of each kind.
func moduleTree(t testing.TB) fstest.MapFS {
	return fstest.MapFS{
		"modules.builtin":                    file([]byte("kernel/lib/crc.ko\nkernel/fs/in-side.ko\n")),
		"kernel/net/top.ko":                  file(moduleFile("depends=mid-a,mid_b,crc", "softdep=pre: first absent post: later")),
		"kernel/net/mid-a.ko.zst":            file(packed(t, "zstd", moduleFile("depends=base"))),
		"kernel/drivers/mid_b.ko.gz":         file(packed(t, "gzip", moduleFile("depends=base,in_side"))),
		"kernel/lib/base.ko":                 file(moduleFile("depends=")),
		"kernel/lib/first.ko":                file(moduleFile("name=first")),
		"kernel/lib/later.ko":                file(moduleFile()),
		"kernel/lib/base.ko.sig":             file([]byte("no module")),
		"kernel/lib/incomplete.ko":           file(moduleFile("depends=not-there")),
		"kernel/lib/foreign.ko":              file(elfFile(elf.ET_REL, elf.EM_X86_64, nil, "vermagic=5.10.0 SMP")),
		"kernel/lib/arm.ko":                  file(elfFile(elf.ET_REL, elf.EM_AARCH64, nil, "vermagic="+release+" SMP")),
		"kernel/lib/cut.ko":                  file(moduleFile()[:100]),
		"kernel/lib/text.ko":                 file([]byte("a text")),
		"kernel/lib/damaged.ko.zst":          file([]byte("\x28\xb5\x2f\xfd and so on")),
		"kernel/lib/packed-otherwise.ko.zst": file([]byte("BZh91AY&SY")),
	}
}

// Modules come after those that they need; what the kernel has built in is left out.
func TestModules(t *testing.T) {
	for _, c := range []struct {
		wanted []string
		want   string
	}{
		{[]string{"top"}, "base mid_a mid_b first top"},
		{[]string{"mid_b", "top"}, "base mid_b mid_a first top"},
		{[]string{"base", "in_side", "base"}, "base"},
		{nil, ""},
	} {
		all, err := modules(moduleTree(t), release, c.wanted)
		var names []string
		for _, m := range all {
			names = append(names, m.name)
			if string(m.file[:4]) != elf.ELFMAG {
				t.Errorf("%s is not unpacked", m.name)
			}
		}
		if diff := cmp.Diff(c.want, strings.Join(names, " ")); diff != "" || err != nil {
			t.Errorf("%v: %v\n%s", c.wanted, err, diff)
		}
	}
}

// B60: modules that can't be loaded are one clear error.
func TestModulesAreRefused(t *testing.T) {
	for name, want := range map[string]string{
		"nothere":          "kernel " + release + ": no module nothere",
		"incomplete":       "module incomplete: it depends on not_there, which kernel " + release + " does not have",
		"foreign":          `module foreign: a module of kernel "5.10.0", want "` + release + `"`,
		"arm":              "module arm: ET_REL of EM_AARCH64, want ET_REL of EM_X86_64",
		"cut":              "module cut: EOF",
		"text":             "module text: not an ELF file",
		"damaged":          "module damaged: zstd: ",
		"packed_otherwise": "module packed_otherwise: compressed by bzip2",
	} {
		if all, err := modules(moduleTree(t), release, []string{"base", name}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %d modules, %v", name, len(all), err)
		}
	}
	_, err := modules(moduleTree(t), release, []string{"one", "base", "two"})
	if want := "kernel " + release + ": no module one, two"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	long := fstest.MapFS{}
	for i := range 200 {
		long["kernel/"+strings.Repeat("m", i+1)+".ko"] = file(moduleFile("depends=" + strings.Repeat("m", i+2)))
	}
	long["kernel/"+strings.Repeat("m", 201)+".ko"] = file(moduleFile())
	if _, err := modules(long, release, []string{"m"}); err == nil || !strings.HasSuffix(err.Error(), "more than 128 modules are needed") {
		t.Errorf("a long chain: got %v", err)
	}
}

// Modules that depend on each other, which the kernel's build refuses, end.
func TestModulesInACircle(t *testing.T) {
	tree := fstest.MapFS{
		"kernel/a.ko": file(moduleFile("depends=b")),
		"kernel/b.ko": file(moduleFile("depends=a")),
	}
	if all, err := modules(tree, release, []string{"a"}); len(all) != 2 || err != nil {
		t.Errorf("got %d modules, %v", len(all), err)
	}
}

func FuzzModule(f *testing.F) {
	f.Add(moduleFile("depends=a,b-c", "softdep=pre: d post: e"))
	f.Add(moduleFile()[:130])
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := readModinfo(b, release)
		for _, name := range append(m.depends, m.softly...) {
			if err == nil && (name == "" || strings.ContainsAny(name, "-,\x00")) {
				t.Errorf("a name %q", name)
			}
		}
	})
}
