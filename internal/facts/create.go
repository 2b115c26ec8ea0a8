package facts

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/hostlink"
	"github.com/llmdo/workshop/internal/shellword"
)

// create makes a missing rw directory inside the project, with the worker's
// owner. All work is done below the project directory by a root handle, so
// that a symlink can't lead out of it. The sources it made, or would make, are
// told in ToCreate.
func (c *collector) create(u *use, path string) {
	if u.outside || !c.o.Local {
		return
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return
	}
	rel, err := filepath.Rel(c.facts.ProjectDir, path)
	if err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return
	}
	if why := c.notMade(rel, path); why != "" {
		c.problem("mount-source-create", u.at, fmt.Sprintf("%s does not exist, and isn't made: %s", u.source, why), "make it yourself, or mount another directory")
		return
	}
	if !c.o.Create {
		c.facts.ToCreate = append(c.facts.ToCreate, u.source)
		return
	}
	if err := makeDirs(c.facts.ProjectDir, rel, u.user); err != nil {
		c.problem("mount-source-create", u.at, fmt.Sprintf("can't make the directory %s: %v", u.source, err), "make it: mkdir -p "+shellword.Quote(path))
		return
	}
	c.facts.ToCreate = append(c.facts.ToCreate, u.source)
}

// notMade says why a directory of the project is not made: nothing may be left on
// the host by an `up` that is refused, as it is for what programs of the host read
// (B8), for what nobody may mount (B7), and where a link leads elsewhere.
func (c *collector) notMade(rel, path string) string {
	for part := range strings.SplitSeq(filepath.ToSlash(rel), "/") {
		if compose.IsProtected(part) {
			return "it is in " + part + ", by which programs of the host run others later (B8)"
		}
	}
	if link, _ := hostlink.Below(c.facts.ProjectDir, rel); link != "" {
		return link + " on the way is a symbolic link"
	}
	if git, hooks := around(c.facts.ProjectDir, path); git || hooks {
		return "it is in a git directory (B8)"
	}
	if why := c.facts.Refused.Why(path); why != "" {
		return "it " + why + " (B7)"
	}
	return ""
}

// makeDirs makes every missing directory of rel below dir, owned by user.
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
			if info, err := root.Lstat(made); err != nil || !info.IsDir() { // since it was looked at
				return errors.Join(err, fmt.Errorf("%s is no directory", made))
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

// chown gives a new directory to the worker. Only root may; another caller is
// the worker, or the gate says that it can't write.
func chown(root *os.Root, name, user string) error {
	uid, gid, ok := parseIDs(user)
	if !ok || os.Geteuid() != 0 {
		return nil
	}
	return root.Lchown(name, uid, gid)
}
