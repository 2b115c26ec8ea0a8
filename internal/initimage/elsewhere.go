package initimage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"github.com/llmdo/workshop/internal/lib/boundedfile"
)

// Default returns the set of this build: what is embedded, and files next to the program.
func Default() *Set { return defaultSet() }

var defaultSet = sync.OnceValue(func() *Set {
	var all layers
	for _, dir := range append([]string{"names"}, arches...) {
		sub, err := fs.Sub(embedded, path.Join("bin", dir))
		if err != nil {
			panic(err) // a constant name
		}
		all = append(all, sub)
	}
	s := NewSet(all)
	s.installed, s.dirs = Installed, ProgramDirs()
	return s
})

// Installed is where a package has the program of its architecture. It is used in place
// of the embedded one if it is the same, which its hash says: it needn't be unpacked.
const Installed = "/usr/libexec/workshop/workshop-init"

// ProgramDirs are where archives and packages have other programs of ours, such as the packed
// one for the other architecture: with this program, and in libexec/workshop of its
// installation.
func ProgramDirs() []string {
	self, err := os.Executable()
	if err == nil {
		self, err = filepath.EvalSymlinks(self)
	}
	if err != nil {
		return nil
	}
	bin := filepath.Dir(self)
	return []string{bin, filepath.Join(filepath.Dir(bin), "libexec", "workshop")}
}

// layers is a file system with the files of several; the first that has one decides.
type layers []fs.FS

// Open implements [fs.FS].
func (l layers) Open(name string) (fs.File, error) {
	for _, files := range l {
		if f, err := files.Open(name); !errors.Is(err, fs.ErrNotExist) {
			return f, err
		}
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// readOther reads the program for an architecture whose names alone are embedded, from
// the first directory that has its file.
func (s *Set) readOther(arch string, want Names) ([]byte, error) {
	const whence = "from the archive of this version of workshop"
	for _, dir := range s.dirs {
		name := filepath.Join(dir, FileName(arch))
		packed, err := boundedfile.Read(name, MaxSize)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var data []byte
		if err == nil {
			data, err = unpack(packed)
		}
		if err == nil && !want.of(data) {
			err = errors.New("it is of another version")
		}
		if err != nil {
			return nil, fmt.Errorf("workshop-init for linux/%s: %s can't be used (%w): replace it with the one %s", arch, name, err, whence)
		}
		return data, nil
	}
	return nil, &NotBuiltError{Arch: arch, Have: s.archs(), Why: fmt.Errorf("%s is not in %s: copy it there %s",
		FileName(arch), strings.Join(s.dirs, " or "), whence)}
}
