package handover

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// KeptSize is the size of the file that a room keeps for the guard. Its pages are
// charged to their first writer, the guard.
const KeptSize = 256 << 10

// StoredFile is the name of the file for [Client.Store], one for all rooms.
const StoredFile = "denies"

const keptName = "workshop-kept"

// keptSeals fix the size, so that neither side can make the other fail, and the seals
// themselves (memfd_create(2)).
const keptSeals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL

// NewKept returns an empty file that a room accepts: a memfd of [KeptSize] bytes.
func NewKept() (*os.File, error) {
	const flags = unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	fd, err := unix.MemfdCreate(keptName, flags|unix.MFD_NOEXEC_SEAL)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3
		fd, err = unix.MemfdCreate(keptName, flags)
	}
	if err != nil {
		return nil, fmt.Errorf("memfd_create: %w", err)
	}
	f := os.NewFile(uintptr(fd), keptName)
	if err = unix.Ftruncate(fd, KeptSize); err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, keptSeals)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("memfd: %w", err)
	}
	return f, nil
}

// checkKept refuses a descriptor that isn't such a file: each side checks the other's.
func checkKept(fd int) error {
	seals, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	if err != nil {
		return errors.New("the file to keep is not a memfd")
	}
	if seals&(keptSeals|unix.F_SEAL_WRITE|unix.F_SEAL_FUTURE_WRITE) != keptSeals {
		return fmt.Errorf("the file to keep has seals %#x, want %#x", seals, keptSeals)
	}
	var fs unix.Statfs_t
	if err := unix.Fstatfs(fd, &fs); err != nil || fs.Type != unix.TMPFS_MAGIC {
		return errors.New("the file to keep is not in ordinary memory") // huge pages have seals too
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Size != KeptSize {
		return fmt.Errorf("the file to keep has %d bytes, want %d", st.Size, KeptSize)
	}
	mode, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if err != nil || mode&unix.O_ACCMODE != unix.O_RDWR {
		return errors.New("the file to keep can't be read and written")
	}
	return nil
}
