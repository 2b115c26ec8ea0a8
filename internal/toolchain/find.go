package toolchain

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/facts"
	"github.com/llmdo/workshop/internal/hostpath"
	"github.com/llmdo/workshop/internal/lib/subpath"
)

// Machine is whose programs are looked for.
type Machine struct {
	// Lookup returns variables of the caller's environment, PATH among them.
	Lookup func(string) (string, bool)
	// Home is the caller's home directory; empty: not known.
	Home string
	// Project is the directory of the workshop. Programs in it are its own.
	Project string
	// Refused are the paths that no worker gets.
	Refused hostpath.List
}

// Place is where a program is.
type Place struct {
	// Program is its name.
	Program string
	// Found is the path by which the caller's shell finds it.
	Found string
	// Visible reports whether `image: host` shows it. It is on the worker's PATH if Dir
	// is empty.
	Visible bool
	// Mounts are the directories or files that show it to a worker, at their own paths.
	Mounts []string
	// Dir is the directory for PATH; empty: none is needed.
	Dir string
	// Why says why no mount shows it; empty where one does.
	Why string
}

// workerPath is PATH in a worker with `image: host`.
func workerPath() []string { return strings.Split(compose.HostPath, ":") }

// maxLinks bounds how many times a program leads to another place.
const maxLinks = 8

// Find returns where the caller's shell finds a program; not ok where it doesn't.
func (m *Machine) Find(program string) (Place, bool) {
	if program == "" || strings.ContainsAny(program, "/\x00") {
		return Place{}, false
	}
	list, _ := m.lookup("PATH")
	for _, dir := range filepath.SplitList(list) {
		if !filepath.IsAbs(dir) || m.Project != "" && subpath.Within(filepath.ToSlash(dir), m.Project) {
			continue // a directory of the repository says nothing about the machine
		}
		if file := filepath.Join(dir, program); isProgram(file) {
			p := Place{Program: program, Found: file}
			m.locate(&p, file, maxLinks)
			return p, true
		}
	}
	return Place{}, false
}

func (m *Machine) lookup(name string) (string, bool) {
	if m.Lookup == nil {
		return "", false
	}
	return m.Lookup(name)
}

func isProgram(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}

// locate says what shows the program that is a file. It follows version managers'
// stand-ins, and links out of a toolchain.
func (m *Machine) locate(p *Place, file string, left int) {
	dir, err := filepath.EvalSymlinks(filepath.Dir(file))
	if err != nil || left == 0 {
		p.Why = "links lead nowhere"
		return
	}
	file = filepath.Join(dir, filepath.Base(file))
	real, err := filepath.EvalSymlinks(file)
	if err != nil {
		p.Why = "links lead nowhere"
		return
	}
	if next, why, is := m.managed(p.Program, file, real); is {
		if next == "" || next == file {
			p.Why = why
			return
		}
		m.locate(p, next, left-1)
		return
	}
	switch root := m.toolchain(dir); {
	case facts.InHostImage(file) && facts.InHostImage(real):
		p.Visible = true
		if !slices.Contains(workerPath(), dir) && !slices.Contains(workerPath(), filepath.Dir(p.Found)) {
			p.Dir = dir
		}
	case root != "" && subpath.Within(real, root):
		m.mount(p, root, dir)
		m.interpreter(p, real, left-1)
	case real != file && filepath.Base(real) == p.Program:
		m.locate(p, real, left-1)
	case real != file:
		p.Why = "it leads to " + real
	default: // a directory of programs of one's own: this file alone
		m.mount(p, file, dir)
		m.interpreter(p, file, left-1)
	}
}

// toolchain is the directory that is one toolchain with its programs in bin; empty
// where the directory around is more than one: /usr, /opt, ~/.local, a home directory.
func (m *Machine) toolchain(bin string) string {
	if base := path.Base(bin); base != "bin" && base != "sbin" {
		return ""
	}
	root := path.Dir(bin)
	broad := []string{"/", "/opt", "/opt/local", "/usr", "/usr/local", "/snap", "/home", "/srv", "/var", "/mnt", "/media", "/data", "/nix"}
	if m.Home != "" {
		for _, name := range []string{"", ".local", ".cargo", "go", "bin", ".local/share", "Library"} {
			broad = append(broad, path.Join(m.Home, name))
		}
	}
	if slices.Contains(broad, root) || m.Home != "" && subpath.Within(m.Home, root) {
		return ""
	}
	return root
}

// mount adds a mount that shows the program, unless a worker can't have it.
func (m *Machine) mount(p *Place, source, dir string) {
	switch why := m.Refused.Why(source); {
	case why != "":
		p.Why = source + " " + why + " (B7)"
	case m.Project != "" && (subpath.Within(m.Project, source) || subpath.Within(source, m.Project)):
		p.Why = "it is in the project"
	case subpath.Within(source, "/home/worker"):
		p.Why = "a worker has its own /home/worker"
	default:
		if !slices.Contains(p.Mounts, source) {
			p.Mounts = append(p.Mounts, source)
		}
		if p.Dir == "" {
			p.Dir = dir
		}
	}
}
