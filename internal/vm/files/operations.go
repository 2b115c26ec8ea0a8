package files

import (
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// The operations that a guest has, each with its checks.

type cancel = <-chan struct{}

// String implements [fuse.RawFileSystem].
func (g *gate) String() string { return "share" }

// Lookup implements [fuse.RawFileSystem].
func (g *gate) Lookup(c cancel, in *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	if s := g.adds(in.NodeId, name); !s.Ok() {
		return s
	}
	return g.entry(g.fs.Lookup(c, in, name, out), out)
}

// GetAttr implements [fuse.RawFileSystem].
func (g *gate) GetAttr(c cancel, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	call := func() fuse.Status { return g.fs.GetAttr(c, in, out) }
	switch s := g.node(in.NodeId); {
	case !s.Ok():
		return s
	case in.Fh() == 0:
		return call()
	}
	return g.withEither(in.NodeId, in.Fh(), call)
}

// SetAttr implements [fuse.RawFileSystem].
func (g *gate) SetAttr(c cancel, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	call := func() fuse.Status { return g.fs.SetAttr(c, in, out) }
	s := g.change(in.NodeId)
	fh, ok := in.GetFh()
	switch {
	case !s.Ok():
		return s
	case !ok:
		return call()
	}
	return g.withEither(in.NodeId, fh, call)
}

// Readlink implements [fuse.RawFileSystem].
func (g *gate) Readlink(c cancel, in *fuse.InHeader) ([]byte, fuse.Status) {
	if s := g.node(in.NodeId); !s.Ok() {
		return nil, s
	}
	return g.fs.Readlink(c, in)
}

// StatFs implements [fuse.RawFileSystem].
func (g *gate) StatFs(c cancel, in *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	if s := g.node(in.NodeId); !s.Ok() {
		return s
	}
	return g.fs.StatFs(c, in, out)
}

// Mknod implements [fuse.RawFileSystem].
func (g *gate) Mknod(c cancel, in *fuse.MknodIn, name string, out *fuse.EntryOut) fuse.Status {
	if s := g.makes(in.NodeId, name); !s.Ok() {
		return s
	}
	return g.entry(g.fs.Mknod(c, in, name, out), out)
}

// Mkdir implements [fuse.RawFileSystem].
func (g *gate) Mkdir(c cancel, in *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	if s := g.makes(in.NodeId, name); !s.Ok() {
		return s
	}
	return g.entry(g.fs.Mkdir(c, in, name, out), out)
}

// Symlink implements [fuse.RawFileSystem].
func (g *gate) Symlink(c cancel, in *fuse.InHeader, target, name string, out *fuse.EntryOut) fuse.Status {
	if s := g.makes(in.NodeId, name); !s.Ok() {
		return s
	}
	return g.entry(g.fs.Symlink(c, in, target, name, out), out)
}

// Link implements [fuse.RawFileSystem].
func (g *gate) Link(c cancel, in *fuse.LinkIn, name string, out *fuse.EntryOut) fuse.Status {
	if s := g.makes(in.NodeId, name); !s.Ok() {
		return s
	}
	if !g.pin(in.Oldnodeid) {
		return estale
	}
	defer g.unpin(in.Oldnodeid)
	return g.entry(g.fs.Link(c, in, name, out), out)
}

// Unlink implements [fuse.RawFileSystem].
func (g *gate) Unlink(c cancel, in *fuse.InHeader, name string) fuse.Status {
	if s := g.removes(in.NodeId, name); !s.Ok() {
		return s
	}
	return g.fs.Unlink(c, in, name)
}

// Rmdir implements [fuse.RawFileSystem].
func (g *gate) Rmdir(c cancel, in *fuse.InHeader, name string) fuse.Status {
	if s := g.removes(in.NodeId, name); !s.Ok() {
		return s
	}
	return g.fs.Rmdir(c, in, name)
}

// removes is name for a change that adds no node.
func (g *gate) removes(id uint64, name string) fuse.Status {
	if s := g.change(id); !s.Ok() {
		return s
	}
	return g.name(id, name)
}

// Rename implements [fuse.RawFileSystem].
func (g *gate) Rename(c cancel, in *fuse.RenameIn, name, newName string) fuse.Status {
	s := g.removes(in.NodeId, name)
	if s.Ok() {
		s = g.removes(in.Newdir, newName)
	}
	if !s.Ok() {
		return s
	}
	if !g.pin(in.Newdir) {
		return estale
	}
	defer g.unpin(in.Newdir)
	return g.fs.Rename(c, in, name, newName)
}

// GetXAttr implements [fuse.RawFileSystem].
func (g *gate) GetXAttr(c cancel, in *fuse.InHeader, attr string, to []byte) (uint32, fuse.Status) {
	if s := g.node(in.NodeId); !s.Ok() {
		return 0, s
	}
	return g.fs.GetXAttr(c, in, attr, to)
}

// ListXAttr implements [fuse.RawFileSystem].
func (g *gate) ListXAttr(c cancel, in *fuse.InHeader, to []byte) (uint32, fuse.Status) {
	if s := g.node(in.NodeId); !s.Ok() {
		return 0, s
	}
	return g.fs.ListXAttr(c, in, to)
}

// SetXAttr implements [fuse.RawFileSystem].
func (g *gate) SetXAttr(c cancel, in *fuse.SetXAttrIn, attr string, data []byte) fuse.Status {
	if s := g.change(in.NodeId); !s.Ok() {
		return s
	}
	return g.fs.SetXAttr(c, in, attr, data[:min(len(data), int(in.Size))])
}

// RemoveXAttr implements [fuse.RawFileSystem].
func (g *gate) RemoveXAttr(c cancel, in *fuse.InHeader, attr string) fuse.Status {
	if s := g.change(in.NodeId); !s.Ok() {
		return s
	}
	return g.fs.RemoveXAttr(c, in, attr)
}

// Create implements [fuse.RawFileSystem].
func (g *gate) Create(c cancel, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	if s := g.makes(in.NodeId, name); !s.Ok() {
		return s
	}
	return g.creates(out, func() fuse.Status { return g.fs.Create(c, in, name, out) })
}

// Tmpfile implements [fuse.RawFileSystem].
func (g *gate) Tmpfile(c cancel, in *fuse.CreateIn, out *fuse.CreateOut) fuse.Status {
	s := g.change(in.NodeId)
	if s.Ok() {
		s = g.room()
	}
	if !s.Ok() {
		return s
	}
	return g.creates(out, func() fuse.Status { return g.fs.Tmpfile(c, in, out) })
}

func (g *gate) creates(out *fuse.CreateOut, create func() fuse.Status) fuse.Status {
	if s := g.mayOpen(); !s.Ok() {
		return s
	}
	s := g.entry(create(), &out.EntryOut)
	return g.opened(s, out.NodeId, out.Fh, false)
}

// Open implements [fuse.RawFileSystem].
func (g *gate) Open(c cancel, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	if g.readOnly && in.Flags&(unix.O_ACCMODE|unix.O_TRUNC) != unix.O_RDONLY {
		return fuse.EROFS
	}
	s := g.node(in.NodeId)
	if s.Ok() {
		s = g.mayOpen()
	}
	if !s.Ok() {
		return s
	}
	return g.opened(g.fs.Open(c, in, out), in.NodeId, out.Fh, false)
}

// Read implements [fuse.RawFileSystem].
func (g *gate) Read(c cancel, in *fuse.ReadIn, to []byte) (r fuse.ReadResult, status fuse.Status) {
	status = g.with(in.NodeId, in.Fh, false, func() (s fuse.Status) { r, s = g.fs.Read(c, in, to); return })
	return r, status
}

// Write implements [fuse.RawFileSystem].
func (g *gate) Write(c cancel, in *fuse.WriteIn, data []byte) (n uint32, status fuse.Status) {
	if s := g.change(in.NodeId); !s.Ok() {
		return 0, s
	}
	data = data[:min(len(data), int(in.Size))]
	status = g.with(in.NodeId, in.Fh, false, func() (s fuse.Status) { n, s = g.fs.Write(c, in, data); return })
	return n, status
}

// CopyFileRange implements [fuse.RawFileSystem].
func (g *gate) CopyFileRange(c cancel, in *fuse.CopyFileRangeIn) (n uint32, status fuse.Status) {
	if s := g.change(in.NodeId); !s.Ok() {
		return 0, s
	}
	status = g.with(in.NodeId, in.FhIn, false, func() fuse.Status {
		return g.with(in.NodeIdOut, in.FhOut, false, func() (s fuse.Status) { n, s = g.fs.CopyFileRange(c, in); return })
	})
	return n, status
}

// Fallocate implements [fuse.RawFileSystem].
func (g *gate) Fallocate(c cancel, in *fuse.FallocateIn) fuse.Status {
	if s := g.change(in.NodeId); !s.Ok() {
		return s
	}
	return g.with(in.NodeId, in.Fh, false, func() fuse.Status { return g.fs.Fallocate(c, in) })
}

// Lseek implements [fuse.RawFileSystem].
func (g *gate) Lseek(c cancel, in *fuse.LseekIn, out *fuse.LseekOut) fuse.Status {
	return g.with(in.NodeId, in.Fh, false, func() fuse.Status { return g.fs.Lseek(c, in, out) })
}

// Flush implements [fuse.RawFileSystem].
func (g *gate) Flush(c cancel, in *fuse.FlushIn) fuse.Status {
	return g.with(in.NodeId, in.Fh, false, func() fuse.Status { return g.fs.Flush(c, in) })
}

// Fsync implements [fuse.RawFileSystem].
func (g *gate) Fsync(c cancel, in *fuse.FsyncIn) fuse.Status {
	return g.with(in.NodeId, in.Fh, false, func() fuse.Status { return g.fs.Fsync(c, in) })
}

// Release implements [fuse.RawFileSystem].
func (g *gate) Release(_ cancel, in *fuse.ReleaseIn) { g.release(in.NodeId, in.Fh, false) }

// OpenDir implements [fuse.RawFileSystem].
func (g *gate) OpenDir(c cancel, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	s := g.node(in.NodeId)
	if s.Ok() {
		s = g.mayOpen()
	}
	if !s.Ok() {
		return s
	}
	return g.opened(g.fs.OpenDir(c, in, out), in.NodeId, out.Fh, true)
}

// ReadDir implements [fuse.RawFileSystem].
func (g *gate) ReadDir(c cancel, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	return g.with(in.NodeId, in.Fh, true, func() fuse.Status { return g.fs.ReadDir(c, in, out) })
}

// ReadDirPlus implements [fuse.RawFileSystem].
func (g *gate) ReadDirPlus(c cancel, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	if s := g.room(); !s.Ok() {
		return s
	}
	s := g.with(in.NodeId, in.Fh, true, func() fuse.Status { return g.fs.ReadDirPlus(c, in, out) })
	if s.Ok() {
		g.listed(out.Bytes())
	}
	return s
}

// FsyncDir implements [fuse.RawFileSystem].
func (g *gate) FsyncDir(c cancel, in *fuse.FsyncIn) fuse.Status {
	return g.with(in.NodeId, in.Fh, true, func() fuse.Status { return g.fs.FsyncDir(c, in) })
}

// ReleaseDir implements [fuse.RawFileSystem].
func (g *gate) ReleaseDir(in *fuse.ReleaseIn) { g.release(in.NodeId, in.Fh, true) }
