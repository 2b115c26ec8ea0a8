//go:build linux

package scenario

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/dev/testnet"
)

// inside is set in a process that is in namespaces of its own already.
const inside = "WORKSHOP_E2E_APART"

// apart makes this process one in network and mount namespaces of its own, in
// which no Docker engine answers. It returns in the new program.
func apart() error {
	if os.Geteuid() != 0 {
		return nil // TheLab says that root is needed
	}
	if os.Getenv(inside) != "" {
		return errors.Join(loopbackUp(), hideDocker(), resolver())
	}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	// What may need a network beyond the test internet comes before.
	if otherKernel() {
		if err := buildKernel(); err != nil {
			return err
		}
	} else if os.Getenv("WORKSHOP_BIN") == "" {
		root, err := repository()
		if err != nil {
			return err
		}
		bin, err := makeBuild(root)
		if err != nil {
			return err
		}
		os.Setenv("WORKSHOP_BIN", bin)
	}
	runtime.LockOSThread() // exec takes this thread's namespaces along
	if err := unix.Unshare(unix.CLONE_NEWNET | unix.CLONE_NEWNS); err != nil {
		return err
	}
	return syscall.Exec(exe, os.Args, append(os.Environ(), inside+"=1"))
}

func loopbackUp() error {
	if err := unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	// As Docker and most machines have it: an ordinary user may send pings.
	if err := os.WriteFile("/proc/sys/net/ipv4/ping_group_range", []byte("0 2147483647"), 0); err != nil {
		return err
	}
	return exec.Command("ip", "link", "set", "lo", "up").Run()
}

// resolvFile is what Main removes.
var resolvFile string

// resolver makes the test internet's name server the machine's.
func resolver() error {
	f, err := os.CreateTemp("", "workshop-e2e-resolv-")
	if err != nil {
		return err
	}
	resolvFile = f.Name() // nothing binds what is bound, once it is removed
	_, err = f.WriteString("nameserver " + testnet.DNS + "\n")
	path, e := filepath.EvalSymlinks("/etc/resolv.conf")
	if err = errors.Join(err, f.Chmod(0o644), f.Close(), e); err != nil {
		return err
	}
	return unix.Mount(f.Name(), path, "", unix.MS_BIND, "")
}

// hideDocker puts an empty file over the engine's socket.
func hideDocker() error {
	for _, socket := range []string{"/run/docker.sock", "/var/run/docker.sock"} {
		if _, err := os.Stat(socket); err != nil {
			continue
		}
		if err := unix.Mount("/dev/null", socket, "", unix.MS_BIND, ""); err != nil {
			return err
		}
	}
	return nil
}
