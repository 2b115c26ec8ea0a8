package kit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/llmdo/workshop/internal/lib/boundedfile"
	"github.com/llmdo/workshop/internal/vm/report"
)

// Names of a kit's files.
const (
	Vmlinux   = "vmlinux"
	Initramfs = "initramfs"
)

func fileOf(data []byte) report.File { return report.File{Size: int64(len(data)), SHA256: Hash(data)} }

// Hash is the SHA-256 of data in hexadecimal.
func Hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Made is a kit that isn't written yet.
type Made struct {
	report.Kit
	files map[string][]byte
}

// Make makes a kit of a kernel.
func Make(s Source) (*Made, error) {
	kernel, k, err := s.kernel()
	if err != nil {
		return nil, err
	}
	dir, err := s.moduleTree()
	if err != nil {
		return nil, err
	}
	loaded, err := modules(dir, s.Release, wanted)
	if err != nil {
		return nil, err
	}
	archive, err := initramfs(loaded)
	if err != nil {
		return nil, err
	}
	m := &Made{files: map[string][]byte{Vmlinux: kernel, Initramfs: archive}, Kit: report.Kit{
		Version: report.KitVersion, Arch: "amd64", Kernel: k, Vmlinux: fileOf(kernel), Initramfs: fileOf(archive),
	}}
	for _, l := range loaded {
		m.Modules = append(m.Modules, l.name)
	}
	if m.files[report.KitFile], err = json.MarshalIndent(m.Kit, "", "\t"); err != nil {
		return nil, err
	}
	return m, nil
}

// Hash names the kit: the SHA-256 of its description, which has those of its files.
func (m *Made) Hash() string { return Hash(m.files[report.KitFile]) }

// Write writes the kit into a directory of its name below parent, unless it is there, and
// returns the directory. A concurrent reader finds a whole one or none.
func (m *Made) Write(parent string) (dir string, err error) {
	dir = filepath.Join(parent, m.Hash())
	if _, err := Open(dir); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", err
	}
	temp, err := os.MkdirTemp(parent, ".new-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(temp)
	for name, data := range m.files {
		name = filepath.Join(temp, name)
		err := os.WriteFile(name, data, 0o400)
		if err == nil {
			err = os.Chmod(name, 0o444) // whatever the umask: a worker's user reads it
		}
		if err != nil {
			return "", err
		}
	}
	if err := os.Chmod(temp, 0o755); err != nil {
		return "", err
	}
	if err := os.RemoveAll(dir); err != nil { // a broken one
		return "", err
	}
	if err := os.Rename(temp, dir); err != nil {
		if _, bad := Open(dir); bad == nil { // another one wrote it
			return dir, nil
		}
		return "", err
	}
	return dir, nil
}

// Open returns the description of a kit in a directory of its name, all of whose files it
// reads and compares.
func Open(dir string) (report.Kit, error) {
	m, err := open(dir)
	if err != nil {
		return m, fmt.Errorf("kit %s: %w", dir, err)
	}
	return m, nil
}

func open(dir string) (m report.Kit, err error) {
	text, err := boundedfile.Read(filepath.Join(dir, report.KitFile), 64<<10)
	if errors.Is(err, fs.ErrNotExist) {
		return m, errors.New("no " + report.KitFile)
	} else if err != nil {
		return m, err
	}
	if got := Hash(text); got != filepath.Base(dir) {
		return m, fmt.Errorf("%s has the hash %s, want that of its directory's name", report.KitFile, got)
	}
	if err := json.Unmarshal(text, &m); err == nil && m.Version != report.KitVersion {
		return m, fmt.Errorf("version %d, want %d", m.Version, report.KitVersion)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return m, fmt.Errorf("%s: %w", report.KitFile, err)
	}
	for name, want := range map[string]report.File{Vmlinux: m.Vmlinux, Initramfs: m.Initramfs} {
		data, err := boundedfile.Read(filepath.Join(dir, name), maxVmlinux)
		if err != nil {
			return m, err
		}
		if got := fileOf(data); got != want {
			return m, fmt.Errorf("%s has %d bytes with the hash %s, want %d with %s", name, got.Size, got.SHA256, want.Size, want.SHA256)
		}
	}
	return m, nil
}
