package facts

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/lib/atomicfile"
	"github.com/llmdo/workshop/internal/lib/boundedfile"
	"github.com/llmdo/workshop/internal/lib/fileowner"
	"github.com/llmdo/workshop/internal/lib/shellquote"
	"github.com/llmdo/workshop/workshop"
)

// Missing is what [Collect] found missing on this machine for a run: directories of
// the project, the runtime directory and its content. The zero value is nothing.
type Missing struct {
	facts    *compose.Facts
	at       diag.Range // of the file, for problems without a line
	dirs     []dirToMake
	uid      int    // of the caller
	runtime  string // the runtime directory; empty: none
	identity []compose.File
	dialIns  []string
	secrets  []secretToWrite
	problems
}

// secretToWrite is a value for one user.
type secretToWrite struct {
	secret *workshop.Secret
	file   string
	value  []byte
	user   string // UID:GID
}

// Make creates all of it and keeps what exists. Every error is in the list.
func (m *Missing) Make() diag.List {
	m.list = nil
	for i := range m.dirs {
		m.makeDir(&m.dirs[i])
	}
	if m.runtime == "" {
		return m.list
	}
	if err := privateDirs(filepath.Dir(m.runtime), m.runtime, m.uid); err != nil {
		m.problem("runtime-dir", m.at, "no directory for secrets: "+strings.ReplaceAll(err.Error(), "\n", "; "), runtimeHint)
		return m.list
	}
	for _, f := range m.identity {
		if err := writeFile(filepath.Join(m.runtime, f.Path), f.Data, os.FileMode(f.Mode), -1, -1); err != nil {
			m.problem("runtime-dir", m.at, err.Error(), "")
		}
	}
	for _, dir := range m.dialIns {
		if err := makeDialIn(dir); err != nil {
			m.problem("runtime-dir", m.at, err.Error(), "")
		}
	}
	for _, s := range m.secrets {
		m.writeSecret(s)
	}
	return m.list
}

// makeDir creates a missing rw directory after checking again that this is allowed.
// It works by an [os.Root] of the project directory, so that a symlink can't lead out
// of it.
func (m *Missing) makeDir(d *dirToMake) {
	if problem, refused := d.refused(m.facts); refused { // since it was checked
		m.list = append(m.list, problem)
		return
	}
	if err := makeDirs(m.facts.ProjectDir, d.rel, d.user); err != nil {
		m.problem("mount-source-create", d.at, fmt.Sprintf("can't make the directory %s: %v", d.source, err), "make it: mkdir -p "+shellquote.Quote(d.path))
	}
}

func (m *Missing) writeSecret(s secretToWrite) {
	uid, gid, ok := parseIDs(s.user)
	if !ok {
		uid, gid = -1, -1
	}
	if err := writeFile(s.file, s.value, 0o400, uid, gid); err != nil {
		m.problem("secret-file", s.secret.At.Range, fmt.Sprintf("secret %s can't be made readable for uid %d: %v", s.secret.Name, uid, err),
			"run workshop as that user or as root, or omit `user:`")
	}
}

// makeDirs creates every missing directory of rel below dir, owned by user.
func makeDirs(dir, rel, user string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	made := ""
	for part := range strings.SplitSeq(filepath.ToSlash(rel), "/") {
		made = filepath.Join(made, part)
		if err := root.Mkdir(made, 0o755); errors.Is(err, fs.ErrExist) {
			if info, err := root.Lstat(made); err != nil || !info.IsDir() { // since it was checked
				return errors.Join(err, fmt.Errorf("%s is not a directory", made))
			}
			continue
		} else if err != nil {
			return err
		}
		if err := chown(root, made, user); err != nil {
			return err
		}
	}
	return nil
}

// chown changes the owner of a new directory to the worker. Only root may; any other
// caller is the worker's user, or the worker reports that it can't write.
func chown(root *os.Root, name, user string) error {
	uid, gid, ok := parseIDs(user)
	if !ok || os.Geteuid() != 0 {
		return nil
	}
	return root.Lchown(name, uid, gid)
}

// privateDirs creates directories that only the caller may enter, and refuses those
// created by somebody else.
func privateDirs(parent, dir string, uid int) error {
	if err := os.MkdirAll(filepath.Dir(parent), 0o700); err != nil {
		return err
	}
	for _, d := range []string{parent, dir} {
		if err := os.Mkdir(d, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := private(d, uid); err != nil {
			return err
		}
		if err := os.Chmod(d, 0o700); err != nil {
			return err
		}
	}
	return nil
}

// makeDialIn creates a dial-in directory, by which sessions reach a worker. Its parent
// is accessible to the caller alone; a worker's PID 1, of another user, must be able
// to watch its own (inotify_add_watch(2) needs read permission).
func makeDialIn(dir string) error {
	err := os.Mkdir(dir, dialInMode)
	if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	return errors.Join(err, os.Chmod(dir, dialInMode)) // regardless of the umask
}

const dialInMode = 0o755

// writeFile replaces a file atomically unless it is up to date: a running worker has
// the old one bound. Negative ids are not changed.
func writeFile(name string, data []byte, mode os.FileMode, uid, gid int) error {
	if have, err := boundedfile.Read(name, int64(len(data))); err == nil && bytes.Equal(have, data) && right(name, mode, uid, gid) {
		return nil
	}
	return atomicfile.File{Name: name, Data: data, Mode: mode, Prepare: func(f *os.File) error {
		if uid < 0 || uid == os.Geteuid() && gid == os.Getegid() {
			return nil
		}
		return f.Chown(uid, gid)
	}}.Write()
}

func right(name string, mode os.FileMode, uid, gid int) bool {
	info, err := os.Lstat(name)
	if err != nil || info.Mode() != mode {
		return false
	}
	u, g, ok := fileowner.Of(info)
	return !ok || uid < 0 || (u == uid && g == gid)
}
