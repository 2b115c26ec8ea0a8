package files

import (
	"context"
	"fmt"
	"io"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/tool"
)

// Search is search_files.
func Search(ctx context.Context, a tool.SearchFilesArgs) (*tool.SearchFilesResult, error) {
	most, err := within("max_matches", a.MaxMatches, tool.DefaultMatches, tool.MaxMatches)
	if err != nil {
		return nil, err
	}
	around, err := within("context", a.Context, 0, tool.MaxContextLines)
	if err != nil {
		return nil, err
	}
	m, err := newMatcher(a)
	if err != nil {
		return nil, err
	}
	g, err := parseGlob(a.Glob, true)
	if err != nil {
		return nil, err
	}
	if a.Path == "" {
		a.Path = "."
	}
	if err := checkPath(a.Path); err != nil {
		return nil, err
	}
	s := &searcher{matcher: m, filesOnly: a.FilesOnly, around: around, most: most, buf: make([]byte, 2*chunk)}
	r := &tool.SearchFilesResult{}
	if isDirectory(a.Path) {
		err = s.below(ctx, a, g, r)
		if err != nil {
			return nil, explain(a.Path, err)
		}
	} else {
		f, _, err := openFile(a.Path, unix.O_RDONLY)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		if err := s.file(ctx, resultPath(a.Path, int(f.Fd())), f); err != nil && err != errStop {
			if err == errBinary {
				return nil, fmt.Errorf("%s is a binary file, and those aren't searched", show(a.Path))
			}
			return nil, explain(a.Path, err)
		}
		r.FilesSearched = 1
	}
	r.Matches, r.Truncated = s.matches, r.Truncated || s.truncated
	if r.Matches == nil {
		r.Matches = []tool.Match{}
	}
	return r, nil
}

// below searches the files of a directory.
func (s *searcher) below(ctx context.Context, a tool.SearchFilesArgs, g glob, r *tool.SearchFilesResult) error {
	d, err := openDir(a.Path)
	if err != nil {
		return err
	}
	defer d.Close()
	w := &walker{ctx: ctx, root: d, path: a.Path, base: resultPath(a.Path, int(d.Fd())), glob: g, hidden: a.Hidden, ignored: a.Ignored}
	s.base = w.base
	err = w.files(func(p string, e entry) error {
		if !e.kind.IsRegular() {
			return nil
		}
		err := s.open(ctx, w, p)
		switch {
		case err == nil || err == errStop:
			r.FilesSearched++
			return err
		case err == errBinary || err == unix.ENOENT:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		}
		w.left.add(w.shown(p))
		return nil
	})
	r.Truncated = w.over
	r.Note = w.note()
	return err
}

// open searches a file that a directory has told to be a regular one. It is
// opened without a look before, as that would cost as much as the search of a
// small file; it doesn't wait if it is a FIFO by now.
func (s *searcher) open(ctx context.Context, w *walker, p string) error {
	const flags = unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC
	fd, err := retry(func() (int, error) {
		if view != nil {
			return view.openAt(unix.AT_FDCWD, w.place(p), flags)
		}
		return unix.Openat(int(w.root.Fd()), p, flags, 0)
	})
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	st, err := regular(fd)
	if err != nil {
		return err
	}
	if st.Size == 0 && st.Blocks == 0 && !kernelOnly(fd) {
		return nil
	}
	return s.file(ctx, p, descriptor(fd))
}

// descriptor reads without what os.File does for files that wait.
type descriptor int

func (d descriptor) Read(p []byte) (int, error) {
	n, err := retry(func() (int, error) { return unix.Read(int(d), p) })
	if n <= 0 && err == nil {
		return 0, io.EOF
	}
	return max(n, 0), err
}
