package kit

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"regexp"
	"sync"
	"time"

	"github.com/llmdo/workshop/internal/vm/report"
)

// Limits of a kernel's image and of what it unpacks to, in bytes. Debian's are 14 and 66 MB.
const (
	maxImage   = 64 << 20
	maxVmlinux = 256 << 20
)

// vmlinux returns the ELF file of a kernel's image: an ELF file itself or a bzImage, whose
// header says where the compressed file is (Documentation/arch/x86/boot.rst of Linux).
func vmlinux(image []byte) ([]byte, error) {
	if bytes.HasPrefix(image, []byte(elf.ELFMAG)) {
		return image, nil
	}
	const (
		setupSects, magic, version, payloadOffset, payloadLength = 0x1f1, 0x202, 0x206, 0x248, 0x24c
		header                                                   = 0x250
		withPayload                                              = 0x208 // the protocol's version that has the two
	)
	if len(image) < header || string(image[magic:magic+4]) != "HdrS" {
		if bytes.HasPrefix(image, []byte("MZ")) {
			return nil, errors.New("not an x86 kernel image: another architecture, or a unified kernel image")
		}
		return nil, errors.New("not an x86 kernel image (bzImage or ELF)")
	}
	if v := binary.LittleEndian.Uint16(image[version:]); v < withPayload {
		return nil, fmt.Errorf("boot protocol %d.%02d, want 2.08 or later", v>>8, v&0xff)
	}
	sectors := uint64(image[setupSects])
	if sectors == 0 {
		sectors = 4
	}
	from := (sectors+1)*512 + uint64(binary.LittleEndian.Uint32(image[payloadOffset:]))
	length := uint64(binary.LittleEndian.Uint32(image[payloadLength:]))
	if length < 8 || from+length > uint64(len(image)) {
		return nil, fmt.Errorf("truncated: %d bytes, want %d", len(image), from+length)
	}
	// The last 4 bytes are the unpacked size. gzip has it as its own.
	payload := image[from : from+length]
	size := binary.LittleEndian.Uint32(payload[length-4:])
	if !bytes.HasPrefix(payload, []byte("\x1f\x8b")) {
		payload = payload[:length-4]
	}
	out, err := unpack(payload, maxVmlinux)
	if err == nil && uint32(len(out)) != size {
		err = fmt.Errorf("unpacked %d bytes, want %d", len(out), size)
	}
	return out, err
}

// describe checks that a vmlinux boots in a machine of ours, and returns what it says of
// itself.
func describe(vmlinux []byte) (report.Kernel, error) {
	f, err := openELF(vmlinux, elf.ET_EXEC)
	if err != nil {
		return report.Kernel{}, err
	}
	if !hasPVH(f) {
		return report.Kernel{}, errors.New("no PVH entry (CONFIG_PVH), by which QEMU starts it")
	}
	m := banner().FindSubmatch(vmlinux)
	if m == nil {
		return report.Kernel{}, errors.New("no version in it")
	}
	k := report.Kernel{Release: string(m[1]), Build: string(m[2])}
	k.Date = buildDate(k.Build)
	return k, nil
}

// openELF opens an ELF file of x86-64.
func openELF(file []byte, typ elf.Type) (*elf.File, error) {
	if !bytes.HasPrefix(file, []byte(elf.ELFMAG)) {
		return nil, errors.New("not an ELF file")
	}
	f, err := elf.NewFile(bytes.NewReader(file))
	if err != nil {
		return nil, err
	}
	if f.Class != elf.ELFCLASS64 || f.Machine != elf.EM_X86_64 || f.Type != typ {
		return nil, fmt.Errorf("%v of %v, want %v of %v", f.Type, f.Machine, typ, elf.EM_X86_64)
	}
	return f, nil
}

// banner is linux_banner of init/version-timestamp.c: "Linux version RELEASE (BY@HOST)
// (COMPILER) BUILD\n". A placeholder of it has no number after the #.
var banner = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`Linux version ([0-9][0-9A-Za-z.+~_-]{0,63}) \([^\n\x00]{1,512}\) (#[0-9][ -~]{1,256})\n`)
})

// buildDate reads the day in a kernel's uname -v: "… (2026-11-16)" of Debian, else
// "… Thu Dec  5 13:09:44 UTC 2024".
func buildDate(build string) time.Time {
	if n := len(build); n > 12 && build[n-1] == ')' && build[n-12] == '(' {
		if t, err := time.Parse(time.DateOnly, build[n-11:n-1]); err == nil {
			return t
		}
	}
	if n := len(build); n > len(time.UnixDate) {
		if t, err := time.Parse(time.UnixDate, build[n-len(time.UnixDate):]); err == nil {
			return t.UTC().Truncate(24 * time.Hour)
		}
	}
	return time.Time{}
}

// hasPVH reports whether the kernel has the note that names its entry for QEMU:
// XEN_ELFNOTE_PHYS32_ENTRY (xen/interface/elfnote.h).
func hasPVH(f *elf.File) bool {
	const entry = 18
	for _, p := range f.Progs {
		if p.Type != elf.PT_NOTE || p.Filesz > 1<<20 {
			continue
		}
		b, err := io.ReadAll(p.Open())
		if err != nil {
			continue
		}
		for len(b) >= 12 {
			name, desc := uint64(binary.LittleEndian.Uint32(b)), uint64(binary.LittleEndian.Uint32(b[4:]))
			typ := binary.LittleEndian.Uint32(b[8:])
			b = b[12:]
			nameEnd := (name + 3) &^ 3
			end := nameEnd + (desc+3)&^3
			if end > uint64(len(b)) {
				break
			}
			if typ == entry && string(b[:name]) == "Xen\x00" {
				return true
			}
			b = b[end:]
		}
	}
	return false
}
