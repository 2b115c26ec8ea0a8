package docker

import (
	"fmt"
	"os"
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

// startHint is the command that starts what should listen at a host.
func startHint(flavour engine.Flavour, host string) string {
	switch {
	case flavour != engine.FlavourPodman:
		return "start it with `sudo systemctl start docker`"
	case host == rootPodman || os.Getuid() == 0:
		return startPodman
	}
	return startUserPodman
}
