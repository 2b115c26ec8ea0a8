package doctor

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// magic are the types of file systems that are named (statfs(2)).
var magic = map[int64]string{
	0x6969: "nfs", 0xff534d42: "cifs", 0xfe534d42: "smb", 0x01021997: "9p", 0x00c36400: "ceph", 0x65735546: "fuse",
	0x5346414f: "afs", 0x786f4256: "vboxsf", 0x6a656a63: "virtiofs", 0x794c7630: "overlayfs", 0x01021994: "tmpfs",
	0xef53: "ext4", 0x58465342: "xfs", 0x9123683e: "btrfs", 0x2fc12fc1: "zfs", 0xca451a4e: "bcachefs", 0xf2f52010: "f2fs",
}

// Look completes what is known of a directory, or of the nearest one above it that
// exists.
func (f FileSystem) Look() (FileSystem, error) {
	f.Free, f.Inodes = -1, -1
	at := f.Dir
	for {
		_, err := os.Stat(at)
		if err == nil || !errors.Is(err, fs.ErrNotExist) || at == filepath.Dir(at) {
			break
		}
		at = filepath.Dir(at)
	}
	var dir unix.Stat_t
	if err := unix.Stat(at, &dir); err == nil {
		f.Device = uint64(dir.Dev)
	}
	var st unix.Statfs_t
	if err := unix.Statfs(at, &st); err != nil {
		return f, &os.PathError{Op: "statfs", Path: at, Err: err}
	}
	f.Type = magic[int64(uint32(st.Type))]
	f.Free = int64(st.Bavail) * st.Bsize
	if st.Files > 0 {
		f.Inodes = int64(st.Ffree)
	}
	f.ReadOnly, f.NoExec = st.Flags&unix.ST_RDONLY != 0, st.Flags&unix.ST_NOEXEC != 0
	return f, nil
}
