package facts

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/lib/hostlink"
)

// create records a missing rw directory inside the project, which is created with
// the worker's owner.
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
	d := dirToMake{source: u.source, path: path, rel: rel, user: u.user, at: u.at}
	if problem, refused := d.refused(&c.facts); refused {
		c.list = append(c.list, problem)
		return
	}
	c.facts.ToCreate = append(c.facts.ToCreate, u.source)
	c.missing.dirs = append(c.missing.dirs, d)
}

// dirToMake is a missing source of a read-write mount.
type dirToMake struct {
	source    string // as written
	path, rel string // absolute, and below the project's directory
	user      string // UID:GID of its owner
	at        diag.Range
}

// refused returns the problem with a directory that isn't created.
func (d *dirToMake) refused(f *compose.Facts) (problem diag.Diagnostic, refused bool) {
	why := d.notMade(f)
	return diag.Diagnostic{
		Severity: diag.Error, Code: "mount-source-create", Range: d.at,
		Summary: fmt.Sprintf("%s does not exist and isn't created: %s", d.source, why), Hint: "create it yourself, or mount another directory",
	}, why != ""
}

// notMade returns why a directory of the project is not created: an `up` that will
// be refused must leave nothing on the host. It is refused for what programs of the
// host read (B8), for what may not be mounted (B7), and if a link leads elsewhere.
func (d *dirToMake) notMade(f *compose.Facts) string {
	for part := range strings.SplitSeq(filepath.ToSlash(d.rel), "/") {
		if compose.IsProtected(part) {
			return "it is in " + part + ", by which programs of the host run others later (B8)"
		}
	}
	if link, _ := hostlink.Below(f.ProjectDir, d.rel); link != "" {
		return link + " in its path is a symbolic link"
	}
	if git, hooks := around(f.ProjectDir, d.path); git || hooks {
		return "it is in a git directory (B8)"
	}
	if why := f.Refusal(d.path); why != "" {
		return "it " + why + " (B7)"
	}
	return ""
}
