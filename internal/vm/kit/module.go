package kit

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Limits of a module's file, packed or not, and of what it says of itself, in bytes.
const (
	maxModule  = 32 << 20
	maxModinfo = 1 << 20
)

// modinfo is what matters here of a module's section .modinfo.
type modinfo struct {
	depends []string // modules that must be loaded before
	softly  []string // as far as the kernel has them
}

// readModinfo reads a module's file, which must be one of a kernel.
func readModinfo(file []byte, release string) (m modinfo, err error) {
	f, err := openELF(file, elf.ET_REL)
	if err != nil {
		return m, err
	}
	s := f.Section(".modinfo")
	if s == nil || s.Flags&elf.SHF_COMPRESSED != 0 || s.Size > maxModinfo {
		return m, errors.New("no section .modinfo")
	}
	text, err := io.ReadAll(s.Open())
	if err != nil {
		return m, fmt.Errorf("section .modinfo: %w", err)
	}
	magic := ""
	for field := range strings.SplitSeq(string(text), "\x00") {
		key, value, _ := strings.Cut(field, "=")
		switch key {
		case "vermagic":
			magic, _, _ = strings.Cut(value, " ")
		case "depends":
			for name := range strings.SplitSeq(value, ",") {
				if name != "" {
					m.depends = append(m.depends, moduleName(name))
				}
			}
		case "softdep": // "pre: a b post: c"
			before := false
			for word := range strings.FieldsSeq(value) {
				if strings.HasSuffix(word, ":") {
					before = word == "pre:"
				} else if before {
					m.softly = append(m.softly, moduleName(word))
				}
			}
		}
	}
	if magic != release {
		return m, fmt.Errorf("a module of kernel %q, want %q", magic, release)
	}
	return m, nil
}

// moduleName is a module's name as the kernel has it.
func moduleName(name string) string { return strings.ReplaceAll(name, "-", "_") }
