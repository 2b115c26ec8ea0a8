package kit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/cavaliergopher/cpio"
	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/vm/config"
)

// maxInit bounds the size of workshop-init, in bytes.
const maxInit = 64 << 20

// Initrd returns the first files of one guest, in memory: those of the kit in dir, the
// program init, which nobody in the guest can read, and what is told to it; nil: nothing.
// The caller closes it. Nothing is changed in it any more.
func Initrd(dir, init string, guest *config.Guest) (f *os.File, err error) {
	fd, err := unix.MemfdCreate("initramfs", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("memfd_create: %w", err)
	}
	f = os.NewFile(uintptr(fd), "initramfs")
	if err = errors.Join(appendFile(f, filepath.Join(dir, Initramfs)), appendOwn(f, init, guest)); err == nil {
		_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_SEAL|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_WRITE)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("initramfs: %w", err)
	}
	return f, nil
}

// appendFile appends a file, and zeros up to where the kernel looks for the next archive.
func appendFile(to *os.File, path string) error {
	from, err := os.Open(path)
	if err != nil {
		return err
	}
	defer from.Close()
	n, err := io.Copy(to, from)
	if err == nil {
		_, err = to.Write(make([]byte, -n&3))
	}
	return err
}

// appendOwn appends an archive with the files of one machine.
func appendOwn(to *os.File, init string, guest *config.Guest) error {
	program, err := os.Open(init)
	if err != nil {
		return err
	}
	defer program.Close()
	info, err := program.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() > maxInit {
		return fmt.Errorf("%s: not a file of %d bytes at most", init, maxInit)
	}
	w := cpio.NewWriter(to)
	if err := add(w, config.Init[1:], 0o111, program, info.Size()); err != nil {
		return err
	}
	if guest != nil {
		text, err := json.Marshal(guest)
		if err == nil {
			err = add(w, config.File[1:], 0o400, bytes.NewReader(text), int64(len(text)))
		}
		if err != nil {
			return err
		}
	}
	return w.Close()
}
