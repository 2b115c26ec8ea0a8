package facts

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/lib/fileowner"
)

// runtimeParent is a possible parent of a runtime directory.
type runtimeParent struct {
	dir    string
	memory bool // on a memory file system
}

// RuntimeID returns the name of a project's runtime directory, which differs for
// projects of one name in different directories.
func RuntimeID(project, projectDir string) string {
	sum := sha256.Sum256([]byte(projectDir))
	return project + "-" + hex.EncodeToString(sum[:4])
}

// runtimeParents lists the possible parents of the runtime directory, the best first:
// the user's runtime directory (XDG Base Directory), which root often lacks; /run for
// root; /dev/shm; a disk last.
func runtimeParents(uid int, lookup func(string) (string, bool), home string) []runtimeParent {
	var dirs []string
	if dir, ok := lookup("XDG_RUNTIME_DIR"); ok && filepath.IsAbs(dir) && usable(dir, uid) {
		dirs = append(dirs, filepath.Join(dir, "workshop"))
	}
	if uid >= 0 {
		if dir := "/run/user/" + strconv.Itoa(uid); usable(dir, uid) {
			dirs = append(dirs, filepath.Join(dir, "workshop"))
		}
		if uid == 0 {
			dirs = append(dirs, "/run/workshop")
		}
		dirs = append(dirs, "/dev/shm/workshop-"+strconv.Itoa(uid))
	}
	var out []runtimeParent
	for _, dir := range dirs {
		if inMemory(filepath.Dir(dir)) {
			out = append(out, runtimeParent{dir, true})
		}
	}
	disk := filepath.Join(os.TempDir(), "workshop-"+strconv.Itoa(uid))
	if home != "" {
		disk = filepath.Join(home, ".cache", "workshop", "run")
	}
	return append(out, runtimeParent{disk, inMemory(filepath.Dir(disk))})
}

// usable reports whether a directory exists and belongs to the caller: with sudo -E
// XDG_RUNTIME_DIR is another user's.
func usable(dir string, uid int) bool {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() {
		return false
	}
	who, _, ok := fileowner.Of(info)
	return !ok || who == uid
}

// runtime chooses the runtime directory and its content.
func (c *collector) runtime() {
	where := diag.Range{Filename: c.o.Workshop.File}
	project := c.o.Project
	if project == "" {
		project = c.o.Workshop.Name.V
	}
	needsMemory := hasSecrets(c.o.Workshop) && !c.o.SecretsOnDisk
	var skipped []string
	for _, parent := range runtimeParents(c.o.UID, c.o.lookup, c.o.Home) {
		if needsMemory && !parent.memory {
			continue
		}
		dir := filepath.Join(parent.dir, RuntimeID(project, c.facts.ProjectDir))
		if err := errors.Join(private(parent.dir, c.o.UID), private(dir, c.o.UID), canMake(dir)); err != nil {
			skipped = append(skipped, strings.ReplaceAll(err.Error(), "\n", "; "))
			continue
		}
		if len(skipped) > 0 {
			c.list = append(c.list, diag.Diagnostic{Severity: diag.Warning, Code: "runtime-dir-skipped", Range: where,
				Summary: fmt.Sprintf("the directory for secrets and names is %s: %s", parent.dir, strings.Join(skipped, "; ")),
				Hint:    "remove it, or set XDG_RUNTIME_DIR to your own directory on a tmpfs"})
		}
		c.facts.RuntimeDir = dir
		c.missing.runtime, c.missing.identity, c.missing.dialIns = dir, compose.IdentityFiles(c.o.Compiled, c.facts), compose.DialInPaths(c.o.Compiled, c.facts)
		c.secrets(dir)
		return
	}
	if len(skipped) > 0 {
		c.problem("runtime-dir", where, "no directory for secrets: "+strings.Join(skipped, "; "), runtimeHint)
		return
	}
	c.problem("runtime-dir", where, "no memory file system for secrets was found (B11)", runtimeHint)
}

const runtimeHint = "set XDG_RUNTIME_DIR to your own directory on a tmpfs, or use --secrets-on-disk"

// canMake refuses a directory that the caller can't create or write to.
func canMake(dir string) error {
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(at); errors.Is(err, fs.ErrNotExist) && at != filepath.Dir(at) {
			continue
		} else if err != nil {
			return err
		}
		return writable(at)
	}
}

// private refuses a directory that somebody else created or may write to: some parents
// are world-writable (/dev/shm, /tmp), and the names are predictable. A missing
// directory is accepted.
func private(dir string, uid int) error {
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	who, _, known := fileowner.Of(info)
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return fmt.Errorf("%s is a symbolic link", dir)
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory", dir)
	case known && who != uid:
		return fmt.Errorf("%s belongs to uid %d", dir, who)
	case known && info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("%s can be written by others (mode %04o)", dir, info.Mode().Perm())
	}
	return nil
}

// Forget removes runtime directories: secrets and names. It is for `down`.
func Forget(dirs []string, uid int) error {
	var errs []error
	for _, dir := range dirs {
		if dir != "" && usable(filepath.Dir(dir), uid) && usable(dir, uid) { // as in [RuntimeDirs]
			errs = append(errs, os.RemoveAll(dir))
		}
	}
	return errors.Join(errs...)
}

// RuntimeDirs lists the existing runtime directories of a project. Some parents are
// world-writable (/dev/shm): directories of other users are ignored.
func RuntimeDirs(project, projectDir string, uid int, lookup func(string) (string, bool), home string) []string {
	if lookup == nil {
		lookup = func(string) (string, bool) { return "", false }
	}
	if real, err := realDir(projectDir); err == nil {
		projectDir = real
	}
	var out []string
	for _, parent := range runtimeParents(uid, lookup, home) {
		dir := filepath.Join(parent.dir, RuntimeID(project, projectDir))
		if usable(parent.dir, uid) && usable(dir, uid) {
			out = append(out, dir)
		}
	}
	return out
}

func parseIDs(user string) (uid, gid int, ok bool) {
	u, g, both := strings.Cut(user, ":")
	uid, errU := strconv.Atoi(u)
	gid, errG := strconv.Atoi(g)
	return uid, gid, both && errU == nil && errG == nil
}
