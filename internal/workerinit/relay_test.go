//go:build linux

package workerinit

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/dev/testcarrier"
	"github.com/llmdo/workshop/internal/dev/testnet"
)

// startOutlet starts an outlet in a namespace.
func startOutlet(t *testing.T, ns *testnet.NS, socket string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", "--socket", socket)
	cmd.Env = append(os.Environ(), roleVariable+"=outlet", "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = ns.Start(cmd)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	for s := bufio.NewScanner(out); s.Scan(); {
		if s.Text() == "READY" {
			return cmd
		}
	}
	t.Fatal("the outlet isn't ready")
	return nil
}

// TestRelay: PID 1 has its connection to the outlet before the worker is ready, nobody else
// gets one, and an outlet that was killed is connected to again (B29).
func TestRelay(t *testing.T) {
	socket := filepath.Join(shared(t), "outlet.sock")
	g := start(t, "--room", "--relay", socket)
	g.inside(func() error {
		return errors.Join(testcarrier.EveryAddress(), exec.Command("sysctl", "-qw", "net.ipv4.ip_unprivileged_port_start=0").Run())
	})
	outside, err := testnet.NewNS()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { outside.Close() })
	if err := outside.Do(testcarrier.EveryAddress); err != nil {
		t.Fatal(err)
	}
	select {
	case line := <-g.said:
		t.Fatalf("said %q without an outlet", line)
	case <-time.After(300 * time.Millisecond):
	}
	o := startOutlet(t, outside, socket)
	select {
	case line := <-g.said:
		t.Fatalf("said %q without a guard", line)
	case <-time.After(300 * time.Millisecond):
	}
	asked := answerIn(t, outside.Do, dnsmessage.RCodeSuccess)
	g.expect("READY")
	if name := <-asked; name != "ready.workshop.internal." {
		t.Errorf("asked for %s", name)
	}

	second, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	second.SetReadDeadline(time.Now().Add(5 * time.Second))
	if _, err := second.Read(make([]byte, 1)); !errors.Is(err, io.EOF) && !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("a second connection: %v", err)
	}

	for _, port := range []string{"22", "80", "443", "536", "993"} {
		var l net.Listener
		if err := outside.Do(func() (err error) { l, err = net.Listen("tcp4", "0.0.0.0:"+port); return err }); err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		go testnet.Serve(l, func(c net.Conn) { io.WriteString(c, "at "+c.LocalAddr().String()) })
	}
	said := func(to string) (text string) {
		t.Helper()
		g.inside(func() error {
			c, err := net.Dial("tcp4", to)
			if err != nil {
				return err
			}
			defer c.Close()
			c.SetDeadline(time.Now().Add(10 * time.Second))
			b, err := io.ReadAll(c)
			text = string(b)
			return err
		})
		return text
	}
	for _, to := range []string{"198.51.100.7:22", "198.51.100.8:80", "198.51.100.9:443", "127.0.0.1:536", "198.51.100.10:993"} {
		if got := said(to); got != "at "+to {
			t.Errorf("%s said %q", to, got)
		}
	}
	o.Process.Kill()
	o.Wait()
	time.AfterFunc(300*time.Millisecond, func() { startOutlet(t, outside, socket) })
	if got := said("198.51.100.7:22"); got != "at 198.51.100.7:22" {
		t.Errorf("after the outlet was killed: %q", got)
	}
	if took := g.stop(); took > soon {
		t.Errorf("the end took %v", took)
	}
}

// TestRelayWithoutAddresses: what the worker connects to would go elsewhere.
func TestRelayWithoutAddresses(t *testing.T) {
	socket := filepath.Join(shared(t), "outlet.sock")
	outside, err := testnet.NewNS()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { outside.Close() })
	g := start(t, "--room", "--relay", socket)
	g.inside(func() error { return exec.Command("ip", "link", "set", "lo", "up").Run() })
	startOutlet(t, outside, socket)
	want := "FAILED not every address is the worker's own (listen udp4 1.1.1.1:0: bind: cannot assign requested address): register its runtime with --network=sandbox"
	if line := g.expect("FAILED "); line != want {
		t.Errorf("said %q, want %q", line, want)
	}
}

// TestRelayWithoutAnOutlet: the error has all that is wrong and what to do.
func TestRelayWithoutAnOutlet(t *testing.T) {
	socket := filepath.Join(shared(t), "outlet.sock")
	g := start(t, "--room", "--relay", socket, "--write", "/proc/sys", "--timeout", "300ms")
	line := g.expect("FAILED ")
	want := "FAILED the outlet can't be reached (dial unix " + socket + ": connect: no such file or directory): look at the logs of the service outlet, and register the worker's runtime with --host-uds=open; /proc/sys is not writable"
	if !strings.HasPrefix(line, want) {
		t.Errorf("said %q, want %q", line, want)
	}
	if g.cmd.Wait(); g.cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("exit code %d", g.cmd.ProcessState.ExitCode())
	}
}

// shared is a directory that every user may enter.
func shared(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ws-gate")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
