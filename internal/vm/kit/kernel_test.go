package kit

import (
	"bytes"
	"compress/gzip"
	"debug/elf"
	"encoding/binary"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/llmdo/workshop/internal/vm/report"
)

// packed compresses data as the build of Linux does.
func packed(t testing.TB, format string, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	var w io.WriteCloser
	switch format {
	case "gzip":
		w = gzip.NewWriter(&out)
	case "zstd":
		w, _ = zstd.NewWriter(&out)
	case "lz4":
		l := lz4.NewWriter(&out)
		if err := l.Apply(lz4.LegacyOption(true)); err != nil {
			t.Fatal(err)
		}
		w = l
	case "xz": // xz --check=crc32 --x86 --lzma2=dict=32MiB
		b, err := os.ReadFile("testdata/vmlinux.xz")
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	w.Write(data)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// A kernel is unpacked from whatever its distribution compressed it by.
func TestKernelIsUnpacked(t *testing.T) {
	want := kernelFile()
	images := map[string][]byte{"ELF": want}
	for _, format := range []string{"gzip", "xz", "zstd", "lz4"} {
		images[format] = bzImage(packed(t, format, want), len(want))
	}
	for name, image := range images {
		t.Run(name, func(t *testing.T) {
			got, err := vmlinux(image)
			if err != nil || !bytes.Equal(got, want) {
				t.Fatalf("got %d bytes, %v, want %d", len(got), err, len(want))
			}
			k, err := describe(got)
			if diff := cmp.Diff(report.Kernel{Release: release, Build: build, Date: time.Date(2026, 11, 16, 0, 0, 0, 0, time.UTC)}, k); diff != "" || err != nil {
				t.Errorf("%v\n%s", err, diff)
			}
		})
	}
}

func TestBuildDate(t *testing.T) {
	for build, want := range map[string]string{
		build: "2026-11-16",
		"#52-Ubuntu SMP PREEMPT_DYNAMIC Thu Dec  5 13:09:44 UTC 2024": "2024-12-05",
		"#1 SMP":               "0001-01-01",
		"#1 SMP (of some day)": "0001-01-01",
	} {
		if got := buildDate(build).Format(time.DateOnly); got != want {
			t.Errorf("%s: got %s, want %s", build, got, want)
		}
	}
}

// B60: what isn't a kernel of ours is one clear error.
func TestKernelIsRefused(t *testing.T) {
	whole := kernelFile()
	image := bzImage(packed(t, "zstd", whole), len(whole))
	changed := func(at int, b ...byte) []byte {
		c := bytes.Clone(image)
		copy(c[at:], b)
		return c
	}
	for _, c := range []struct {
		name  string
		image []byte
		want  string
	}{
		{"empty", nil, "not an x86 kernel image (bzImage or ELF)"},
		{"text", []byte(strings.Repeat("a text ", 200)), "not an x86 kernel image (bzImage or ELF)"},
		{"of arm64", append([]byte("MZ"), make([]byte, 4096)...), "another architecture"},
		{"old", changed(0x206, 0x07, 0x02), "boot protocol 2.07, want 2.08 or later"},
		{"truncated", image[:len(image)/2], "truncated: "},
		{"lengths beyond the file", changed(0x24c, 0xff, 0xff, 0xff, 0xff), "truncated: "},
		{"offset beyond the file", changed(0x248, 0xff, 0xff, 0xff, 0xff), "truncated: "},
		{"no payload", changed(0x24c, 0, 0, 0, 0), "truncated: "},
		{"another size", bzImage(packed(t, "zstd", whole), len(whole)+1), "want "},
		{"damaged", func() []byte {
			c := bytes.Clone(image)
			for i := 3*512 + 40; i < 3*512+80; i++ {
				c[i] ^= 0x55
			}
			return c
		}(), "zstd: "},
		{"bzip2", bzImage([]byte("BZh91AY&SY"), 9), "compressed by bzip2"},
		{"nothing known", bzImage([]byte("what is it"), 9), "not compressed by gzip, xz, zstd or lz4"},
		{"ELF of arm64", elfFile(elf.ET_EXEC, elf.EM_AARCH64, pvh), "ET_EXEC of EM_AARCH64, want ET_EXEC of EM_X86_64"},
		{"a module", moduleFile(), "ET_REL of EM_X86_64, want ET_EXEC"},
		{"without PVH", append(elfFile(elf.ET_EXEC, elf.EM_X86_64, note("Xen", 17, nil)), version...), "no PVH entry (CONFIG_PVH)"},
		{"without a version", elfFile(elf.ET_EXEC, elf.EM_X86_64, pvh), "no version in it"},
		{"half an ELF file", elfFile(elf.ET_EXEC, elf.EM_X86_64, pvh)[:80], "EOF"},
	} {
		t.Run(c.name, func(t *testing.T) {
			file, err := vmlinux(c.image)
			if err == nil {
				_, err = describe(file)
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// B60: a small file that unpacks to a large one costs no more than the limit.
func TestUnpackIsBounded(t *testing.T) {
	for _, format := range []string{"gzip", "zstd", "lz4"} {
		b := packed(t, format, make([]byte, 1<<20))
		if _, err := unpack(b, 1<<20); err != nil {
			t.Errorf("%s: %v", format, err)
		}
		if out, err := unpack(b, 1<<20-1); err == nil || len(out) > 0 {
			t.Errorf("%s: got %d bytes, %v", format, len(out), err)
		}
	}
}

func FuzzKernel(f *testing.F) {
	whole := kernelFile()
	for _, format := range []string{"gzip", "xz", "zstd", "lz4"} {
		f.Add(bzImage(packed(f, format, whole), len(whole)))
	}
	f.Add(whole)
	f.Add(whole[:200])
	f.Fuzz(func(t *testing.T, image []byte) {
		file, err := vmlinux(image)
		if err != nil {
			return
		}
		if k, err := describe(file); err == nil && (k.Release == "" || k.Build == "") {
			t.Errorf("accepted: %+v", k)
		}
	})
}

// The size of a payload that claims to be 4 GiB is no reason to take as much.
func FuzzUnpack(f *testing.F) {
	for _, format := range []string{"gzip", "xz", "zstd", "lz4"} {
		f.Add(packed(f, format, kernelFile()))
	}
	f.Add(binary.LittleEndian.AppendUint32([]byte("\x02\x21\x4c\x18"), 1<<32-1))
	f.Fuzz(func(t *testing.T, b []byte) {
		if out, err := unpack(b, 1<<20); len(out) > 1<<20 || err != nil && out != nil {
			t.Errorf("got %d bytes, %v", len(out), err)
		}
	})
}
