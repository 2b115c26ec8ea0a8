//go:build linux

package e2e

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/llmdo/workshop/e2e/scenario"
)

// TestRootlessPodmanLacks: what a user's podman lacks on this machine is one error with the
// line that installs it, and nothing is left.
func TestRootlessPodmanLacks(t *testing.T) {
	scenario.OnlyDocker(t, "an engine of another user")
	scenario.HasRootless(t, "podman", "slirp4netns", "newuidmap")
	if !scenario.Alone(t) {
		return
	}
	scenario.AsUser(t)
	s := scenario.New(t, "restricted", "rootless podman without newuidmap, subordinate ids, or slirp4netns and pasta: one error each, with the command that helps")
	s.Env = append(s.Env, "DOCKER_HOST=")
	lacks := func(code int, wants ...string) {
		t.Helper()
		for _, args := range [][]string{{"up", "--without-limits"}, {"doctor"}} {
			c := code
			if args[0] == "doctor" {
				c = 1
			}
			d := s.Expect(c, append(args, "--engine", "podman")...)
			says(s, d, wants...)
			if n := strings.Count(d.Err, "workshop: error: "); n > 1 {
				t.Errorf("%d errors:\n%s", n, d.Err)
			}
		}
		if l := left(s); l != nil {
			t.Errorf("it left %v", l)
		}
	}
	path := os.Getenv("PATH")
	scenario.Without(t, "newuidmap")
	lacks(5, "no podman answers at unix://", "the socket does not exist", "install newuidmap and newgidmap: `sudo apt-get install uidmap` or `sudo dnf install shadow-utils`, then enable its socket: `systemctl --user enable --now podman.socket`")
	t.Setenv("PATH", path)

	scenario.Without(t, "slirp4netns", "pasta")
	podman := scenario.NewRootlessPodman(t)
	lacks(4, "network-helper: without root podman has no network for the guard: there is neither slirp4netns nor pasta (B24)", "install one: `sudo apt-get install slirp4netns` or `sudo dnf install passt`")
	file := s.Read("workshop.yaml")
	s.Write("workshop.yaml", withoutNetwork)
	s.Expect(0, "up", "--engine", "podman", "--without-limits")
	s.Expect(0, "down")
	s.Write("workshop.yaml", file)
	t.Setenv("PATH", path)

	for _, f := range []string{"/etc/subuid", "/etc/subgid"} {
		if err := os.Truncate(f, 0); err != nil { // bound over the machine's
			t.Fatal(err)
		}
	}
	podman.Stop(syscall.SIGTERM)
	scenario.EndUsersProcesses()
	podman.Start()
	lacks(4, "subordinate-ids: without root podman needs 65536 ids of /etc/subuid and /etc/subgid, and has 1 (B4)")
	says(s, s.Expect(1, "doctor", "--engine", "podman"),
		"`sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 $USER && podman system migrate`, then start the service again")
}

const withoutNetwork = `workshop:
  name: restricted
  container: {image: host, network: none}
  workers: [worker]
`
