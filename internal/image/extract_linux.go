package image

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// extractor unpacks the layers of one image over one another.
//
//   - Links are data: nothing is written, linked or removed through a symbolic link,
//     and a hard link may only lead to a file of the image.
//   - Device nodes and FIFOs are refused. A FIFO in a root that several workers share
//     would be a channel between them, although the root is read-only. Below dev/
//     they are left out, as a worker's own /dev covers it.
//   - setuid and setgid bits are dropped. In a worker they have no effect (nosuid,
//     no_new_privs); in the store they would be setuid programs for everybody with
//     access to it.
//   - Extended attributes are dropped: security.* and trusted.* control the host's
//     kernel, user.overlay.* controls an overlay, and programs of images don't need
//     others.
//   - Times are kept: compiled files are compared with their source by them. Directories
//     without an entry have the same everywhere, so that an image's files are the same.
type extractor struct {
	ctx    context.Context // ends the copying of holes
	root   int             // the directory that everything goes below
	limits Limits
	chown  bool // set the owners of files: for root

	bytes, entries int64                // so far
	dirs           map[string]*metadata // of directories: set at the end
	lower          bool                 // there are layers below this one
	seen           map[string]struct{}  // entries of this layer; nil in the first
	open           int                  // the directory of the last entry, or -1
	openPath       string
	buffer         []byte
}

// epoch is the time of directories that have no entry.
var epoch = time.Unix(0, 0)

// metadata of an entry.
type metadata struct {
	mode     uint32
	uid, gid int
	time     time.Time // zero: none
}

func newExtractor(ctx context.Context, root int, limits Limits, chown bool) *extractor {
	return &extractor{
		ctx: ctx, root: root, limits: limits.withDefaults(), chown: chown, open: -1,
		dirs: map[string]*metadata{"": {mode: 0o755, time: epoch}}, buffer: make([]byte, 128<<10),
	}
}

// layer unpacks one uncompressed layer over those before.
func (x *extractor) layer(r io.Reader) error {
	if x.lower {
		x.seen = map[string]struct{}{}
	}
	x.lower = true
	for t := tar.NewReader(r); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("the layer is not a valid tar archive: %w", err)
		}
		if err := x.entry(h, t); err != nil {
			return err
		}
	}
}

func (x *extractor) count() error {
	if x.entries++; x.entries > x.limits.Entries {
		return fmt.Errorf("the image has more than %d files", x.limits.Entries)
	}
	return nil
}

// made records an entry; dir is set for directories.
func (x *extractor) made(p string, dir *metadata) {
	if x.seen != nil {
		x.seen[p] = struct{}{}
	}
	if dir != nil {
		x.dirs[p] = dir
	}
}

func (x *extractor) entry(h *tar.Header, r io.Reader) error {
	if h.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	if err := x.count(); err != nil {
		return err
	}
	p, err := x.limits.entryPath(h.Name)
	if err != nil {
		return err
	}
	if target, opaque, ok, err := hidden(p); ok || err != nil {
		if err != nil {
			return err
		}
		return x.hide(target, opaque)
	}
	m, err := metadataOf(h)
	if err != nil {
		return fmt.Errorf("%q %w", p, err)
	}
	switch h.Typeflag {
	case tar.TypeDir:
		return x.directory(p, m)
	case tar.TypeReg, tar.TypeGNUSparse, tar.TypeCont:
		return x.file(p, m, h.Size, r)
	case tar.TypeLink:
		return x.link(p, h.Linkname)
	case tar.TypeSymlink:
		return x.symlink(p, m, h.Linkname)
	case tar.TypeChar, tar.TypeBlock, tar.TypeFifo:
		if strings.HasPrefix(p, "dev/") {
			return nil
		}
		what := map[byte]string{tar.TypeChar: "a device", tar.TypeBlock: "a device", tar.TypeFifo: "a FIFO"}[h.Typeflag]
		return fmt.Errorf("%q is %s, which images must not contain", p, what)
	}
	return fmt.Errorf("%q has the unknown type %q", p, h.Typeflag)
}

func metadataOf(h *tar.Header) (*metadata, error) {
	if h.Uid < 0 || h.Gid < 0 || int64(h.Uid) >= math.MaxUint32 || int64(h.Gid) >= math.MaxUint32 {
		return nil, fmt.Errorf("has the owner %d:%d, which is not valid", h.Uid, h.Gid)
	}
	mode := uint32(h.Mode & 0o777)
	if h.Typeflag == tar.TypeDir {
		mode |= uint32(h.Mode & unix.S_ISVTX)
	}
	return &metadata{mode: mode, uid: h.Uid, gid: h.Gid, time: h.ModTime}, nil
}

// hide applies a whiteout: it affects only the layers below, whatever its position in
// its own layer.
func (x *extractor) hide(p string, opaque bool) error {
	if x.seen == nil || p == "" && !opaque {
		return nil
	}
	defer x.forget()
	if p == "" {
		return x.removeBelow(place{x.root, "."}, "", x.seen)
	}
	at, err := x.at(p, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("whiteout: %w", err)
	}
	if opaque {
		return x.removeBelow(at, p, x.seen)
	}
	return x.remove(at, p, x.seen)
}

// finish sets the modes and times of directories, the deepest first: until now they had
// to be writable.
func (x *extractor) finish() error {
	defer x.forget()
	for _, p := range slices.Backward(slices.Sorted(maps.Keys(x.dirs))) {
		m, at := x.dirs[p], place{x.root, "."}
		if p != "" {
			var err error
			if at, err = x.at(p, false); err != nil {
				return err
			}
		}
		fd, err := beneath(at.dir, at.base, unix.O_RDONLY|unix.O_DIRECTORY)
		if err != nil {
			return fmt.Errorf("open %q: %w", p, err)
		}
		err = unix.Fchmod(fd, m.mode)
		unix.Close(fd)
		if err == nil {
			err = setTime(at, m.time)
		}
		if err != nil {
			return fmt.Errorf("set the mode of %q: %w", p, err)
		}
	}
	return nil
}

// setTime sets the modification time, if there is one, limited to the range that all
// file systems support.
func setTime(at place, t time.Time) error {
	if t.IsZero() {
		return nil
	}
	ts := unix.Timespec{Sec: min(max(t.Unix(), 0), 1<<33), Nsec: int64(t.Nanosecond())}
	return unix.UtimesNanoAt(at.dir, at.base, []unix.Timespec{ts, ts}, unix.AT_SYMLINK_NOFOLLOW)
}
