package guard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/dev/testnet"
	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/dev/threat"
	"github.com/llmdo/workshop/internal/dev/threat/attacks"
	"github.com/llmdo/workshop/internal/dev/threat/matrix"
	"github.com/llmdo/workshop/internal/probe"
)

// The test binary is the intruder too.
func init() {
	if os.Getenv("GUARD_TEST_ROLE") == "intruder" {
		os.Exit(attacks.Main(os.Args[1:], os.Stdout, os.Stderr))
	}
}

// TestMatrix tries the whole matrix of package threat in bare namespaces: a
// room made by the real room, the real guard, and three identities. No packet
// arrives but those of the allowed name, every denial comes at once, and each
// is counted in an event.
func TestMatrix(t *testing.T) {
	w := newWorld(t, restricted(t, "allowed.example.org", "ssh.example.org:22"))
	testutil.Require(t, w.in.IPv6, "the matrix needs IPv6")
	ca := filepath.Join(w.dir, "ca.pem")
	if err := os.WriteFile(ca, w.in.CA, 0o644); err != nil {
		t.Fatal(err)
	}
	room := w.rooms["room"].ns
	for _, ns := range []*testnet.NS{room, w.outside} { // as Docker has it: else no ping is sent that could be denied
		err := ns.Do(func() error { return os.WriteFile("/proc/sys/net/ipv4/ping_group_range", []byte("0 2147483647"), 0) })
		if err != nil {
			t.Fatal(err)
		}
	}
	m := matrix.New(t, threat.Bare, w.in, map[string]string{"ca": ca})
	m.Control(func(lines []string) []probe.Result { return w.intrude(w.outside, threat.Default, lines) })
	events := func() (all []matrix.Event) {
		w.guard.mu.Lock()
		defer w.guard.mu.Unlock()
		for _, e := range w.guard.lines {
			all = append(all, matrix.Event{Kind: e.Kind, Name: e.Name, Address: e.Address, Count: e.Count, Verdict: e.Verdict})
		}
		return all
	}
	for _, who := range threat.Identities {
		m.Try(who, func(_ bool, lines []string) []probe.Result { return w.intrude(room, who, lines) }, events)
	}
}

// defaultCaps are the capabilities of a container that nobody configured:
// moby, oci/caps/defaults.go.
var defaultCaps = []uintptr{
	unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FSETID, unix.CAP_FOWNER, unix.CAP_MKNOD, unix.CAP_NET_RAW, unix.CAP_SETGID, unix.CAP_SETUID,
	unix.CAP_SETFCAP, unix.CAP_SETPCAP, unix.CAP_NET_BIND_SERVICE, unix.CAP_SYS_CHROOT, unix.CAP_KILL, unix.CAP_AUDIT_WRITE,
}

// intrude runs probes as an identity in a network namespace.
func (w *world) intrude(ns *testnet.NS, who threat.Identity, lines []string) []probe.Result {
	w.Helper()
	var out, errs bytes.Buffer
	cmd, err := w.startIntruder(ns, who, lines, &out, &errs)
	if err == nil {
		err = cmd.Wait()
	}
	var results []probe.Result
	for d := json.NewDecoder(&out); d.More(); {
		var r probe.Result
		if err := d.Decode(&r); err != nil {
			w.Fatal(err)
		}
		results = append(results, r)
	}
	if len(results) != len(lines) || errs.Len() > 0 {
		w.Fatalf("%s: %d results of %d probes, %v\n%s", who, len(results), len(lines), err, errs.String())
	}
	return results
}

// startIntruder starts what runs probes as an identity in a network namespace.
func (w *world) startIntruder(ns *testnet.NS, who threat.Identity, lines []string, out, errs io.Writer) (*exec.Cmd, error) {
	cmd := exec.Command(w.binary(), "probe", "-")
	cmd.Env = []string{"GUARD_TEST_ROLE=intruder", "GORACE=atexit_sleep_ms=0"}
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n"))
	cmd.Stdout, cmd.Stderr = out, errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{}}
	if who == threat.Worker {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: 1000, Gid: 1000}
	}
	return cmd, ns.Do(func() error {
		if err := readOnlySysctls(); err != nil {
			return err
		}
		if err := confine(who); err != nil {
			return err
		}
		return cmd.Start()
	})
}

// readOnlySysctls gives the thread a mount namespace in which /proc/sys is
// read-only, as it is in a container of any engine: to uid 0 the switches of
// its network namespace are plain files of its own.
func readOnlySysctls() error {
	if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_FS); err != nil {
		return err
	}
	const same = unix.MS_BIND | unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	for _, m := range []struct {
		from, to string
		flags    uintptr
	}{
		{"", "/", unix.MS_REC | unix.MS_PRIVATE},
		{"proc", "/proc", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC}, // whose net is this namespace's
		{"/proc/sys", "/proc/sys", same},
		{"", "/proc/sys", same | unix.MS_REMOUNT | unix.MS_RDONLY},
	} {
		kind := ""
		if m.from == "proc" {
			kind = "proc"
		}
		if err := unix.Mount(m.from, m.to, kind, m.flags, ""); err != nil {
			return fmt.Errorf("mount %s: %w", m.to, err)
		}
	}
	return nil
}

// confine takes capabilities out of the thread's bounding set, so that what it
// starts has no others after exec.
func confine(who threat.Identity) error {
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		if who == threat.Default && slices.Contains(defaultCaps, c) {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil && err != unix.EINVAL {
			return err
		}
	}
	if who == threat.Worker {
		return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	}
	return nil
}

// TestMatrixIdentities: the identities are what they are called.
func TestMatrixIdentities(t *testing.T) {
	w := buildWorld(t, restricted(t))
	ns, err := testnet.NewNS()
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	for who, want := range map[threat.Identity][2]string{
		threat.Worker: {"1000:1000", "0000000000000000"}, threat.Root: {"0:0", "0000000000000000"}, threat.Default: {"0:0", "00000000a80425fb"},
	} {
		got := w.intrude(ns, who, []string{"uid -> " + want[0], "status CapEff -> " + want[1], "status CapBnd -> " + want[1]})
		for _, r := range got {
			if !r.OK {
				t.Errorf("%s: %s %v: %s, want %s", who, r.Probe, r.Args, r.Seen, r.Expected)
			}
		}
	}
}
