package toolchain

import (
	"bytes"
	"path/filepath"
	"strings"

	"github.com/llmdo/workshop/internal/facts"
	"github.com/llmdo/workshop/internal/lib/boundedfile"
	"github.com/llmdo/workshop/internal/lib/subpath"
)

// maxProgram is the size of a file whose first line is looked at, in bytes: scripts
// are small.
const maxProgram = 1 << 20

// interpreter adds what a script's first line needs: the environment of an application
// that pipx or uv installed, and the Python that made it.
func (m *Machine) interpreter(p *Place, file string, left int) {
	if left <= 0 || p.Why != "" {
		return
	}
	text, err := boundedfile.Read(file, maxProgram)
	line, ok := bytes.CutPrefix(text, []byte("#!"))
	if err == nil && ok {
		line, _, _ = bytes.Cut(line, []byte("\n"))
		words := strings.Fields(string(line))
		if len(words) > 0 && filepath.IsAbs(words[0]) && !facts.InHostImage(words[0]) && isProgram(words[0]) {
			m.also(p, words[0], left)
		}
	}
	for _, mounted := range p.Mounts {
		if home := pythonOf(mounted); home != "" && !facts.InHostImage(home) {
			m.also(p, filepath.Join(home, "python3"), left)
			return
		}
	}
}

// also adds the mounts of another program.
func (m *Machine) also(p *Place, file string, left int) {
	for _, mounted := range p.Mounts {
		if subpath.Within(file, mounted) {
			return
		}
	}
	if !isProgram(file) {
		return
	}
	other := Place{Program: filepath.Base(file), Found: file}
	m.locate(&other, file, left-1)
	if other.Why != "" {
		p.Mounts, p.Dir, p.Why = nil, "", other.Why
		return
	}
	for _, source := range other.Mounts {
		m.mount(p, source, p.Dir)
	}
}

// pythonOf is the directory of the Python that a virtual environment was made with.
func pythonOf(root string) string {
	for line := range strings.Lines(setting(filepath.Join(root, "pyvenv.cfg"))) {
		if key, value, ok := strings.Cut(line, "="); ok && strings.TrimSpace(key) == "home" && filepath.IsAbs(strings.TrimSpace(value)) {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
