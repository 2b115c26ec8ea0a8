package kit

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/llmdo/workshop/internal/lib/boundedfile"
)

// wanted are the modules that a guest needs, before those that they depend on. Each is time
// of every start. None is netfilter's: a room's rules are outside of the machine.
var wanted = []string{
	"virtio_mmio",                                // the machine's only bus
	"virtio_console",                             // the carrier
	"virtio_blk", "erofs", "overlay", "virtiofs", // its files
	"virtio_balloon", // gives memory back
}

// maxModules is how many modules a kit has at most. Debian's 6.1 needs 11.
const maxModules = 128

// module is one as it is loaded.
type module struct {
	name string
	file []byte // its ELF file
}

// loader collects modules in the order in which they are loaded.
type loader struct {
	dir     fs.FS // lib/modules/RELEASE
	release string
	files   map[string]string // path in dir by name
	builtin map[string]bool
	seen    map[string]bool // collected, or just being so
	order   []module
}

// modules returns the modules with these names and those that they depend on, first those
// that others need. What is built into the kernel is left out.
func modules(dir fs.FS, release string, names []string) ([]module, error) {
	l := &loader{dir: dir, release: release, files: map[string]string{}, builtin: map[string]bool{}, seen: map[string]bool{}}
	if err := l.index(); err != nil {
		return nil, err
	}
	var missing []string
	for _, name := range names {
		if !l.has(name) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("kernel %s: no module %s", release, strings.Join(missing, ", "))
	}
	for _, name := range names {
		if err := l.add(name); err != nil {
			return nil, err
		}
	}
	return l.order, nil
}

func (l *loader) has(name string) bool { return l.files[name] != "" || l.builtin[name] }

// index reads which modules there are.
func (l *loader) index() error {
	text, err := boundedfile.ReadFS(l.dir, "modules.builtin", maxModinfo)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for line := range strings.FieldsSeq(string(text)) {
		l.builtin[moduleName(strings.TrimSuffix(path.Base(line), ".ko"))] = true
	}
	return fs.WalkDir(l.dir, "kernel", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base, kind, ok := strings.Cut(path.Base(name), ".ko")
		if ok && d.Type().IsRegular() && slices.Contains([]string{"", ".gz", ".xz", ".zst"}, kind) && l.files[moduleName(base)] == "" {
			l.files[moduleName(base)] = name
		}
		return nil
	})
}

// add collects a module after those that it needs.
func (l *loader) add(name string) error {
	if l.seen[name] || l.builtin[name] {
		return nil
	}
	l.seen[name] = true
	file, m, err := l.read(name)
	if err != nil {
		return fmt.Errorf("module %s: %w", name, err)
	}
	for _, before := range m.softly {
		if l.has(before) {
			m.depends = append(m.depends, before)
		}
	}
	for _, before := range m.depends {
		if !l.has(before) {
			return fmt.Errorf("module %s: it depends on %s, which kernel %s does not have", name, before, l.release)
		}
		if err := l.add(before); err != nil {
			return err
		}
	}
	if len(l.order) == maxModules {
		return fmt.Errorf("kernel %s: more than %d modules are needed", l.release, maxModules)
	}
	l.order = append(l.order, module{name, file})
	return nil
}

func (l *loader) read(name string) (file []byte, m modinfo, err error) {
	file, err = boundedfile.ReadFS(l.dir, l.files[name], maxModule)
	if err == nil && !strings.HasSuffix(l.files[name], ".ko") {
		file, err = unpack(file, maxModule)
	}
	if err == nil {
		m, err = readModinfo(file, l.release)
	}
	return file, m, err
}
