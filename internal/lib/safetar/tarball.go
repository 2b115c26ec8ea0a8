// Package safetar packs files for a worker and extracts streams from one. Streams of a
// worker are not trusted: nothing is written outside of the target, and entries that
// could lead out of it are skipped and reported.
package safetar

import (
	"archive/tar"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/llmdo/workshop/internal/lib/subpath"
)

// Pack writes a file or directory of a root as a tar stream whose first entry is name. All
// entries belong to uid and gid, those of the worker's target directory. No link is followed
// but those on the way to the file, which stay in the root; of a directory nothing outside of
// it is read, even if a worker changes it concurrently.
func Pack(w io.Writer, root *os.Root, file, name string, uid, gid int) error {
	p := &packer{t: tar.NewWriter(w), uid: uid, gid: gid}
	return errors.Join(p.pack(root, file, name), p.t.Close())
}

type packer struct {
	t        *tar.Writer
	root     *os.Root
	uid, gid int
}

func (p *packer) pack(root *os.Root, file, name string) error {
	info, err := root.Lstat(file)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		p.root = root
		return p.put(file, name, info)
	}
	if p.root, err = root.OpenRoot(file); err != nil {
		return err
	}
	defer p.root.Close()
	if now, err := p.root.Stat("."); err != nil || !os.SameFile(info, now) {
		return errors.Join(err, replacedError(p.root.Name()))
	}
	return p.entry(".", name)
}

func replacedError(file string) error { return fmt.Errorf("%s was replaced while it was copied", file) }

// entry writes a file of the root, with everything below it.
func (p *packer) entry(file, name string) error {
	info, err := p.root.Lstat(file)
	if err != nil {
		return err
	}
	return p.put(file, name, info)
}

// put is entry of a file that is, or was, what info says.
func (p *packer) put(file, name string, info fs.FileInfo) (err error) {
	link := ""
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		if link, err = p.root.Readlink(file); err != nil {
			return err
		}
	case !info.IsDir() && !info.Mode().IsRegular():
		return fmt.Errorf("%s is neither file, directory nor link", filepath.Join(p.root.Name(), file))
	}
	header, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return err
	}
	header.Name = name
	header.Uid, header.Gid, header.Uname, header.Gname = p.uid, p.gid, "", ""
	header.Mode &= 0o777
	if err := p.t.WriteHeader(header); err != nil || link != "" {
		return err
	}
	f, err := p.root.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0) // by now it may be a FIFO
	if err != nil {
		return err
	}
	defer f.Close()
	if now, err := f.Stat(); err != nil || !os.SameFile(info, now) {
		return errors.Join(err, replacedError(filepath.Join(p.root.Name(), file)))
	}
	if !info.IsDir() {
		_, err = io.Copy(p.t, f)
		return err
	}
	list, err := f.ReadDir(-1)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, d := range list {
		if err := p.entry(filepath.Join(file, d.Name()), path.Join(name, d.Name())); err != nil {
			return err
		}
	}
	return nil
}

// Limits bound what Extract creates; 0: no bound.
type Limits struct {
	Bytes   int64 // of all files, by the sizes in their headers
	Entries int   // files, directories, links, and skipped entries
	Depth   int   // nested directories
}

// ErrLimit is wrapped by the error of a stream that exceeds its Limits.
var ErrLimit = errors.New("too much")

// maxSkipped bounds the reported skipped entries.
const maxSkipped = 100

// taken is the used part of the limits.
type taken struct {
	bytes   int64
	entries int
}

// take counts an entry before it is created.
func (n *taken) take(h *tar.Header, l Limits) error {
	n.entries++
	if h.Typeflag == tar.TypeReg {
		n.bytes += min(h.Size, math.MaxInt64-n.bytes)
	}
	switch {
	case l.Depth > 0 && strings.Count(strings.Trim(path.Clean(h.Name), "/"), "/") >= l.Depth:
		return fmt.Errorf("%w: directories are nested deeper than %d", ErrLimit, l.Depth)
	case l.Entries > 0 && n.entries > l.Entries:
		return fmt.Errorf("%w: more than %d files and directories", ErrLimit, l.Entries)
	case l.Bytes > 0 && n.bytes > l.Bytes:
		return fmt.Errorf("%w: with %.200q, of %d bytes, more than %d in all", ErrLimit, h.Name, h.Size, l.Bytes)
	}
	return nil
}

// copyHoles copies size bytes, and makes holes of blocks of zeros.
func copyHoles(f *os.File, r io.Reader, size int64) error {
	zeros, b := make([]byte, 64<<10), make([]byte, 64<<10)
	for at := int64(0); at < size; {
		n := min(int64(len(b)), size-at)
		if _, err := io.ReadFull(r, b[:n]); err != nil {
			return err
		}
		if !bytes.Equal(b[:n], zeros[:n]) {
			if _, err := f.WriteAt(b[:n], at); err != nil {
				return err
			}
		}
		at += n
	}
	return f.Truncate(size)
}

// Extract extracts a stream from a container into a directory; name, if set, replaces the
// first entry's name. Nothing is written outside of it, not even through links ([os.Root]),
// nor more than the limits allow; blocks of zeros become holes. It returns the skipped
// entries with reasons, at most maxSkipped.
func Extract(root *os.Root, name string, r io.Reader, l Limits) (skipped []string, err error) {
	var n taken
	left := 0
	defer func() {
		if more := left - len(skipped); more > 0 {
			skipped = append(skipped, fmt.Sprintf("%d more", more))
		}
	}()
	skip := func(what string) {
		if left++; len(skipped) < maxSkipped {
			skipped = append(skipped, clip(what))
		}
	}
	t := tar.NewReader(r)
	first := ""
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return skipped, nil
		}
		if err != nil {
			return skipped, fmt.Errorf("tar stream: %w", err)
		}
		if err := n.take(h, l); err != nil {
			return skipped, err
		}
		entry := strings.TrimSuffix(path.Clean(h.Name), "/")
		if first == "" {
			first = entry
		}
		if !filepath.IsLocal(filepath.FromSlash(entry)) {
			skip(h.Name + ": the name leads out of the target")
			continue
		}
		if name != "" {
			entry = path.Join(name, strings.TrimPrefix(strings.TrimPrefix(entry, first), "/"))
		}
		why, err := extractOne(root, cmp.Or(name, "."), entry, h, t)
		if err != nil {
			return skipped, err
		}
		if why != "" {
			skip(entry + ": " + why)
		}
	}
}

// maxSkippedText bounds the text about one skipped entry, in bytes.
const maxSkippedText = 500

// clip keeps the beginning and the end, which has the reason.
func clip(s string) string {
	if len(s) <= maxSkippedText {
		return s
	}
	return s[:maxSkippedText/2] + "…" + s[len(s)-maxSkippedText/2:]
}

// extractOne writes one entry; why is the reason for skipping it. Links stay in target, a name
// in the root.
func extractOne(root *os.Root, target, entry string, h *tar.Header, r io.Reader) (why string, err error) {
	mode := fs.FileMode(h.Mode) & 0o777
	if link := linkOnTheWay(root, entry); link != "" {
		return "below the link " + link, nil
	}
	if parent := path.Dir(entry); parent != "." {
		if err := root.MkdirAll(parent, 0o755); err != nil {
			return "", err
		}
	}
	switch h.Typeflag {
	case tar.TypeDir:
		// Ours to write into, whatever the container says.
		if err := root.MkdirAll(entry, mode|0o700); err != nil {
			return "", err
		}
	case tar.TypeReg:
		if err := removeFile(root, entry); err != nil {
			return "", err
		}
		f, err := root.OpenFile(entry, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if err != nil {
			return "", err
		}
		err = copyHoles(f, r, h.Size)
		return "", errors.Join(err, f.Close())
	case tar.TypeSymlink:
		link := filepath.FromSlash(h.Linkname)
		if filepath.IsAbs(link) || climbsLater(h.Linkname) || !subpath.Within(path.Join(path.Dir(entry), filepath.ToSlash(link)), target) {
			return "a link out of the target, to " + h.Linkname, nil
		}
		if err := removeFile(root, entry); err != nil {
			return "", err
		}
		return "", root.Symlink(link, entry)
	default:
		return "neither file, directory nor link", nil
	}
	return "", nil
}

// climbsLater reports whether ".." follows a name in a link: if that name is a link
// itself, ".." is relative to its target and can lead out of the directory.
func climbsLater(link string) bool {
	named := false
	for part := range strings.SplitSeq(filepath.ToSlash(link), "/") {
		if part == ".." && named {
			return true
		}
		named = named || part != ".." && part != "." && part != ""
	}
	return false
}

// linkOnTheWay finds a symlink among the parents of an entry: below one, a relative link
// leads to another place than its text suggests.
func linkOnTheWay(root *os.Root, entry string) string {
	for dir := path.Dir(entry); dir != "."; dir = path.Dir(dir) {
		if info, err := root.Lstat(dir); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return dir
		}
	}
	return ""
}

// removeFile makes room for an entry; a directory stays.
func removeFile(root *os.Root, entry string) error {
	info, err := root.Lstat(entry)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.IsDir() {
		return fmt.Errorf("%s is a directory here", entry)
	}
	return root.Remove(entry)
}
