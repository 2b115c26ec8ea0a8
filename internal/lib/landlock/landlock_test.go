//go:build linux

package landlock

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/dev/testutil"
)

// A fence is for good, so each test runs in a process of its own.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "fenced" {
		runtime.LockOSThread()
		fenced(os.Args[2], os.Args[3:])
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func fenced(fence string, args []string) {
	dir := args[0]
	rules := Rules{Read: []string{"/"}, Write: []string{dir + "/rw", dir + "/file", "/dev/null"}, ScopeSignals: true, ScopeSockets: true}
	switch fence {
	case "none":
	case "fds":
		rules.Write = []string{dir + "/file"}
		for _, p := range []string{dir + "/rw", "/dev/null"} {
			fd, err := unix.Open(p, unix.O_PATH, 0)
			if err != nil {
				panic(err)
			}
			rules.WriteFDs = append(rules.WriteFDs, fd)
		}
		fallthrough
	case "paths":
		abi, err := Restrict(rules)
		fmt.Println("abi", abi, err)
	case "few": // /proc for Go's run-time
		rules.Read = []string{dir + "/ro", "/proc"}
		abi, err := Restrict(rules)
		fmt.Println("abi", abi, err)
	}
	say := func(what string, err error) {
		var errno syscall.Errno
		if errors.As(err, &errno) {
			fmt.Println(what, unix.ErrnoName(errno))
		} else {
			fmt.Println(what, err)
		}
	}
	write := func(p string) error { return os.WriteFile(p, []byte("x"), 0o600) }
	say("write rw", write(dir+"/rw/new"))
	say("write ro", write(dir+"/ro/new"))
	say("change ro", write(dir+"/ro/file"))
	say("change file", write(dir+"/file"))
	say("truncate ro", os.Truncate(dir+"/ro/file", 0))
	say("mkdir ro", os.Mkdir(dir+"/ro/d", 0o700))
	say("move in rw", os.Rename(dir+"/rw/a/x", dir+"/rw/b/x"))
	say("link out of ro", os.Link(dir+"/ro/file", dir+"/rw/link"))
	say("remove ro", os.Remove(dir+"/ro/gone"))
	say("link", os.Symlink("x", dir+"/ro/s"))
	say("fifo", unix.Mkfifo(dir+"/ro/fifo", 0o600))
	_, err := os.ReadFile(dir + "/ro/file")
	say("read ro", err)
	_, err = os.ReadFile(dir + "/other")
	say("read other", err)
	say("null", write("/dev/null"))
	pid, _ := strconv.Atoi(args[1])
	say("signal", unix.Kill(pid, 0))
	fd, _ := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	say("abstract", unix.Connect(fd, &unix.SockaddrUnix{Name: args[2]}))
}

func TestRestrict(t *testing.T) {
	testutil.Require(t, ABI() >= 6, "this kernel's Landlock is older than ABI 6")
	l, err := net.Listen("unix", fmt.Sprintf("@workshop-landlock-%d", os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for fence, refused := range map[string]string{
		"none":  "",
		"paths": "write ro,change ro,truncate ro,mkdir ro,link out of ro,remove ro,link,fifo,signal,abstract",
		"fds":   "write ro,change ro,truncate ro,mkdir ro,link out of ro,remove ro,link,fifo,signal,abstract",
		"few":   "write ro,change ro,truncate ro,mkdir ro,link out of ro,remove ro,link,fifo,read other,signal,abstract",
	} {
		t.Run(fence, func(t *testing.T) {
			dir := t.TempDir()
			for _, p := range []string{"rw/a/x", "rw/b/y", "ro/file", "ro/gone", "file", "other"} {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, p)), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, p), []byte("x"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			out, err := exec.Command("/proc/self/exe", "fenced", fence, dir, strconv.Itoa(os.Getpid()), l.Addr().String()).CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			var got []string
			for line := range strings.Lines(string(out)) {
				what := strings.Fields(line)
				last := what[len(what)-1]
				if what[0] == "abi" {
					if line != fmt.Sprintf("abi %d <nil>\n", ABI()) {
						t.Error(line)
					}
					continue
				}
				if last != "<nil>" {
					got = append(got, strings.Join(what[:len(what)-1], " "))
					if last != "EACCES" && last != "EPERM" && last != "EXDEV" {
						t.Error(line)
					}
				}
			}
			if strings.Join(got, ",") != refused {
				t.Errorf("refused are %s\nwant %s\n%s", strings.Join(got, ","), refused, out)
			}
		})
	}
}

// A path that isn't there, or a kernel that refuses, restricts nothing.
func TestRestrictFails(t *testing.T) {
	testutil.Require(t, ABI() > 0, "this kernel has no Landlock")
	runtime.LockOSThread() // and never unlocked: should it succeed, the thread ends
	abi, err := Restrict(Rules{Read: []string{"/missing"}})
	if abi != 0 || err == nil || !strings.Contains(err.Error(), "landlock: /missing: no such file") {
		t.Errorf("%d %v", abi, err)
	}
	if abi, err := Restrict(Rules{WriteFDs: []int{-1}}); abi != 0 || err == nil {
		t.Errorf("%d %v", abi, err)
	}
	if err := os.WriteFile(filepath.Join(t.TempDir(), "x"), nil, 0o600); err != nil {
		t.Error(err)
	}
}

// What older kernels know.
func TestHandled(t *testing.T) {
	for abi, want := range map[int]uint64{1: 0x1fff, 2: 0x3fff, 3: 0x7fff, 4: 0x7fff, 5: 0xffff, 6: 0xffff, 9: 0xffff} {
		if got := handled(abi); got != want {
			t.Errorf("ABI %d: %#x, want %#x", abi, got, want)
		}
	}
}
