//go:build linux && amd64

package vm_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	containerspec "github.com/llmdo/workshop/internal/engine/namespace/container/spec"
	"github.com/llmdo/workshop/internal/vm/config"
	"github.com/llmdo/workshop/internal/vm/guest"
)

// rootGuest is ours until a file of its writable share says that its root does what it can.
const rootGuest = "root"

// word is that file; what became of it stands in another.
const (
	word = "/tmp/rw/0/attack"
	told = "/tmp/rw/0/report"
)

func init() {
	if os.Getpid() != 1 || kindOf() != rootGuest {
		return
	}
	modules := map[string][]byte{} // which are gone when they are loaded
	entries, _ := os.ReadDir(config.Modules)
	for _, e := range entries {
		modules[e.Name()], _ = os.ReadFile(path.Join(config.Modules, e.Name()))
	}
	port, err := guest.Prepare(os.Stderr)
	if err != nil {
		fmt.Println(err)
	}
	go func() {
		for os.Rename(word, word+".taken") != nil {
			time.Sleep(50 * time.Millisecond)
		}
		u := used{Did: map[string]string{}}
		u.everything(modules)
		text, _ := json.Marshal(u)
		if err := errors.Join(os.WriteFile(told+".new", text, 0o644), os.Rename(told+".new", told)); err != nil {
			fmt.Println(err)
		}
		time.Sleep(2 * time.Second)
		writeMemory()
	}()
	useMonitor(carriesGuest, port)
	time.Sleep(time.Hour)
}

// everything is what root does; the machine should go on.
func (u *used) everything(modules map[string][]byte) {
	removed := errors.New("none")
	for name, text := range modules {
		if module := "overlay"; strings.HasSuffix(name, "-"+module+".ko") { // others are its devices'
			if removed = unix.DeleteModule(module, unix.O_NONBLOCK); removed == nil {
				removed = unix.InitModule(text, "")
			}
		}
		other := bytes.Clone(text)
		copy(other[len(other)/3:], bytes.Repeat([]byte("other"), 100))
		_ = unix.InitModule(other, "")
	}
	u.did("a module, removed and loaded", removed)
	var names []string
	links, err := net.Interfaces()
	for _, l := range links {
		names = append(names, l.Name)
	}
	if u.did("interfaces", err); err == nil {
		u.Did["interfaces"] = strings.Join(names, " ")
	}
	u.did("a raw packet", sendRaw(links))
	u.Did["a port for nobody"] = try("tcp4", "127.0.0.1:22", "root").Error
	for _, tag := range []string{"ro", "kit", "/", ".."} {
		err := os.MkdirAll("/tmp/again", 0o755)
		if err == nil {
			if err = unix.Mount(tag, "/tmp/again", "virtiofs", 0, ""); err == nil {
				err = errors.Join(os.WriteFile("/tmp/again/0/kept", []byte("changed"), 0o644), unix.Unmount("/tmp/again", unix.MNT_DETACH))
			}
		}
		u.did("share "+tag, err)
	}
	u.did("remove of the read-only share", os.Remove("/tmp/ro/0/kept"))
	// Every device but those that end the guest, its console and its own carrier.
	_ = filepath.WalkDir("/dev", func(name string, e fs.DirEntry, err error) error {
		base := path.Base(name)
		if err != nil || e.Type()&fs.ModeDevice == 0 || slices.Contains([]string{"console", "mem", "port", "watchdog", "watchdog0"}, base) ||
			strings.HasPrefix(base, "tty") || strings.HasPrefix(base, "vport") {
			return nil
		}
		done := make(chan error, 1)
		go func() { done <- overwrite(name) }()
		select {
		case err = <-done:
		case <-time.After(2 * time.Second):
			err = errors.New("it blocks")
		}
		if base == "vda" {
			u.did("the root's disk", err)
		}
		return nil
	})
}

// overwrite writes at the beginning of a device and of what is behind its cache.
func overwrite(name string) error {
	f, err := os.OpenFile(name, os.O_WRONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err = f.Write(bytes.Repeat([]byte("root"), 1024)); err == nil {
		err = f.Sync()
	}
	return err
}

// sendRaw sends a packet to every interface that there is.
func sendRaw(links []net.Interface) error {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	for _, l := range links {
		err = errors.Join(err, unix.Sendto(fd, make([]byte, 64), 0, &unix.SockaddrLinklayer{Ifindex: l.Index}))
	}
	return err
}

// writeMemory writes at every port, the registers of the machine's devices (from 0xfeb00000
// in a microvm: hw/i386/microvm.c of QEMU) and what of the kernel it may, and panics.
func writeMemory() {
	page := bytes.Repeat([]byte("root"), 1<<10)
	for name, ends := range map[string][2]int64{"/dev/port": {0, 1 << 16}, "/dev/mem": {0xfeb00000, 0xfed00000}} {
		if f, err := os.OpenFile(name, os.O_WRONLY, 0); err == nil {
			for at := ends[0]; at < ends[1]; at += int64(len(page)) {
				_, _ = f.WriteAt(page, at)
			}
			f.Close()
		}
	}
	_ = os.WriteFile("/proc/sysrq-trigger", []byte("c"), 0)
}

// B3 B13 B20 B60: root of a guest loads modules, sends what it likes and writes every device
// and its own memory. The host's files, the room and a neighbour are as before.
func TestGuestRoot(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	r.startOutlet()
	disk := filepath.Join(t.TempDir(), "root")
	image := bytes.Repeat([]byte("image"), 1<<20)
	if err := errors.Join(os.WriteFile(disk, image, 0o644), os.Chown(disk, workerUID, workerUID)); err != nil {
		t.Fatal(err)
	}
	neighbours := newRoom(t)
	neighbours.startOutlet()
	neighbour := neighbours.startWorker(mark(t, carriesGuest), config.Guest{}, nil)
	w := r.startWorker(mark(t, rootGuest), config.Guest{}, func(m *config.Machine, c *containerspec.Container) {
		m.Root = "/vm/root"
		c.Mounts = append(c.Mounts, containerspec.Mount{Type: containerspec.Bind, Source: disk, Target: m.Root}) // QEMU's to keep
		for _, b := range c.Mounts {
			if b.Target == "/shares/ro/0" {
				kept := filepath.Join(b.Source, "kept")
				if err := errors.Join(os.WriteFile(kept, []byte("kept"), 0o644), os.Chown(kept, workerUID, workerUID)); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
	w.says("READY")
	neighbour.says("READY")
	if err := os.WriteFile(filepath.Join(w.rw, path.Base(word)), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	var u used
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		text, err := os.ReadFile(filepath.Join(w.rw, path.Base(told)))
		if err == nil {
			if err := json.Unmarshal(text, &u); err != nil {
				t.Fatal(err)
			}
			break
		}
		if time.Now().After(end) {
			t.Fatal("it tells nothing")
		}
	}
	for what, want := range map[string]string{
		"a module, removed and loaded": "done", "a raw packet": "done", "interfaces": "lo", "a port for nobody": "ECONNRESET",
		"share ro": "EROFS", "share kit": "EINVAL", "share /": "EINVAL", "share ..": "EINVAL", "remove of the read-only share": "EROFS", "the root's disk": "EPERM",
	} {
		if got := u.Did[what]; got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	w.echoes()
	select {
	case code := <-w.code:
		w.code <- code
	case <-time.After(time.Minute):
		t.Error("it goes on after all of it")
	}
	if got, err := os.ReadFile(disk); err != nil || !bytes.Equal(got, image) {
		t.Errorf("its image is %d bytes, %v", len(got), err)
	}
	for _, of := range []*worker{w, neighbour} {
		entries, err := os.ReadDir(of.ro)
		if want := map[bool]int{true: 1}[of == w]; err != nil || len(entries) != want {
			t.Errorf("the read-only mount: %v, %v", entries, err)
		}
	}
	if got, err := os.ReadFile(filepath.Join(w.ro, "kept")); string(got) != "kept" || err != nil {
		t.Errorf("the read-only file: %q, %v", got, err)
	}
	if got, err := os.ReadFile(filepath.Join(neighbour.rw, "made")); string(got) != "by the guest" || err != nil {
		t.Errorf("the neighbour's file: %q, %v", got, err)
	}
	neighbour.echoes()
	if got := neighbours.round("places")["198.51.100.7:80"]; !got.Same {
		t.Errorf("the neighbour's network: %+v", got)
	}
	if err := r.ns.Do(func() error {
		links, err := net.Interfaces()
		if err == nil && (len(links) != 1 || links[0].Name != "lo") {
			err = fmt.Errorf("%v", links)
		}
		return err
	}); err != nil {
		t.Errorf("its room: %v", err)
	}
}
