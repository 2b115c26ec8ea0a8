//go:build linux

package room

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/guard/nflog"
	"github.com/llmdo/workshop/internal/room/handover"
)

// packetsOf reads events of a room's NFLOG socket, as the guard does.
func packetsOf(s handover.Sockets) <-chan nflog.Packet {
	out := make(chan nflog.Packet, 100)
	if log, err := nflog.New(s.NFLog, func(p nflog.Packet) { out <- p }, func(uint64) {}); err == nil {
		go log.Read()
	}
	return out
}

// holdNamespace keeps a room's namespace alive as a worker would, and returns
// a room of that namespace to run attacks in.
func holdNamespace(t *testing.T, r *testRoom) *testRoom {
	t.Helper()
	cmd := exec.Command("sleep", "60")
	var err error
	r.inside(func() { err = cmd.Start() })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return &testRoom{t: t, cmd: cmd, dir: r.dir}
}

// failing starts a room that must not come up and returns what it said. No
// socket must be there to connect to.
func failing(t *testing.T, prepare func(*exec.Cmd), args ...string) string {
	t.Helper()
	r := launchRoom(t, prepare, args...)
	var line string
	select {
	case line = <-r.said:
	case <-time.After(5 * time.Second):
		t.Fatal("the room says nothing")
	}
	if !strings.HasPrefix(line, "FAILED ") {
		t.Fatalf("the room said %q", line)
	}
	if err := r.cmd.Wait(); err == nil || r.cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("exit: %v", err)
	}
	if _, err := os.Stat(r.path()); err == nil {
		t.Error("there is a socket")
	}
	return line
}

// TestSetUpFails: whatever is wrong, nothing is handed over, and the reason is
// said in one line.
func TestSetUpFails(t *testing.T) {
	requireRoot(t)
	for name, c := range map[string]struct {
		prepare func(*exec.Cmd)
		want    string
	}{
		"unprivileged ports": {script(t, "echo 500 > /proc/sys/net/ipv4/ip_unprivileged_port_start"), "net.ipv4.ip_unprivileged_port_start=1024"},
		"an interface":       {script(t, "ip link add ws0 type veth peer name ws1; ip link set ws0 up"), "interface ws0"},
		"rules are there":    {script(t, "iptables -A OUTPUT -j ACCEPT"), "a room needs a new one"},
		"a port is taken":    {script(t, "python3 -c 'import socket,time; s=socket.socket(); s.bind((\"127.0.0.1\",534)); s.listen(); time.sleep(10)' >/dev/null 2>&1 & until ss -Hltn | grep -q :534; do sleep 0.05; done"), "port 534"},
		"NFLOG is taken":     {func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, roleVariable+"=room with NFLOG taken") }, "NFLOG group 100"},
		"no netfilter":       {func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, roleVariable+"=room without netfilter") }, "the kernel lacks nfnetlink, nf_tables and nft_compat"},
		"no capability":      {func(cmd *exec.Cmd) { cmd.SysProcAttr.Credential = &syscall.Credential{Uid: 1000, Gid: 1000} }, "CAP_NET_ADMIN"},
	} {
		t.Run(name, func(t *testing.T) {
			if line := failing(t, c.prepare); !strings.Contains(line, c.want) {
				t.Errorf("said %q, want %q in it", line, c.want)
			}
		})
	}
	t.Run("directory is missing", func(t *testing.T) {
		if line := failing(t, nil, "--dir", filepath.Join(t.TempDir(), "no")); !strings.Contains(line, "no such file") {
			t.Errorf("said %q", line)
		}
	})
}

// takeNFLog listens to the group and then becomes the room.
func takeNFLog() int {
	fd, err := nflogSocket(firewall.NFLogGroup)
	if err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0)
	}
	if err == nil {
		os.Setenv(roleVariable, "room")
		err = syscall.Exec("/proc/self/exe", os.Args, os.Environ())
	}
	fmt.Println(err)
	return 1
}

// script makes a shell prepare the namespace before the room starts in it.
func script(t *testing.T, lines string) func(*exec.Cmd) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return func(cmd *exec.Cmd) {
		cmd.Args = append([]string{"/bin/sh", "-ec", lines + "\n" + `exec "$0" "$@"`, program}, cmd.Args[1:]...)
		cmd.Path = "/bin/sh"
	}
}

// TestWithoutIPv6: where IPv6 addresses are switched off there is no IPv6
// route, the rules are there, and connections fail at once.
func TestWithoutIPv6(t *testing.T) {
	r := launchRoom(t, script(t, "echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6"))
	if line := <-r.said; line != "READY" {
		t.Fatal(line)
	}
	if out := r.command("", "ip6tables-save"); !strings.Contains(out, "WS_DENY") {
		t.Error("no IPv6 rules:\n" + out)
	}
	r.expect(1000, "dial tcp6 "+outside["6"]+" 443", "EADDRNOTAVAIL")
	r.expect(1000, "dial tcp4 "+outside["4"]+" 443", "ok")
	r.expect(1000, "dial tcp4 "+outside["4"]+" 23", "ECONNREFUSED")
}

// TestStops: SIGTERM ends a room at once, as `docker stop` sends it.
func TestStops(t *testing.T) {
	r := startRoom(t)
	start := testutil.Now()
	r.cmd.Process.Signal(unix.SIGTERM)
	if err := r.cmd.Wait(); err != nil {
		t.Errorf("exit: %v", err)
	}
	if took := testutil.Since(start); took > time.Second {
		t.Errorf("took %v", took)
	}
}
