//go:build linux && amd64

package vm_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/carrier"
	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/vm/files"
	"github.com/llmdo/workshop/internal/vm/guest"
	"github.com/llmdo/workshop/internal/vm/monitor"
	"github.com/llmdo/workshop/internal/vm/root"
)

// asFileServer in the environment makes this program the file server of a machine.
const asFileServer = "WORKSHOP_TEST_FILES"

func init() {
	switch {
	case os.Getenv(asFileServer) != "":
		os.Exit(files.Main(os.Stdin, os.Stderr))
	case os.Getpid() == 1 && kindOf() == filesGuest:
		useFiles()
	}
}

// filesGuest is the kind of a guest that does to its shares what its root can do.
const filesGuest = "files"

func kindOf() string {
	program, _ := os.ReadFile("/init")
	return strings.TrimSpace(string(program[max(0, len(program)-markLen):]))
}

// used is what the guest found.
type used struct {
	Did   map[string]string // what was done, and how it went
	Tree  string            // the root file system's files, as a hash
	Took  map[string]time.Duration
	Error string
}

// useFiles is the guest.
func useFiles() {
	port, err := guest.Prepare(os.Stderr)
	if err != nil {
		fmt.Println(err)
	}
	u := used{Did: map[string]string{}, Took: map[string]time.Duration{}}
	if err := u.run(); err != nil {
		u.Error = err.Error()
		fmt.Println(err)
	}
	said, err := json.Marshal(u)
	if err == nil {
		err = os.WriteFile("/tmp/rw/said", said, 0o644)
	}
	if err != nil {
		fmt.Println(err)
	}
	ready := carrier.Head{Kind: carrier.Ready}.Encode()
	port.Write(append([]byte{6, 0, 0, 0, 0, 0, byte(len(ready))}, ready...))
	_, _ = port.Read(make([]byte, 1)) // until the host is done
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
}

func (u *used) run() error {
	for _, m := range []struct{ source, at, kind string }{{"rw", "/tmp/rw", "virtiofs"}, {"ro", "/tmp/ro", "virtiofs"}, {"/dev/vda", "/tmp/root", "erofs"}} {
		if err := os.Mkdir(m.at, 0o755); err != nil {
			return err
		}
		flags := uintptr(0)
		if m.kind == "erofs" {
			flags = unix.MS_RDONLY
		}
		if err := unix.Mount(m.source, m.at, m.kind, flags, ""); err != nil {
			return fmt.Errorf("mount %s: %w", m.at, err)
		}
	}
	u.attack("/tmp/rw", "/tmp/ro")
	u.measure("/tmp/rw")
	var err error
	u.Tree, err = treeHash("/tmp/root")
	return err
}

func (u *used) did(what string, err error) {
	u.Did[what] = "done"
	if errno := unix.Errno(0); errors.As(err, &errno) {
		u.Did[what] = unix.ErrnoName(errno)
	} else if err != nil {
		u.Did[what] = err.Error()
	}
}

// attack does what the root of a guest may try with the host's files.
func (u *used) attack(rw, ro string) {
	f := rw + "/file"
	u.did("write", os.WriteFile(f, []byte("x"), 0o644))
	u.did("chown", os.Chown(f, 1234, 1234))
	u.did("setuid", os.Chmod(f, 0o755|os.ModeSetuid))
	u.did("device", unix.Mknod(rw+"/dev", unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))))
	u.did("whiteout", unix.Mknod(rw+"/white", unix.S_IFCHR, 0))
	u.did("fifo", unix.Mkfifo(rw+"/fifo", 0o666))
	u.did("link outwards", os.Symlink("/etc/shadow", rw+"/link"))
	u.did("user.a", unix.Setxattr(f, "user.a", []byte("1"), 0))
	u.did("trusted.a", unix.Setxattr(f, "trusted.a", []byte("1"), 0))
	u.did("security.capability", unix.Setxattr(f, "security.capability", []byte("\x01\x00\x00\x02\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"), 0))
	u.did("shared mapping", mapped(f))
	u.did("flock", func() error {
		fd, err := unix.Open(f, unix.O_RDWR, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Flock(fd, unix.LOCK_EX)
	}())
	u.did("nameless file", func() error {
		fd, err := unix.Open(rw, unix.O_RDWR|unix.O_TMPFILE, 0o600)
		if err == nil {
			_, err = unix.Write(fd, []byte("x"))
			unix.Close(fd)
		}
		return err
	}())
	u.did("hard link", os.Link(f, rw+"/hard"))
	u.did("rename over", errors.Join(os.WriteFile(rw+"/other", []byte("other"), 0o644), os.Rename(rw+"/other", rw+"/hard")))
	u.did("list", func() error {
		list, err := os.ReadDir(rw)
		if err == nil && len(list) < 4 {
			err = fmt.Errorf("%d entries", len(list))
		}
		return err
	}())

	u.did("read the read-only share", func() error { _, err := os.ReadFile(ro + "/file"); return err }())
	u.did("write it", os.WriteFile(ro+"/new", []byte("x"), 0o644))
	u.did("remount it", unix.Mount("", ro, "", unix.MS_REMOUNT, ""))
	u.did("write it again", os.WriteFile(ro+"/file", []byte("x"), 0o644))
	u.did("chmod it", os.Chmod(ro+"/file", 0o777))
	u.did("mount it twice", func() error {
		os.Mkdir("/tmp/again", 0o755)
		err := unix.Mount("ro", "/tmp/again", "virtiofs", 0, "")
		if err == nil { // Linux has one superblock for it
			err = os.WriteFile("/tmp/again/new", nil, 0o644)
		}
		return err
	}())
	u.did("write the root's disk", func() error {
		fd, err := unix.Open("/dev/vda", unix.O_RDWR, 0)
		if err == nil {
			_, err = unix.Write(fd, make([]byte, 4096))
			unix.Close(fd)
		}
		return err
	}())
	u.did("write the root", os.WriteFile("/tmp/root/new", nil, 0o644))
}

// mapped writes a file by a shared mapping.
func mapped(f string) error {
	fd, err := unix.Open(f, unix.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Ftruncate(fd, 8192); err != nil {
		return err
	}
	m, err := unix.Mmap(fd, 0, 8192, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	defer unix.Munmap(m)
	m[4096] = 'Q'
	return unix.Msync(m, unix.MS_SYNC)
}

const measured = 200

// measure takes times of a few hundred files.
func (u *used) measure(rw string) {
	step := func(name string, f func(i int) error) {
		began := time.Now()
		for i := range measured {
			if err := f(i); err != nil {
				u.did(name, err)
				return
			}
		}
		u.Took[name] = time.Since(began) / measured
	}
	file := func(i int) string { return fmt.Sprintf("%s/bench/%d", rw, i) }
	_ = os.Mkdir(rw+"/bench", 0o755)
	step("create", func(i int) error { return os.WriteFile(file(i), []byte("hello world\n"), 0o644) })
	step("lstat", func(i int) error { _, err := os.Lstat(file(i)); return err })
	step("read", func(i int) error { _, err := os.ReadFile(file(i)); return err })
	block := make([]byte, 1<<20)
	began := time.Now()
	if f, err := os.Create(rw + "/bench/large"); err == nil {
		for range 32 {
			_, _ = f.Write(block)
		}
		_ = f.Sync()
		f.Close()
	}
	u.Took["write 32 MB"] = time.Since(began)
	step("unlink", func(i int) error { return os.Remove(file(i)) })
}

// treeHash is a hash of all names, modes, owners and contents.
func treeHash(dir string) (string, error) {
	h := sha256.New()
	var lines []string
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(p, &st); err != nil {
			return err
		}
		line := fmt.Sprintf("%s %o %d:%d %d", p[len(dir):], st.Mode, st.Uid, st.Gid, st.Mtim.Nano())
		if d.Type().IsRegular() {
			data, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			line += fmt.Sprintf(" %x", sha256.Sum256(data))
		}
		lines = append(lines, line)
		return nil
	})
	sort.Strings(lines)
	fmt.Fprintln(h, strings.Join(lines, "\n"))
	return fmt.Sprintf("%d entries %x", len(lines), h.Sum(nil)), err
}

// shares starts a file server with a uid, and returns QEMU's ends of its sockets.
func shares(t *testing.T, uid uint32, mounts ...files.Mount) (ends []*os.File, errs *bytes.Buffer) {
	t.Helper()
	errs = &bytes.Buffer{}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env, cmd.Stderr = []string{asFileServer + "=1"}, errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}, Pdeathsig: syscall.SIGKILL}
	for i := range mounts {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		theirs, qemu := os.NewFile(uintptr(pair[0]), "share"), os.NewFile(uintptr(pair[1]), "share")
		defer theirs.Close()
		t.Cleanup(func() { qemu.Close() })
		mounts[i].Socket = 3 + i
		cmd.ExtraFiles, ends = append(cmd.ExtraFiles, theirs), append(ends, qemu)
	}
	config, err := json.Marshal(files.Config{Shares: mounts})
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdin = bytes.NewReader(config)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return ends, errs
}

// B3 B7 B8: what the root of a guest can do to the host's files, by virtio-fs shares and
// an EROFS root.
func TestFiles(t *testing.T) {
	testutil.Require(t, os.Getuid() == 0, "it needs root")
	const uid = 65532
	top := t.TempDir()
	for d := top; d != "/tmp" && d != "/"; d = filepath.Dir(d) { // the user needs a way to it
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	rw, ro, image := filepath.Join(top, "rw"), filepath.Join(top, "ro"), filepath.Join(top, "root.erofs")
	for _, d := range []string{rw, ro, filepath.Join(top, "root/etc")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range []string{rw, ro} { // the flag alone protects what is read-only
		if err := os.Chown(d, uid, uid); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 300 {
		if err := os.WriteFile(filepath.Join(top, fmt.Sprintf("root/etc/%d", i)), bytes.Repeat([]byte{byte(i)}, i*37), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(ro, "file"), []byte("read me"), 0o666); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(image)
	if err == nil {
		err = root.Write(t.Context(), f, filepath.Join(top, "root"))
		f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	ends, errs := shares(t, uid, files.Mount{Root: rw}, files.Mount{Root: ro, ReadOnly: true})

	s := spec(t, mark(t, filesGuest), nil)
	s.Root, s.Console = image, true
	s.Shares = []monitor.Share{{Tag: "rw", Socket: ends[0]}, {Tag: "ro", Socket: ends[1]}}
	var said bytes.Buffer
	m, err := monitor.Start(s, func(cmd *exec.Cmd) {
		cmd.Stdout, cmd.Stderr = &said, &said
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, end := range ends {
		end.Close()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	err = m.Ready(ctx)
	answer, err2 := os.ReadFile(filepath.Join(rw, "said"))
	m.Stop()
	var u used
	if err == nil && err2 == nil {
		err = json.Unmarshal(answer, &u)
	}
	if err != nil || err2 != nil || u.Error != "" {
		t.Fatalf("%v, %v, %s; the file server: %s; the console:\n%s", err, err2, u.Error, errs, &said)
	}
	for what, want := range map[string]string{
		"write": "done", "chown": "EPERM", "setuid": "done", "device": "EPERM", "whiteout": "EPERM", "fifo": "done", "link outwards": "done",
		"user.a": "done", "trusted.a": "EPERM", "security.capability": "EPERM", "shared mapping": "done", "flock": "done", "nameless file": "done",
		"hard link": "done", "rename over": "done", "list": "done",
		"read the read-only share": "done", "write it": "EROFS", "remount it": "done", "write it again": "EROFS", "chmod it": "EROFS", "mount it twice": "EROFS",
		"write the root's disk": "EPERM", "write the root": "EROFS",
	} {
		if got := u.Did[what]; got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	info, err := os.Stat(filepath.Join(rw, "file"))
	if err != nil || info.Mode() != 0o755 || info.Sys().(*syscall.Stat_t).Uid != uid || info.Size() != 8192 {
		t.Errorf("the guest's file is %v, %v", info, err)
	}
	if data, err := os.ReadFile(filepath.Join(rw, "file")); err != nil || len(data) != 8192 || data[4096] != 'Q' {
		t.Errorf("what was mapped is not in the file: %v", err)
	}
	if data, err := os.ReadFile(filepath.Join(ro, "file")); string(data) != "read me" || err != nil {
		t.Errorf("the read-only file is %q, %v", data, err)
	}
	if want, err := treeHash(filepath.Join(top, "root")); err != nil || u.Tree != want {
		t.Errorf("the root is %s, want %s (%v)", u.Tree, want, err)
	}
	t.Logf("%v", u.Took)
}
