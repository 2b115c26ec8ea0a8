package supervisor

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/api"
	"github.com/llmdo/workshop/internal/lib/atomicfile"
)

// Programs that manage resolv.conf replace the file, and a bind of it would keep
// showing the old one. So the machine's resolv.conf is copied into a directory that
// is mounted into the guard.

// machineResolv is the machine's file. Links and mounts in its path are resolved
// each time.
const machineResolv = "/etc/resolv.conf"

// resolvLook is how often it is checked while a guard runs.
const resolvLook = time.Second

// maxResolv bounds it in bytes.
const maxResolv = 64 << 10

// resolvCopy is the latest copy for the guards.
type resolvCopy struct {
	mu     sync.Mutex
	data   []byte // nil: nothing yet
	failed string // the error last reported
}

// copyResolv updates the copy. If the file can't be read, or no longer exists, the
// last copy stays.
func (s *Supervisor) copyResolv() {
	r := &s.resolv
	r.mu.Lock()
	defer r.mu.Unlock()
	b, err := readResolv(machineResolv)
	if err == nil && (r.data == nil || !bytes.Equal(b, r.data)) {
		if err = atomicfile.Write(s.dir+"/"+api.ResolvDir+"/"+api.ResolvName, b, 0o644); err == nil {
			r.data = b
		}
	}
	failed := ""
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		failed = fmt.Sprintf("the guard keeps its resolvers: %v", err)
	}
	if failed != "" && failed != r.failed {
		s.say("%s", failed)
	}
	r.failed = failed
}

// readResolv reads a regular file; it never blocks on anything else.
func readResolv(name string) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, fmt.Errorf("%s is not a regular file", name))
	}
	b, err := io.ReadAll(io.LimitReader(f, maxResolv+1))
	if err == nil && len(b) > maxResolv {
		err = fmt.Errorf("%s is larger than %d bytes", name, maxResolv)
	}
	return b, err
}

// followResolv keeps the copy up to date while a guard runs.
func (s *Supervisor) followResolv(ended <-chan struct{}) {
	t := time.NewTicker(resolvLook)
	defer t.Stop()
	for {
		select {
		case <-ended:
			return
		case <-t.C:
			s.copyResolv()
		}
	}
}

// newResolv makes the directory, after removing that of the previous supervisor.
func newResolv(dir string) error {
	dir += "/" + api.ResolvDir
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return os.Mkdir(dir, 0o755) // our umask is 022
}
