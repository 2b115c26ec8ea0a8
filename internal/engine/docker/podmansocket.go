package docker

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/llmdo/workshop/internal/engine"
)

// The units that listen at podman's sockets (podman: contrib/systemd/system/podman.socket).
const (
	startPodman     = "enable its socket: `sudo systemctl enable --now podman.socket`; without systemd: `sudo podman system service --time=0 unix:///run/podman/podman.sock`"
	startUserPodman = "enable its socket: `systemctl --user enable --now podman.socket`; without systemd: `podman system service --time=0 unix://$XDG_RUNTIME_DIR/podman/podman.sock`"
)

// rootPodman is where podman as root listens (podman: pkg/rootless, cmd/podman/system).
const rootPodman = "unix:///run/podman/podman.sock"

// podmanHost returns podman's endpoint: CONTAINER_HOST, else the user's socket, else
// root's. Where neither exists it is the one that the caller would enable.
func podmanHost(env func(string) string) (string, error) {
	if host := env("CONTAINER_HOST"); host != "" {
		if !strings.HasPrefix(host, "unix:///") {
			return "", &engine.RefusedError{
				Reason: fmt.Sprintf("CONTAINER_HOST is %s, which is not a unix socket of this machine", host),
				Do:     "set it to unix:///PATH, or unset it",
			}
		}
		return host, nil
	}
	users := ""
	if dir := env("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		users = "unix://" + filepath.Join(dir, "podman", "podman.sock")
	}
	exists := func(host string) bool {
		_, err := os.Lstat(strings.TrimPrefix(host, "unix://"))
		return host != "" && err == nil
	}
	if users != "" && (exists(users) || os.Getuid() != 0 && !exists(rootPodman)) {
		return users, nil
	}
	return rootPodman, nil
}

// startHint says how to start what should listen at a host.
func startHint(flavour engine.Flavour, host string) string {
	if flavour != engine.FlavourPodman {
		return "start it with `sudo systemctl start docker`"
	}
	start := startUserPodman
	if host == rootPodman || os.Getuid() == 0 {
		start = startPodman
	}
	if install := podmanLacks(host); install != "" {
		return install + ", then " + start
	}
	return start
}

// podmanLacks says how to install the program without which podman doesn't start; "" for
// none. As a user it doesn't start without newuidmap and newgidmap where the user has
// subordinate ids (podman: pkg/rootless/rootless_linux.go).
func podmanLacks(host string) string { return lacksFor(host, os.Getuid(), exec.LookPath) }

func lacksFor(host string, uid int, look func(program string) (string, error)) string {
	has := func(program string) bool { _, err := look(program); return err == nil }
	switch {
	case !has("podman"):
		return "install it: `sudo apt-get install podman` or `sudo dnf install podman`"
	case host != rootPodman && uid != 0 && !(has("newuidmap") && has("newgidmap")):
		return "install newuidmap and newgidmap: `sudo apt-get install uidmap` or `sudo dnf install shadow-utils`"
	}
	return ""
}
