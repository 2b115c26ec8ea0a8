package kit

import (
	"bytes"
	"fmt"

	"github.com/cavaliergopher/cpio"

	"github.com/llmdo/workshop/internal/vm/config"
)

// guestDirs are mount points of a guest.
var guestDirs = []string{"dev", "proc", "sys", "run", "tmp"}

// initramfs returns an archive of the format that Linux unpacks as its first root
// (Documentation/driver-api/early-userspace/buffer-format.rst): /init and its modules.
func initramfs(init []byte, modules []module) ([]byte, error) {
	var out bytes.Buffer
	w := cpio.NewWriter(&out)
	add := func(name string, mode cpio.FileMode, data []byte) error {
		links := 1
		if mode.IsDir() {
			links = 2
		}
		if err := w.WriteHeader(&cpio.Header{Name: name, Mode: mode, Links: links, Size: int64(len(data))}); err != nil {
			return err
		}
		_, err := w.Write(data)
		return err
	}
	for _, dir := range append([]string{config.Modules[1:]}, guestDirs...) {
		if err := add(dir, cpio.TypeDir|0o755, nil); err != nil {
			return nil, err
		}
	}
	if err := add("init", cpio.TypeReg|0o555, init); err != nil {
		return nil, err
	}
	for i, m := range modules {
		if err := add(fmt.Sprintf("%s/%03d-%s.ko", config.Modules[1:], i, m.name), cpio.TypeReg|0o444, m.file); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
