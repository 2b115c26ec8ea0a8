package kit

import (
	"bytes"
	"fmt"
	"io"

	"github.com/cavaliergopher/cpio"

	"github.com/llmdo/workshop/internal/vm/config"
)

// guestDirs are mount points of a guest.
var guestDirs = []string{"dev", "proc", "sys", "run", "tmp"}

// initramfs returns an archive of the format that Linux unpacks as its first root
// (Documentation/driver-api/early-userspace/buffer-format.rst): the modules.
func initramfs(modules []module) ([]byte, error) {
	var out bytes.Buffer
	w := cpio.NewWriter(&out)
	for _, dir := range append([]string{config.Modules[1:]}, guestDirs...) {
		if err := w.WriteHeader(&cpio.Header{Name: dir, Mode: cpio.TypeDir | 0o755, Links: 2}); err != nil {
			return nil, err
		}
	}
	for i, m := range modules {
		if err := add(w, fmt.Sprintf("%s/%03d-%s.ko", config.Modules[1:], i, m.name), 0o444, bytes.NewReader(m.file), int64(len(m.file))); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// add adds a file of a size.
func add(w *cpio.Writer, name string, mode cpio.FileMode, data io.Reader, size int64) error {
	err := w.WriteHeader(&cpio.Header{Name: name, Mode: cpio.TypeReg | mode, Links: 1, Size: size})
	if err == nil {
		_, err = io.CopyN(w, data, size)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
