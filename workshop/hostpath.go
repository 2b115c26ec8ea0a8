package workshop

import (
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/lib/subpath"
)

// homeVariable is what generated files have in the place of ~.
const homeVariable = "${HOME:?}"

// hostUse says what a path of the host is for.
type hostUse struct {
	what    string // "mount source", for messages
	outside bool   // it may be outside the project
	accept  string // the line that allows it, for the hint; empty: nothing does
	instead string // of a path that no worker gets, for the hint
}

// The uses of paths of the host.
var (
	contextUse = hostUse{what: "build context"}
	imageUse   = hostUse{what: "image's path", outside: true}
	secretUse  = hostUse{what: "secret's file", outside: true, instead: "put the value that the worker needs into a file of its own, or write env: VARIABLE"}
)

func mountUseOf(m *Mount) hostUse {
	accepted := *m
	accepted.OutsideProject = true
	return hostUse{what: "mount source", outside: m.OutsideProject, accept: accepted.Entry()}
}

func (u hostUse) hint() string {
	if u.instead != "" {
		return u.instead
	}
	return "mount a directory of the project instead"
}

// relativeProblem returns why p isn't a clean path below the project's
// directory, or returns "".
func relativeProblem(p string) string {
	switch {
	case p == "":
		return "is empty"
	case strings.HasPrefix(p, "/") || strings.HasPrefix(p, "~"):
		return "is not relative"
	case strings.ContainsFunc(p, deceives) || strings.Contains(p, `\`):
		return "has characters that no path here has"
	case p == ".." || strings.HasPrefix(p, "../") || strings.HasPrefix(path.Clean(p), "../") || path.Clean(p) == "..":
		return "leads out of the project"
	case path.Clean(p) != p:
		return "is not clean; write " + path.Clean(p)
	}
	return ""
}

// deceives reports whether no path may have a rune: control characters, and those that
// turn the direction of the line that shows it (Unicode UAX #9).
func deceives(r rune) bool {
	return r < 0x20 || r >= 0x7f && r < 0xa0 || r >= 0x2028 && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

// checkSource refuses a path of the host that a worker must not get (B7), as
// far as the text and the symbolic links of the project tell. The machine is
// looked at again before `up`. A leading `~` becomes the home directory.
func (d *decoder) checkSource(v *Value[string], use hostUse) {
	p, at := v.V, v.Source.Range
	switch {
	case strings.ContainsFunc(p, deceives):
		d.fail(at, "bad-path", "the "+use.what+" has characters that no path here has", "")
		return
	case strings.Contains(p, `\`):
		d.fail(at, "bad-path", fmt.Sprintf("the %s %q has a backslash", use.what, clip(p)), "write slashes")
		return
	case d.foreign() && (strings.HasPrefix(p, "/") || strings.HasPrefix(p, "~") || use.outside && use.accept != ""):
		d.fail(at, "source-path", fmt.Sprintf("the %s %s of a file for other repositories is not a path of the project", use.what, clip(p)), "write a path below the project, such as ./src")
		return
	case p == "~" || strings.HasPrefix(p, "~/"):
		rest := strings.TrimPrefix(p, "~")
		if d.protected(at, p, path.Clean(p), use) {
			return
		}
		if d.home == "" {
			d.fail(at, "bad-path", fmt.Sprintf("the %s %q needs a home directory, and none is known", use.what, clip(p)), "set HOME, or write the path out")
			return
		}
		// Generated files must not name the caller's home.
		if v.Source.Template == "" {
			v.Source.Template = homeVariable + diag.Literal(rest)
		} else {
			v.Source.Template = strings.Replace(v.Source.Template, "~", homeVariable, 1)
		}
		v.V = d.home + rest
		d.outside(at, p, use)
		d.protected(at, p, path.Clean(v.V), use)
		return
	case strings.HasPrefix(p, "~"):
		d.fail(at, "bad-path", fmt.Sprintf("the %s %q names another user's home directory", use.what, clip(p)), "write the path out")
		return
	case strings.HasPrefix(p, "/"):
		if d.protected(at, p, path.Clean(p), use) {
			return
		}
		if d.root != "" && subpath.Within(path.Clean(p), path.Join(d.root, d.dir)) {
			return
		}
		d.outside(at, p, use)
		return
	}
	d.relativeSource(p, at, use)
}

// outside reports a path outside of the project unless the file allows it.
func (d *decoder) outside(at diag.Range, p string, use hostUse) {
	if use.outside {
		return
	}
	x := diag.Diagnostic{
		Severity: diag.Error, Code: "outside-project", Range: at,
		Summary: fmt.Sprintf("the %s %s is outside the project's directory", use.what, clip(p)),
		Hint:    "use a path below the directory of " + d.base(),
	}
	if use.accept != "" {
		x.Hint = "write " + use.accept + " if that is meant"
	}
	d.report(x)
}

// relativeSource follows a path that is relative to the file, link by link.
func (d *decoder) relativeSource(p string, at diag.Range, use hostUse) {
	end := d.follow(path.Join(d.dir, p))
	switch {
	case end.loop:
		d.fail(at, "bad-path", fmt.Sprintf("the %s %s can't be resolved: more than %d symbolic links, more than %d parts by them, or a link that can't be read", use.what, clip(p), maxLinks, maxParts), "remove the loop, or name where the links lead")
		return
	case end.abs != "":
		shown := p
		if end.linked {
			shown = p + " (a symbolic link to " + end.abs + ")"
		}
		if d.protected(at, shown, end.abs, use) {
			return
		}
		if d.root == "" || !subpath.Within(end.abs, path.Join(d.root, d.dir)) {
			d.outside(at, shown, use)
		}
		return
	case end.up != "":
		shown := p
		if end.linked {
			shown = p + " (a symbolic link out of the project)"
		}
		// Where the project is isn't known. Climbing leads to the root at
		// the latest, so what follows the dots is judged as if from there.
		if end.linked && d.protected(at, shown, path.Clean("/"+end.up), use) {
			return
		}
		d.outside(at, shown, use)
		return
	}
	if d.root != "" && d.protected(at, p, path.Join(d.root, end.inside), use) {
		return
	}
	if d.dir != "." && !subpath.Within("/"+end.inside, "/"+d.dir) {
		d.outside(at, p, use)
	}
}

// ending is where a path leads once its symbolic links are followed.
type ending struct {
	inside string // path of the fs.FS
	abs    string // absolute path of the host, when it leaves the fs.FS
	up     string // from the fs.FS, when it leaves it to an unknown place
	linked bool   // a symbolic link made it leave
	loop   bool   // through too many links, too long by them, or one that can't be read
}

// follow resolves the symbolic links of a path of the fs.FS. Answers are kept:
// a thousand workers often mount the same few directories.
func (d *decoder) follow(p string) ending {
	p = path.Clean(p)
	if e, ok := d.followed[p]; ok {
		return e
	}
	if d.followed == nil {
		d.followed = map[string]ending{}
	}
	e := followLinks(d.fsys, d.root, p)
	d.followed[p] = e
	return e
}

// followLinks is [decoder.follow] of a file system; root is its absolute path on
// the host, or empty. A link that can't be read leads nowhere.
func followLinks(fsys fs.FS, root, p string) ending {
	links := 0
	rest := strings.Split(p, "/")
	cur := "."
	for parts := 0; len(rest) > 0; parts++ {
		if parts > maxParts || len(cur) > maxWay {
			return ending{loop: true}
		}
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			if cur != "." {
				cur = path.Dir(cur)
				continue
			}
			if root != "" {
				return ending{abs: path.Join(append([]string{path.Dir(root)}, rest...)...), linked: links > 0}
			}
			return ending{up: path.Join(append([]string{".."}, rest...)...), linked: links > 0}
		}
		next := path.Join(cur, name)
		info, err := lstat(fsys, next)
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			cur = next
			continue
		}
		target, err := fs.ReadLink(fsys, next)
		if links++; err != nil || links > maxLinks {
			return ending{loop: true}
		}
		if strings.HasPrefix(target, "/") {
			abs := path.Join(append([]string{target}, rest...)...)
			if root != "" && subpath.Within(abs, root) {
				rest = strings.Split(strings.TrimPrefix(strings.TrimPrefix(abs, root), "/"), "/")
				cur = "."
				continue
			}
			return ending{abs: abs, linked: true}
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return ending{inside: cur}
}

func lstat(fsys fs.FS, name string) (fs.FileInfo, error) {
	if fsys == nil {
		return nil, fs.ErrNotExist
	}
	return fs.Lstat(fsys, name)
}

// exists reports whether a path relative to the file exists; known is false
// where the fs.FS can't tell.
func (d *decoder) exists(p string) (exists, known bool) {
	if strings.HasPrefix(p, "/") {
		return false, false
	}
	end := d.follow(path.Join(d.dir, p))
	if end.inside == "" {
		return false, false
	}
	_, err := lstat(d.fsys, end.inside)
	return err == nil, true
}

// protected reports an absolute path that B7 refuses, and reports whether it did.
func (d *decoder) protected(at diag.Range, shown, p string, use hostUse) bool {
	why := d.refused.Why(p)
	if why == "" {
		return false
	}
	d.report(diag.Diagnostic{
		Severity: diag.Error, Code: "protected-path", Range: at,
		Summary: fmt.Sprintf("the %s %s %s", use.what, clip(shown), why),
		Detail:  "A worker never gets these (B7); no key opens them.",
		Hint:    use.hint(),
	})
	return true
}
