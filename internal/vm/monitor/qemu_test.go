package monitor

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/llmdo/workshop/internal/vm/config"
)

// elfFile is an ELF file with a dynamic linker, which may be empty, and libraries.
func elfFile(machine elf.Machine, linker string, libraries ...string) []byte {
	le := binary.LittleEndian
	names := "\x00.dynamic\x00.dynstr\x00"
	var dynamic bytes.Buffer
	dynstr := "\x00"
	for _, l := range libraries {
		binary.Write(&dynamic, le, elf.Dyn64{Tag: int64(elf.DT_NEEDED), Val: uint64(len(dynstr))})
		dynstr += l + "\x00"
	}
	binary.Write(&dynamic, le, elf.Dyn64{})
	var progs []elf.Prog64
	if linker != "" {
		linker += "\x00"
		progs = []elf.Prog64{{Type: uint32(elf.PT_INTERP), Off: 64 + 56, Filesz: uint64(len(linker))}}
	}
	at := uint64(64 + 56*len(progs) + len(linker))
	dynAt, strAt, namesAt := at, at+uint64(dynamic.Len()), at+uint64(dynamic.Len()+len(dynstr))
	var out bytes.Buffer
	binary.Write(&out, le, elf.Header64{Ident: [16]byte{0x7f, 'E', 'L', 'F', 2, 1, 1}, Type: uint16(elf.ET_DYN), Machine: uint16(machine), Version: 1,
		Phoff: 64, Shoff: namesAt + uint64(len(names)), Ehsize: 64, Phentsize: 56, Phnum: uint16(len(progs)), Shentsize: 64, Shnum: 4, Shstrndx: 3})
	for _, p := range progs {
		binary.Write(&out, le, p)
	}
	out.WriteString(linker)
	out.Write(dynamic.Bytes())
	out.WriteString(dynstr + names)
	for _, s := range []elf.Section64{
		{},
		{Name: 1, Type: uint32(elf.SHT_DYNAMIC), Off: dynAt, Size: uint64(dynamic.Len()), Link: 2, Entsize: 16},
		{Name: 10, Type: uint32(elf.SHT_STRTAB), Off: strAt, Size: uint64(len(dynstr))},
		{Type: uint32(elf.SHT_STRTAB), Off: namesAt, Size: uint64(len(names))},
	} {
		binary.Write(&out, le, s)
	}
	return out.Bytes()
}

// system is one with QEMU.
func system() fstest.MapFS {
	const lib = "usr/lib/x86_64-linux-gnu/"
	file := func(data []byte) *fstest.MapFile { return &fstest.MapFile{Data: data} }
	return fstest.MapFS{
		"usr/bin/qemu-system-x86_64":         file(elfFile(elf.EM_X86_64, "/lib64/ld-linux-x86-64.so.2", "liba.so.1", "libc.so.6")),
		lib + "liba.so.1":                    file(elfFile(elf.EM_X86_64, "", "libb.so", "libc.so.6")),
		"usr/lib64/libb.so":                  file(elfFile(elf.EM_X86_64, "", "liba.so.1")),
		lib + "libc.so.6":                    file(elfFile(elf.EM_X86_64, "", "ld-linux-x86-64.so.2")),
		lib + "ld-linux-x86-64.so.2":         file(elfFile(elf.EM_X86_64, "")),
		lib + "unused.so":                    file(elfFile(elf.EM_X86_64, "")),
		"lib64/ld-linux-x86-64.so.2":         file(elfFile(elf.EM_X86_64, "")),
		lib + "qemu/" + tcgModule:            file(elfFile(elf.EM_X86_64, "", "libc.so.6")),
		"usr/share/qemu/pvh.bin":             file([]byte("pvh")),
		"usr/share/seabios/pvh.bin":          file([]byte("another")),
		"usr/share/seabios/bios-microvm.bin": file([]byte("bios")),
	}
}

func TestClosure(t *testing.T) {
	const lib = "/usr/lib/x86_64-linux-gnu/"
	want := []string{
		"/lib64/ld-linux-x86-64.so.2", "/usr/bin/qemu-system-x86_64", lib + "ld-linux-x86-64.so.2", lib + "liba.so.1", lib + "libc.so.6", "/usr/lib64/libb.so",
		"/usr/share/qemu/pvh.bin", "/usr/share/seabios/bios-microvm.bin",
	}
	kvm, err := FindClosure(system(), config.KVM)
	if diff := cmp.Diff(want, kvm.Files); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	tcg, err := FindClosure(system(), config.TCG)
	if len(tcg.Files) != len(want)+1 || !strings.Contains(strings.Join(tcg.Files, " "), "qemu/"+tcgModule) || tcg.SHA256 == kvm.SHA256 || tcg.Size <= kvm.Size || err != nil {
		t.Errorf("with emulation: %+v, %v", tcg, err)
	}
	without := system()
	delete(without, "usr/lib/x86_64-linux-gnu/qemu/"+tcgModule)
	if tcg, err := FindClosure(without, config.TCG); tcg.SHA256 != kvm.SHA256 || err != nil { // built in
		t.Errorf("without modules: %+v, %v", tcg, err)
	}
	for name := range system() {
		changed := system()
		changed[name].Data = append(changed[name].Data, 0)
		c, err := FindClosure(changed, config.KVM)
		if used := strings.Contains(strings.Join(kvm.Files, "\n")+"\n", "/"+name+"\n"); (c.SHA256 != kvm.SHA256) != used || err != nil {
			t.Errorf("with another %s the hash is the same: %v, %v", name, c.SHA256 == kvm.SHA256, err)
		}
	}
}

// B60, B46: what can't be bound as it is, is one clear error.
func TestClosureIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		path string
		data []byte // nil: removed
		want string
	}{
		"no QEMU":             {"usr/bin/qemu-system-x86_64", nil, "open usr/bin/qemu-system-x86_64: file does not exist"},
		"no library":          {"usr/lib64/libb.so", nil, "liba.so.1: libb.so is in none of /usr/lib/x86_64-linux-gnu, "},
		"no firmware":         {"usr/share/seabios/bios-microvm.bin", nil, "bios-microvm.bin is in none of /usr/share/qemu, "},
		"no linker":           {"lib64/ld-linux-x86-64.so.2", nil, "open lib64/ld-linux-x86-64.so.2: file does not exist"},
		"a script":            {"usr/bin/qemu-system-x86_64", []byte("#!/bin/sh\n" + strings.Repeat("x", 99)), "/usr/bin/qemu-system-x86_64: bad magic number"},
		"of arm64":            {"usr/lib64/libb.so", elfFile(elf.EM_AARCH64, ""), "libb.so: for EM_AARCH64, want EM_X86_64"},
		"truncated":           {"usr/lib64/libb.so", elfFile(elf.EM_X86_64, "", "liba.so.1")[:100], "libb.so: EOF"},
		"a library by a path": {"usr/lib64/libb.so", elfFile(elf.EM_X86_64, "", "/tmp/lib.so"), `libb.so: library "/tmp/lib.so": a path, want a name`},
		"one above":           {"usr/lib64/libb.so", elfFile(elf.EM_X86_64, "", "../../../tmp/lib.so"), `libb.so: library "../../../tmp/lib.so": a path, want a name`},
		"a linker elsewhere":  {"usr/bin/qemu-system-x86_64", elfFile(elf.EM_X86_64, "/tmp/ld.so"), `dynamic linker "/tmp/ld.so", want one in `},
	} {
		t.Run(name, func(t *testing.T) {
			files := system()
			if files[c.path].Data = c.data; c.data == nil {
				delete(files, c.path)
			}
			if got, err := FindClosure(files, config.KVM); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %d files, %v, want %q", len(got.Files), err, c.want)
			}
		})
	}
	many := system()
	for i := range 300 {
		name := "usr/lib/" + strings.Repeat("l", i+1)
		many[name] = &fstest.MapFile{Data: elfFile(elf.EM_X86_64, "", strings.Repeat("l", i+2))}
	}
	many["usr/lib64/libb.so"].Data = elfFile(elf.EM_X86_64, "", "l")
	if _, err := FindClosure(many, config.KVM); err == nil || !strings.HasSuffix(err.Error(), "more than 256 files are needed") {
		t.Errorf("a long chain: %v", err)
	}
}

func TestMissingQEMU(t *testing.T) {
	for manager, want := range map[string]string{
		"usr/bin/apt-get": "apt-get install --no-install-recommends qemu-system-x86",
		"usr/bin/dnf":     "dnf install qemu-system-x86-core",
		"usr/bin/other":   "",
	} {
		m, ok := errors.AsType[*MissingError](missingQEMU(fstest.MapFS{manager: {}}))
		if !ok || m.Root != want || m.Hint == "" {
			t.Errorf("%s: got %+v, want the line %q", manager, m, want)
		}
	}
	if err := missingQEMU(system()); err != nil {
		t.Error(err)
	}
}

func TestVersion(t *testing.T) {
	for text, want := range map[string]string{
		"QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7)\nCopyright": "7.2.22",
		"QEMU emulator version 10.0.2 (qemu-10.0.2-1.fc43)\n":           "10.0.2",
		"QEMU emulator version 7.2\n":                                   "7.2",
	} {
		if got, err := parseVersion(text); got != want || err != nil {
			t.Errorf("%q: got %q, %v, want %q", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"QEMU emulator version 7.1.99\n":             "QEMU 7.1.99, want 7.2 or later",
		"QEMU emulator version 6.2.0 (Debian 1:6.2)": "QEMU 6.2.0, want 7.2 or later",
		"": "no version in", "qemu: 9.0": "no version in", "QEMU emulator version 7": "no version in", "QEMU emulator version 99999999999999999999.1": "no version in",
	} {
		if got, err := parseVersion(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %q, %v, want %q", text, got, err, want)
		}
	}
}

// What a guest writes to its console can't change the terminal that it is shown on.
func TestTail(t *testing.T) {
	var last tail
	for range 100 {
		last.Write([]byte("a line\r\n"))
	}
	last.Write([]byte(strings.Repeat("x", 100) + "\x1b[2J\x9b\xff\u202e end\r\n"))
	got := last.String()
	if want := strings.Repeat("a line\n", 19) + strings.Repeat("x", 100) + "\ufffd[2J\ufffd\ufffd\ufffd end"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	last.Write([]byte("[1.0] Kernel panic - not syncing: why\n" + strings.Repeat("[1.0] its trace\n", 50)))
	if got := last.String(); !strings.HasSuffix(got, " end\n[1.0] Kernel panic - not syncing: why") {
		t.Errorf("after a panic: %q", got)
	}
	last.Write(make([]byte, 1<<20))
	last.Write([]byte("\nthe end"))
	if got := last.String(); len(got) > 4*tailBytes || !strings.HasSuffix(got, "\nthe end") {
		t.Errorf("got %d bytes: …%q", len(got), got[max(0, len(got)-20):])
	}
}

func FuzzClosure(f *testing.F) {
	f.Add(elfFile(elf.EM_X86_64, "/lib64/ld-linux-x86-64.so.2", "liba.so.1"))
	f.Add(elfFile(elf.EM_X86_64, "", "libb.so", "libc.so.6")[:200])
	f.Fuzz(func(t *testing.T, b []byte) {
		files := system()
		files["usr/bin/qemu-system-x86_64"].Data = b
		c, err := FindClosure(files, config.TCG)
		for _, name := range c.Files {
			if err == nil && files[name[1:]] == nil {
				t.Errorf("a file %q", name)
			}
		}
	})
}
