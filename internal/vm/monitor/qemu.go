package monitor

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/llmdo/workshop/internal/lib/boundedfile"

	"github.com/llmdo/workshop/internal/vm/config"
)

// Program is where distributions have QEMU. It is never looked for in PATH.
const Program = "/usr/bin/qemu-system-x86_64"

// Oldest is the oldest version of QEMU that ran: major and minor number.
var Oldest = [2]int{7, 2}

// Where a distribution has libraries, QEMU's own modules and its firmware; the first
// directory that has a file counts.
var (
	libraryDirs  = []string{"/usr/lib/x86_64-linux-gnu", "/lib/x86_64-linux-gnu", "/usr/lib64", "/lib64", "/usr/lib", "/lib"}
	moduleDirs   = []string{"/usr/lib/x86_64-linux-gnu/qemu", "/usr/lib64/qemu", "/usr/lib/qemu"}
	firmwareDirs = []string{"/usr/share/qemu", "/usr/share/qemu-firmware", "/usr/share/seabios"}
)

// firmware is what a microvm reads: its boot code, and what starts a kernel that is an ELF
// file.
var firmware = []string{"bios-microvm.bin", "pvh.bin"}

// tcgModule is the module of emulation, where QEMU is built with modules.
const tcgModule = "accel-tcg-x86_64.so"

// Limits: bytes of a file, and files.
const (
	maxFile  = 64 << 20
	maxFiles = 256
)

// Closure are the files that QEMU needs to run a machine.
type Closure struct {
	// Files are absolute paths, where QEMU and the dynamic linker look for them, sorted.
	Files []string
	// SHA256 is a hash of all of them with their paths, in hexadecimal.
	SHA256 string
	// Size is that of all of them, in bytes.
	Size int64
}

// FindClosure collects QEMU's program, the libraries that it is linked with, and what it
// reads, in fixed directories of a system whose root is given.
func FindClosure(root fs.FS, a config.Accelerator) (Closure, error) {
	w := &walker{root: root, hashes: map[string]string{}}
	if err := w.program(Program); err != nil {
		return Closure{}, err
	}
	if a == config.TCG {
		if _, err := w.library(tcgModule, moduleDirs); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return Closure{}, err
		}
	}
	for _, name := range firmware {
		if _, err := w.find(name, firmwareDirs); err != nil {
			return Closure{}, err
		}
	}
	c := Closure{Size: w.size}
	for name := range w.hashes {
		c.Files = append(c.Files, name)
	}
	slices.Sort(c.Files)
	all := sha256.New()
	for _, name := range c.Files {
		fmt.Fprintf(all, "%s  %s\n", w.hashes[name], name)
	}
	c.SHA256 = hex.EncodeToString(all.Sum(nil))
	return c, nil
}

// missingQEMU says how QEMU is installed on a system whose root is given, if it isn't there.
func missingQEMU(root fs.FS) error {
	exists := func(name string) bool {
		_, err := fs.Stat(root, strings.TrimPrefix(name, "/"))
		return err == nil
	}
	if exists(Program) {
		return nil
	}
	m := &MissingError{Why: "no QEMU: there is no " + Program, Hint: fmt.Sprintf("install QEMU %d.%d or later, with its microvm for x86-64", Oldest[0], Oldest[1])}
	switch {
	case exists("/usr/bin/apt-get"):
		m.Root = "apt-get install --no-install-recommends qemu-system-x86"
	case exists("/usr/bin/dnf"):
		m.Root = "dnf install qemu-system-x86-core"
	}
	return m
}

// walker collects files with their hashes.
type walker struct {
	root   fs.FS
	hashes map[string]string
	size   int64
}

// read collects a file. A second time it returns nil.
func (w *walker) read(name string) ([]byte, error) {
	if w.hashes[name] != "" {
		return nil, nil
	}
	if len(w.hashes) == maxFiles {
		return nil, fmt.Errorf("%s: more than %d files are needed", Program, maxFiles)
	}
	data, err := boundedfile.ReadFS(w.root, strings.TrimPrefix(name, "/"), maxFile)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	w.hashes[name] = hex.EncodeToString(sum[:])
	w.size += int64(len(data))
	return data, nil
}

// find collects a file of the first directory that has it.
func (w *walker) find(name string, dirs []string) ([]byte, error) {
	for _, dir := range dirs {
		data, err := w.read(path.Join(dir, name))
		if !errors.Is(err, fs.ErrNotExist) {
			return data, err
		}
	}
	return nil, fmt.Errorf("%s is in none of %s: %w", name, strings.Join(dirs, ", "), fs.ErrNotExist)
}

// library collects a library with those that it needs.
func (w *walker) library(name string, dirs []string) (*elf.File, error) {
	if strings.ContainsRune(name, '/') {
		return nil, fmt.Errorf("library %q: a path, want a name", name)
	}
	data, err := w.find(name, dirs)
	if err != nil || data == nil {
		return nil, err
	}
	return w.needed(name, data)
}

// needed collects what an ELF file is linked with (DT_NEEDED).
func (w *walker) needed(name string, data []byte) (*elf.File, error) {
	f, err := elf.NewFile(bytes.NewReader(data))
	var all []string
	if err == nil && f.Machine != elf.EM_X86_64 {
		err = fmt.Errorf("for %v, want %v", f.Machine, elf.EM_X86_64)
	}
	if err == nil {
		all, err = f.ImportedLibraries()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for _, library := range all {
		if _, err := w.library(library, libraryDirs); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return f, nil
}

// program collects a program with its dynamic linker.
func (w *walker) program(name string) error {
	data, err := w.read(name)
	if err != nil {
		return err
	}
	f, err := w.needed(name, data)
	if err != nil {
		return err
	}
	for _, p := range f.Progs {
		if p.Type != elf.PT_INTERP || p.Filesz == 0 || p.Filesz > 256 {
			continue
		}
		text := make([]byte, p.Filesz)
		if _, err := p.ReadAt(text, 0); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		linker := string(bytes.TrimRight(text, "\x00"))
		if !slices.Contains(libraryDirs, path.Dir(linker)) {
			return fmt.Errorf("%s: dynamic linker %q, want one in %s", name, linker, strings.Join(libraryDirs, ", "))
		}
		if _, err := w.read(linker); err != nil {
			return err
		}
	}
	return nil
}

// versionLine is the first line of qemu --version.
var versionLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^QEMU emulator version (\d{1,3})\.(\d{1,3})(\.\d{1,3})?\b`)
})

// parseVersion reads what qemu --version prints, and refuses an older one than [Oldest].
func parseVersion(text string) (string, error) {
	m := versionLine().FindStringSubmatch(text)
	if m == nil {
		return "", fmt.Errorf("%s --version: no version in %.100q", Program, text)
	}
	major, _ := strconv.Atoi(m[1]) // digits
	minor, _ := strconv.Atoi(m[2])
	version := strings.TrimPrefix(m[0], "QEMU emulator version ")
	if slices.Compare([]int{major, minor}, Oldest[:]) < 0 {
		return "", fmt.Errorf("QEMU %s, want %d.%d or later", version, Oldest[0], Oldest[1])
	}
	return version, nil
}
