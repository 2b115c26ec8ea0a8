//go:build linux

package probe

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/llmdo/workshop/internal/dev/testutil"
)

// The probes that must fail in a room (B20) work where nothing forbids them;
// else EPERM would say nothing.
func TestNetlink(t *testing.T) {
	testutil.Require(t, os.Getuid() == 0, "a network namespace needs root")
	probes := []string{
		"link up lo", "address add 198.51.100.9/32", "address add 2001:db8::9/128",
		"route add 198.18.0.0/16", "route add 198.19.0.0/16 via=198.51.100.9", "route add 2001:db8:1::/48", "route add default", "rules add",
		"rules flush", "route del default", "route del 2001:db8:1::/48", "route del 198.19.0.0/16 via=198.51.100.9", "route del 198.18.0.0/16",
		"address del 2001:db8::9/128", "address del 198.51.100.9/32", "link down lo",
	}
	for _, c := range []struct {
		name, want string
		as         *syscall.Credential
	}{
		{"allowed", "ok", nil},
		{"not allowed", "EPERM", &syscall.Credential{Uid: 65534, Gid: 65534}},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := []string{"probe"}
			for _, p := range probes {
				args = append(args, p+" -> "+c.want)
			}
			cmd := exec.Command("/proc/self/exe", args...)
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Credential: c.as}
			out, err := cmd.CombinedOutput()
			if err != nil || strings.Count(string(out), "\n") != len(probes) {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
