package guest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/carrier"
	"github.com/llmdo/workshop/internal/carrier/relay"
	"github.com/llmdo/workshop/internal/vm/config"
)

// portTimeout bounds the wait for the port. The kernel finds its devices while it loads the
// modules for them.
const portTimeout = 5 * time.Second

// Main is `workshop-init guest`, which the kernel starts as /init of an initramfs. It
// doesn't return as PID 1; what went wrong stands on the console. localAddresses is package
// room's, which workshop-vm doesn't link.
func Main(args []string, stderr io.Writer, localAddresses func() error) int {
	if os.Getpid() != 1 || len(args) > 0 {
		fmt.Fprintln(stderr, "workshop-init: error: guest: only for the kernel of a virtual machine, as its /init")
		return 2
	}
	err := run(stderr, localAddresses)
	fmt.Fprintln(stderr, "guest: powered off: "+err.Error())
	unix.Sync()
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
	return 1 // the kernel panics, which ends the machine too
}

// run serves until the carrier ends, and returns why.
func run(stderr io.Writer, localAddresses func() error) error {
	port, err := Prepare(stderr)
	if err != nil {
		return err
	}
	defer drain(port)
	if err := localAddresses(); err != nil {
		return fmt.Errorf("not every address is the worker's own: %w", err)
	}
	text, err := os.ReadFile(config.File)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	w := newWorker()
	ended := make(chan struct{})
	dialled := false
	o := relay.Options{
		Ports: relay.Ports, Ready: true, Log: func(line string) { fmt.Fprintln(stderr, "relay: "+line) },
		Dial: func(ctx context.Context) (io.ReadWriteCloser, error) {
			if dialled { // the machine has one carrier, and ends with it
				close(ended)
				<-ctx.Done()
				return nil, ctx.Err()
			}
			dialled = true
			return port, nil
		},
	}
	if text != nil {
		o.Session = w.session
	}
	r, err := relay.New(o)
	if err != nil {
		return err
	}
	if text == nil {
		<-ended
		return errEnded
	}
	w.send = r.Send
	err = w.run(text, ended)
	if !errors.Is(err, errEnded) {
		within(saidWithin, func() { w.say(carrier.Stderr, "machine powered off: "+err.Error()) })
	}
	return err
}

var errEnded = errors.New("the carrier ended")

// drain waits until the host took what was written: it isn't kept when the machine ends.
func drain(port *os.File) {
	raw, err := port.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, int(saidWithin/time.Millisecond))
	})
}

// Prepare mounts the kernel's file systems, loads its modules, and opens the carrier's port.
// What the kernel refuses of them is told.
func Prepare(stderr io.Writer) (*os.File, error) {
	if err := mount(); err != nil {
		return nil, err
	}
	if err := load(config.Modules, stderr); err != nil {
		return nil, err
	}
	return openPort("/sys/class/virtio-ports", "/dev")
}

// mounts are the kernel's file systems.
var mounts = []struct {
	kind, at string
	flags    uintptr
}{
	{"devtmpfs", "/dev", unix.MS_NOSUID | unix.MS_NOEXEC},
	{"proc", "/proc", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC},
	{"sysfs", "/sys", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_RDONLY},
	{"tmpfs", "/run", unix.MS_NOSUID | unix.MS_NODEV},
	{"tmpfs", "/tmp", unix.MS_NOSUID | unix.MS_NODEV},
}

func mount() error {
	if err := ownRoot(); err != nil {
		return fmt.Errorf("the root: %w", err)
	}
	for _, m := range mounts {
		if err := unix.Mount(m.kind, m.at, m.kind, m.flags, ""); err != nil {
			return fmt.Errorf("mount %s: %w", m.at, err)
		}
	}
	return nil
}

// ownRoot puts the root directory into a mount that a container's can take the place of.
// The kernel's first one can't be replaced (pivot_root(2)).
func ownRoot() error {
	const at = "/run"
	if err := unix.Mount("/", at, "", unix.MS_BIND, ""); err != nil {
		return err
	}
	if err := unix.Chdir(at); err != nil {
		return err
	}
	if err := unix.Mount(".", "/", "", unix.MS_MOVE, ""); err != nil {
		return err
	}
	return unix.Chroot(".")
}

// load loads all modules of a directory. One that the kernel refuses is told: without it
// something else fails, or nothing.
func load(dir string, stderr io.Writer) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err == nil {
			err = unix.FinitModule(fd, "", 0)
			unix.Close(fd)
		}
		if err != nil && !errors.Is(err, unix.EEXIST) {
			fmt.Fprintf(stderr, "guest: module %s: %v\n", e.Name(), err)
		}
		_ = os.Remove(name) // its memory
	}
	return nil
}

// openPort waits for the virtio port and opens it.
func openPort(class, dev string) (*os.File, error) {
	for end := time.Now().Add(portTimeout); ; {
		names, _ := filepath.Glob(class + "/*/name")
		for _, name := range names {
			if b, err := os.ReadFile(name); err == nil && strings.TrimSpace(string(b)) == config.Port {
				return os.OpenFile(path.Join(dev, path.Base(path.Dir(name))), os.O_RDWR|unix.O_NONBLOCK, 0)
			}
		}
		if time.Now().After(end) {
			return nil, fmt.Errorf("no virtio port %q after %v", config.Port, portTimeout)
		}
		time.Sleep(time.Millisecond)
	}
}
