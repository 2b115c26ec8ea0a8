package files

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/dev/vhosttest"
)

// process is a file server as a process, and a driver for each of its shares.
type process struct {
	cmd    *exec.Cmd
	errs   *strings.Builder
	shares []*remote
}

// remote is a share by its socket.
type remote struct {
	t *testing.T
	*vhosttest.Driver
	g guest
}

// serveAs starts a file server with a uid.
func serveAs(t *testing.T, uid uint32, mounts ...Mount) *process {
	t.Helper()
	p := &process{cmd: exec.Command("/proc/self/exe"), errs: &strings.Builder{}}
	p.cmd.Env = append(os.Environ(), asServer+"=1")
	p.cmd.Stderr = p.errs
	if uid != 0 {
		p.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	}
	for i := range mounts {
		there, here := vhosttest.Pair(t)
		f, err := here.File()
		if err != nil {
			t.Fatal(err)
		}
		here.Close()
		defer f.Close()
		mounts[i].Socket = 3 + i
		p.cmd.ExtraFiles = append(p.cmd.ExtraFiles, f)
		d := vhosttest.New(t, there)
		d.Start(1)
		p.shares = append(p.shares, &remote{t: t, Driver: d, g: guest{t: t}})
	}
	config, err := json.Marshal(Config{Shares: mounts})
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Stdin = strings.NewReader(string(config))
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		p.cmd.Wait()
	})
	for _, s := range p.shares {
		if _, errno := s.do(opInit, 0, uint32(7), uint32(38), uint32(1<<17), ^uint32(0)&^(1<<30), uint32(0), [11]uint32{}); errno != 0 {
			t.Fatalf("init: %v", errno)
		}
	}
	return p
}

// ended waits for the end of the process.
func (p *process) ended(t *testing.T) {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- p.cmd.Wait() }()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Fatal("the file server doesn't end")
	}
}

func (s *remote) do(op uint32, node uint64, body ...any) ([]byte, unix.Errno) {
	s.t.Helper()
	out, err := s.Do(s.g.in(op, node, words(body...)), 1<<16)
	if err != nil || len(out) < outHeaderSize {
		s.t.Fatalf("operation %d: %x, %v", op, out, err)
	}
	return out[outHeaderSize:], unix.Errno(-int32(binary.NativeEndian.Uint32(out[4:])))
}

// create makes a file, and returns its node and its number.
func (s *remote) create(name string, mode uint32) (node, fh uint64, errno unix.Errno) {
	b, errno := s.do(opCreate, rootID, uint32(os.O_RDWR), mode, uint64(0), name+"\x00")
	if errno != 0 {
		return 0, 0, errno
	}
	return binary.NativeEndian.Uint64(b), binary.NativeEndian.Uint64(b[entrySize:]), 0
}

// TestProcess: the file server as it runs beside a hypervisor, without privilege: what a
// guest's root can do to the host's files.
func TestProcess(t *testing.T) {
	const uid = 65532
	root, secret := makeShare(t)
	readOnly := t.TempDir()
	if err := os.WriteFile(filepath.Join(readOnly, "file"), []byte("read me"), 0o666); err != nil {
		t.Fatal(err)
	}
	asUID := uint32(0)
	if os.Geteuid() == 0 {
		asUID = uid
		top := filepath.Dir(root)
		for dir := top; strings.HasPrefix(dir, os.TempDir()+"/"); dir = filepath.Dir(dir) {
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		for _, p := range []string{root, filepath.Join(root, "dir"), filepath.Join(root, "file")} {
			if err := os.Chown(p, uid, uid); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(secret, 0o666); err != nil { // its place alone protects it
			t.Fatal(err)
		}
	}
	p := serveAs(t, asUID, Mount{Root: root}, Mount{Root: readOnly, ReadOnly: true})
	rw, ro := p.shares[0], p.shares[1]

	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil || !strings.Contains(string(status), "Seccomp:\t2\n") || !strings.Contains(string(status), "NoNewPrivs:\t1\n") {
		t.Errorf("the process isn't confined: %v\n%s", err, status)
	}

	node, fh, errno := rw.create("new", 0o104755)
	if errno != 0 {
		t.Fatalf("create: %v", errno)
	}
	if _, errno := rw.do(opWrite, node, fh, uint64(0), uint32(4), make([]byte, 20), "data"); errno != 0 {
		t.Errorf("write: %v", errno)
	}
	if b, errno := rw.do(opRead, node, fh, uint64(0), uint32(100), make([]byte, 20)); string(b) != "data" || errno != 0 {
		t.Errorf("read %q, %v", b, errno)
	}
	info, err := os.Stat(filepath.Join(root, "new"))
	if err != nil || info.Mode() != 0o755 {
		t.Errorf("the file is %v, %v", info, err)
	}
	if asUID != 0 && info.Sys().(*syscall.Stat_t).Uid != uid {
		t.Errorf("the file belongs to %d", info.Sys().(*syscall.Stat_t).Uid)
	}
	setOwner := func(owner uint32) []any { return []any{uint32(1 << 1), make([]byte, 72), owner, make([]byte, 8)} }
	for _, tt := range []struct {
		name string
		op   uint32
		node uint64
		body []any
		want unix.Errno
	}{
		{"a device", opMknod, rootID, []any{uint32(unix.S_IFCHR | 0o666), uint32(unix.Mkdev(1, 3)), uint64(0), "dev\x00"}, unix.EPERM},
		{"security.capability", opSetxattr, node, []any{uint32(20), uint32(0), "security.capability\x00", make([]byte, 20)}, unix.EPERM},
		{"trusted.a", opSetxattr, node, []any{uint32(1), uint32(0), "trusted.a\x00x"}, unix.EPERM},
		{"user.a", opSetxattr, node, []any{uint32(1), uint32(0), "user.a\x00x"}, 0},
		{"another owner", opSetattr, node, setOwner(1234), unix.EPERM},
		{"a FIFO", opMknod, rootID, []any{uint32(unix.S_IFIFO | 0o666), uint32(0), uint64(0), "fifo\x00"}, 0},
		{"a hard link", opLink, rootID, []any{node, "hard\x00"}, 0},
		{"a symbolic link outwards", opSymlink, rootID, []any{"outwards\x00/etc/passwd\x00"}, 0},
		{"what is beside the share", opLookup, rootID, []any{"..\x00"}, unix.EINVAL},
		{"a file without a name", opTmpfile, rootID, []any{uint32(os.O_RDWR), uint32(0o600), uint64(0), "/\x00"}, 0},
	} {
		if tt.name == "another owner" && asUID == 0 {
			continue
		}
		if _, errno := rw.do(tt.op, tt.node, tt.body...); errno != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, errno, tt.want)
		}
	}
	if _, _, errno := ro.create("new", 0o644); errno != unix.EROFS {
		t.Errorf("create in the read-only share: %v", errno)
	}

	// A breach of the protocol ends it, and says why.
	rw.Index(0x8000)
	p.ended(t)
	if p.cmd.ProcessState.ExitCode() != 1 || !strings.Contains(p.errs.String(), "the share "+root+":") {
		t.Errorf("it ended with %v: %s", p.cmd.ProcessState, p.errs)
	}
}

// TestHypervisorGone: the file server ends with its hypervisor.
func TestHypervisorGone(t *testing.T) {
	root, _ := makeShare(t)
	p := serveAs(t, 0, Mount{Root: root})
	p.shares[0].Conn.Close()
	p.ended(t)
	if p.cmd.ProcessState.ExitCode() != 0 || p.errs.Len() > 0 {
		t.Errorf("it ended with %v: %s", p.cmd.ProcessState, p.errs)
	}
}

// TestConfig: what isn't one is refused before anything is served.
func TestConfig(t *testing.T) {
	root := t.TempDir()
	for config, want := range map[string]string{
		``:                                 "read the configuration",
		`{"shares":[],"other":1}`:          "unknown field",
		`{"shares":[]}`:                    "there are 0 shares",
		`{"shares":[{"root":"/nowhere"}]}`: "open the share /nowhere: no such file",
		fmt.Sprintf(`{"shares":[{"root":%q}]}`, root):             "descriptor 0",
		fmt.Sprintf(`{"shares":[{"root":%q,"socket":99}]}`, root): "the socket of " + root,
		`{"shares":[` + strings.Repeat(`{},`, maxShares) + `{}]}`: "there are 17 shares",
	} {
		var errs strings.Builder
		if code := Main(strings.NewReader(config), &errs); code != 1 || !strings.Contains(errs.String(), want) {
			t.Errorf("%s: %d, %s, want %q", config, code, &errs, want)
		}
	}
}
