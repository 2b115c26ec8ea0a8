package kit

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"strings"
)

// elfFile is an ELF file with one segment of notes and one section .modinfo.
func elfFile(typ elf.Type, machine elf.Machine, notes []byte, modinfo ...string) []byte {
	const names = "\x00.modinfo\x00.shstrtab\x00"
	info := []byte(strings.Join(modinfo, "\x00"))
	le, at := binary.LittleEndian, uint64(64+56)
	h := elf.Header64{Ident: [16]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type: uint16(typ), Machine: uint16(machine), Version: 1, Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 1, Shentsize: 64, Shnum: 3, Shstrndx: 2}
	h.Shoff = at + uint64(len(notes)+len(info)+len(names))
	var out bytes.Buffer
	binary.Write(&out, le, h)
	binary.Write(&out, le, elf.Prog64{Type: uint32(elf.PT_NOTE), Off: at, Filesz: uint64(len(notes))})
	out.Write(notes)
	out.Write(info)
	out.WriteString(names)
	binary.Write(&out, le, elf.Section64{})
	binary.Write(&out, le, elf.Section64{Name: 1, Type: uint32(elf.SHT_PROGBITS), Off: at + uint64(len(notes)), Size: uint64(len(info))})
	binary.Write(&out, le, elf.Section64{Name: 10, Type: uint32(elf.SHT_STRTAB), Off: at + uint64(len(notes)+len(info)), Size: uint64(len(names))})
	return out.Bytes()
}

// note is an ELF note.
func note(name string, typ uint32, desc []byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(name)+1))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(desc)))
	b = binary.LittleEndian.AppendUint32(b, typ)
	b = append(b, name...)
	b = append(b, make([]byte, 4-len(name)%4)...)
	return append(append(b, desc...), make([]byte, -len(desc)&3)...)
}

const (
	release = "6.1.0-9-cloud-amd64"
	build   = "#1 SMP PREEMPT_DYNAMIC Debian 6.1.192-2 (2026-11-16)"
	version = "Linux version " + release + " (kernel@lists.example.org) (gcc-12 (Debian) 12.2, GNU ld 2.40) " + build + "\n"
)

var pvh = append(note("GNU", 3, []byte{1, 2, 3}), note("Xen", 18, make([]byte, 8))...)

// kernelFile is a vmlinux.
func kernelFile() []byte {
	text := strings.Repeat("\xe8\x10\x20\x00\x00 is a call, which xz's filter for x86 makes absolute. ", 500)
	return append(elfFile(elf.ET_EXEC, elf.EM_X86_64, pvh), text+strings.Replace(version, "#1", "#", 1)+version...)
}

// bzImage is a kernel's image with a payload; its last 4 bytes are the unpacked size, unless
// the format has it.
func bzImage(payload []byte, unpacked int) []byte {
	image := make([]byte, 3*512+16)
	image[0x1f1] = 2
	copy(image[0x202:], "HdrS")
	binary.LittleEndian.PutUint16(image[0x206:], 0x20f)
	binary.LittleEndian.PutUint32(image[0x248:], 16)
	if !bytes.HasPrefix(payload, []byte("\x1f\x8b")) {
		payload = binary.LittleEndian.AppendUint32(bytes.Clone(payload), uint32(unpacked))
	}
	binary.LittleEndian.PutUint32(image[0x24c:], uint32(len(payload)))
	return append(append(image, payload...), "after it"...)
}

// moduleFile is a module of the release.
func moduleFile(fields ...string) []byte {
	return elfFile(elf.ET_REL, elf.EM_X86_64, nil, append(fields, "vermagic="+release+" SMP preempt mod_unload ")...)
}
