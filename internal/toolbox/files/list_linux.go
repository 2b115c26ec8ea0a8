package files

import (
	"context"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/tool"
)

// List is list_files.
func List(ctx context.Context, a tool.ListFilesArgs) (*tool.ListFilesResult, error) {
	most, err := within("max_entries", a.MaxEntries, tool.DefaultEntries, tool.MaxEntries)
	if err != nil {
		return nil, err
	}
	g, err := parseGlob(a.Glob, false)
	if err != nil {
		return nil, err
	}
	if a.Path == "" {
		a.Path = "."
	}
	d, err := openDir(a.Path)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	w := &walker{ctx: ctx, root: d, path: a.Path, base: resultPath(a.Path, int(d.Fd())), glob: g, hidden: a.Hidden, ignored: a.Ignored}
	r := &tool.ListFilesResult{Path: a.Path, Entries: []tool.Entry{}}
	size := 0
	add := func(p string, e entry) error {
		t := w.describe(p, e)
		size += len(t.Path) + len(t.Target)
		if len(r.Entries) == most || size > maxResult {
			r.Truncated = true
			return errStop
		}
		r.Entries = append(r.Entries, t)
		return nil
	}
	if a.Glob == "" {
		err = w.here(most+1, add)
	} else {
		err = w.files(add)
	}
	if err != nil {
		return nil, explain(a.Path, err)
	}
	r.Truncated = r.Truncated || w.over
	r.Note = w.note()
	return r, nil
}

// here calls visit for the entries of the directory itself.
func (w *walker) here(most int, visit func(string, entry) error) error {
	var s *scope
	if !w.ignored {
		s, w.prefix = w.above()
		s = w.scope(int(w.root.Fd()), s, w.prefix, w.base, false)
	}
	entries, over, err := w.list(w.root, "", most, func(e entry) bool {
		if !w.hidden && strings.HasPrefix(e.name, ".") {
			return false
		}
		return !w.excludes(s, e.name, e.kind.IsDir())
	})
	if err != nil {
		return err
	}
	w.over = over
	for _, e := range entries {
		if err := visit(e.name, e); err == errStop {
			return nil
		} else if err != nil {
			return err
		}
	}
	return nil
}

// describe returns what an entry is. One that is gone by now keeps what the
// directory said.
func (w *walker) describe(p string, e entry) tool.Entry {
	at := int(w.root.Fd())
	t := tool.Entry{Path: show(w.shown(p)), Type: "other"}
	switch {
	case e.kind.IsDir():
		t.Type = "directory"
	case e.kind.IsRegular():
		t.Type = "file"
		var st unix.Stat_t
		if unix.Fstatat(at, p, &st, unix.AT_SYMLINK_NOFOLLOW) == nil {
			t.Size = st.Size
		}
	case e.kind&os.ModeSymlink != 0:
		t.Type = "symlink"
		target, _ := readlink(at, p)
		t.Target = show(target)
	}
	return t
}
