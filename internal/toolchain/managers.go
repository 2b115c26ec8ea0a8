package toolchain

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"github.com/llmdo/workshop/internal/lib/boundedfile"
	"github.com/llmdo/workshop/internal/lib/sortfunc"
)

// maxSettings is the size of a manager's setting, or of a stand-in's script, in bytes.
const maxSettings = 64 << 10

// managed says which program a version manager's stand-in runs; is false where the
// file isn't one. Without a program, why says so.
func (m *Machine) managed(program, file, real string) (next, why string, is bool) {
	root := filepath.Dir(filepath.Dir(file)) // of ROOT/shims/PROGRAM
	switch base := filepath.Base(real); {
	case base == "rustup" && program != "rustup":
		return m.rustup(program)
	case base == "volta-shim":
		return m.volta(program, filepath.Dir(file))
	case base == "mise" && program != "mise":
		return m.mise(program, root)
	case base == "snap" && program != "snap":
		return inDir(program, "/snap/"+program+"/current/bin", "snap runs it, which a worker can't")
	case filepath.Base(filepath.Dir(file)) != "shims":
		return "", "", false
	case isDir(filepath.Join(root, "installs")):
		return m.asdf(program, file, root)
	case isDir(filepath.Join(root, "versions")):
		return m.versions(program, root)
	}
	return "", "", false
}

// inDir is the program in a directory.
func inDir(program, dir, why string) (string, string, bool) {
	if file := filepath.Join(dir, program); isProgram(file) {
		return file, "", true
	}
	return "", why, true
}

// versions is pyenv and what is made like it (rbenv, nodenv, goenv): the version is in
// NAME_VERSION, the project's .NAME-version or ROOT/version, its programs in
// ROOT/versions/VERSION/bin.
func (m *Machine) versions(program, root string) (string, string, bool) {
	name := strings.TrimPrefix(filepath.Base(root), ".")
	language := map[string]string{"pyenv": "python", "rbenv": "ruby", "nodenv": "node", "goenv": "go"}[name]
	wanted, _ := m.lookup(strings.ToUpper(name) + "_VERSION")
	if wanted == "" && m.Project != "" && language != "" {
		wanted = setting(filepath.Join(m.Project, "."+language+"-version"))
	}
	if wanted == "" {
		wanted = setting(filepath.Join(root, "version"))
	}
	for _, version := range strings.FieldsFunc(wanted, func(r rune) bool { return r == ':' || r == ' ' || r == '\n' }) {
		if version == "system" {
			for _, dir := range workerPath() {
				if file := filepath.Join(dir, program); isProgram(file) {
					return file, "", true
				}
			}
			continue
		}
		for _, dir := range installed(filepath.Join(root, "versions"), version) {
			if file := filepath.Join(dir, "bin", program); isProgram(file) {
				return file, "", true
			}
		}
	}
	return "", name + " has no version with it that is in use", true
}

// asdf writes the plugin and version into its stand-ins.
func (m *Machine) asdf(program, shim, root string) (string, string, bool) {
	text, _ := boundedfile.Read(shim, maxSettings)
	for line := range strings.Lines(string(text)) {
		rest, ok := strings.CutPrefix(line, "# asdf-plugin: ")
		fields := strings.Fields(rest)
		if !ok || len(fields) != 2 || !isName(fields[0]) || !isName(fields[1]) {
			continue
		}
		if file := filepath.Join(root, "installs", fields[0], fields[1], "bin", program); isProgram(file) {
			return file, "", true
		}
	}
	return m.mise(program, root) // which keeps its versions in the same places
}

// mise has each tool's versions in ROOT/installs/TOOL, the one last installed by the
// name latest.
func (m *Machine) mise(program, root string) (string, string, bool) {
	tools, _ := filepath.Glob(filepath.Join(root, "installs", "*"))
	for _, tool := range tools {
		for _, version := range append([]string{filepath.Join(tool, "latest")}, installed(tool, "")...) {
			if file := filepath.Join(version, "bin", program); isProgram(file) {
				return file, "", true
			}
		}
	}
	return "", "its version manager has no version with it", true
}

// rustup keeps toolchains in ~/.rustup (RUSTUP_HOME), and the default one's name in
// its settings.
func (m *Machine) rustup(program string) (string, string, bool) {
	home, ok := m.lookup("RUSTUP_HOME")
	if !ok || !filepath.IsAbs(home) {
		home = filepath.Join(m.Home, ".rustup")
	}
	text, _ := boundedfile.Read(filepath.Join(home, "settings.toml"), maxSettings)
	wanted, _ := m.lookup("RUSTUP_TOOLCHAIN")
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, "="); ok && wanted == "" && strings.TrimSpace(key) == "default_toolchain" {
			wanted = strings.Trim(strings.TrimSpace(value), `"'`)
		}
	}
	for _, dir := range installed(filepath.Join(home, "toolchains"), wanted) {
		if file := filepath.Join(dir, "bin", program); isProgram(file) {
			return file, "", true
		}
	}
	return "", "rustup has no default toolchain with it", true
}

// volta names the default versions of Node.js and package managers in platform.json.
func (m *Machine) volta(program, bin string) (string, string, bool) {
	root := filepath.Dir(bin)
	if home, ok := m.lookup("VOLTA_HOME"); ok && filepath.IsAbs(home) {
		root = home
	}
	var platform struct {
		Node struct {
			Runtime string `json:"runtime"`
		} `json:"node"`
	}
	text, _ := boundedfile.Read(filepath.Join(root, "tools/user/platform.json"), maxSettings)
	if err := json.Unmarshal(text, &platform); err != nil || !isName(platform.Node.Runtime) {
		return "", "volta has no default version of Node.js", true
	}
	return inDir(program, filepath.Join(root, "tools/image/node", platform.Node.Runtime, "bin"), "volta's Node.js doesn't have it")
}

// installed are the directories of installed versions, the newest first: the one that
// is named, or those that begin with the name.
func installed(dir, wanted string) (out []string) {
	if wanted != "" && !isName(wanted) {
		return nil
	}
	if exact := filepath.Join(dir, wanted); wanted != "" && isDir(exact) {
		return []string{exact}
	}
	entries, _ := os.ReadDir(dir)
	var names []string
	for _, e := range entries {
		if rest, ok := strings.CutPrefix(e.Name(), wanted); ok && (wanted == "" || strings.HasPrefix(rest, ".") || strings.HasPrefix(rest, "-")) {
			names = append(names, e.Name())
		}
	}
	sortfunc.Stable(names, func(a, b string) int { return -compareVersions(a, b) })
	for _, name := range names {
		out = append(out, filepath.Join(dir, name))
	}
	return out
}

// compareVersions compares numbers in names as numbers.
func compareVersions(a, b string) int {
	for a != "" && b != "" {
		x, y := digits(a), digits(b)
		if x > 0 && y > 0 {
			n, k := strings.TrimLeft(a[:x], "0"), strings.TrimLeft(b[:y], "0")
			if len(n) != len(k) {
				return len(n) - len(k)
			}
			if c := strings.Compare(n, k); c != 0 {
				return c
			}
			a, b = a[x:], b[y:]
			continue
		}
		if a[0] != b[0] {
			return int(a[0]) - int(b[0])
		}
		a, b = a[1:], b[1:]
	}
	return len(a) - len(b)
}

// digits counts the digits that a text begins with.
func digits(s string) int {
	return len(s) - len(strings.TrimLeft(s, "0123456789"))
}

// setting is the text of a small file; empty where there is none.
func setting(file string) string {
	text, err := boundedfile.Read(file, maxSettings)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// isName reports whether a text is one name of a directory.
func isName(s string) bool {
	return s != "" && s != "." && s != ".." && !strings.ContainsAny(s, "/\\\x00\n")
}

func isDir(p string) bool {
	info, err := os.Stat(p)
	return err == nil && info.IsDir()
}
