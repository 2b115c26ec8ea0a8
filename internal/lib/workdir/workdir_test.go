//go:build linux

package workdir

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/dev/testutil"
)

// Entering is of a whole process: the test binary is that one too, and says
// where it is then.
const roleVariable = "WORKSHOP_WORKDIR_TEST_ENTER"

func TestMain(m *testing.M) {
	dir, ok := os.LookupEnv(roleVariable)
	if !ok {
		os.Exit(m.Run())
	}
	if err := Enter(dir); err != nil {
		fmt.Print(err)
		os.Exit(1)
	}
	where, _ := os.Readlink("/proc/self/cwd")
	fmt.Print(where)
}

// tree is a directory with what a worker may have made in it.
func tree(t *testing.T) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(
		os.Chmod(filepath.Dir(root), 0o755), os.MkdirAll(root+"/a/b", 0o755), os.Mkdir(root+"/closed", 0), os.WriteFile(root+"/file", nil, 0o600),
		os.Symlink("a", root+"/link"), os.Symlink("/proc/self/cwd", root+"/cwd"), os.Symlink("/proc/self/root", root+"/root"),
		os.Symlink("/proc/self/fd", root+"/fds"), os.Symlink("circle", root+"/circle"), os.Symlink("nowhere", root+"/dangling"),
	); err != nil {
		t.Fatal(err)
	}
	return root
}

func TestEnter(t *testing.T) {
	root := tree(t)
	// A descriptor of a directory that a process has by mistake.
	leak, err := os.Open("/usr")
	if err != nil {
		t.Fatal(err)
	}
	defer leak.Close()
	leaked := "/proc/self/fd/3"
	if err := os.Symlink(leaked, root+"/leak"); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ name, dir, want string }{
		{"a directory", root + "/a/b", root + "/a/b"},
		{"the root", "/", "/"},
		{"a link inside", root + "/link/b", root + "/a/b"},
		{"dots", root + "/link/b/../b/.", root + "/a/b"},

		{"a descriptor", leaked, "magic link"},
		{"a link to a descriptor", root + "/leak", "magic link"},
		{"below a link to a descriptor", root + "/leak/bin", "magic link"},
		{"back from a descriptor", root + "/leak/../tmp", "magic link"},
		{"a working directory", root + "/cwd", "magic link"},
		{"a root", root + "/root/usr", "magic link"},
		{"a root by its own path", "/proc/self/root", "magic link"},
		{"links in a circle", root + "/circle", "go in a circle"},
		{"the directory of descriptors", root + "/fds", "it is in /proc or /sys"},
		{"/proc", "/proc", "it is in /proc or /sys"},
		{"/sys", "/sys/kernel", "it is in /proc or /sys"},
		{"missing", root + "/missing", "there is no such directory in the worker"},
		{"a dangling link", root + "/dangling", "there is no such directory in the worker"},
		{"a file", root + "/file", "it is not a directory"},
		{"below a file", root + "/file/x", "it is not a directory"},
	} {
		t.Run(test.name, func(t *testing.T) {
			cmd := exec.Command("/proc/self/exe")
			cmd.Env = append(os.Environ(), roleVariable+"="+test.dir)
			cmd.ExtraFiles = []*os.File{leak}
			out, err := cmd.Output()
			got := string(out)
			if filepath.IsAbs(test.want) {
				if err != nil || got != test.want {
					t.Errorf("got %q, %v, want %s", got, err, test.want)
				}
				return
			}
			if err == nil || !strings.HasPrefix(got, "workdir "+test.dir+": ") || !strings.Contains(got, test.want) {
				t.Errorf("got %q, %v, want %q", got, err, test.want)
			}
		})
	}
}

// Root may enter everything: an ordinary user is refused what it can't search.
func TestEnterNotPermitted(t *testing.T) {
	testutil.Require(t, os.Geteuid() == 0, "another user needs root")
	root := tree(t)
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(root+"/enter", self, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{root + "/closed", root + "/closed/x"} {
		cmd := exec.Command(root + "/enter")
		cmd.Env = append(os.Environ(), roleVariable+"="+dir)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 64202, Gid: 64202}}
		if out, err := cmd.Output(); err == nil || string(out) != "workdir "+dir+": permission denied" {
			t.Errorf("%s: got %q, %v", dir, out, err)
		}
	}
}

// What was opened stays what it is, whatever its name becomes.
func TestOpenStays(t *testing.T) {
	root := tree(t)
	d, err := Open(root + "/a")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := errors.Join(os.Rename(root+"/a", root+"/moved"), os.Symlink("/proc/self/root", root+"/a")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(d.Name() + "/b"); err != nil {
		t.Error(err)
	}
	if _, err := Open(root + "/a"); !errors.Is(err, unix.ELOOP) {
		t.Errorf("got %v", err)
	}
}

// Without openat2 no link is followed.
func TestWalk(t *testing.T) {
	root := tree(t)
	t.Chdir(root)
	for _, test := range []struct {
		dir  string
		want error
	}{
		{root + "/a/b", nil}, {root + "//a/./b/", nil}, {"a/b", nil}, {"/", nil},
		{root + "/link", errLink}, {root + "/link/b", errLink}, {root + "/fds", errLink}, {root + "/cwd/usr", errLink}, {"/proc/self/root", errLink},
		{root + "/missing/x", unix.ENOENT}, {root + "/file", unix.ENOTDIR},
	} {
		fd, err := walk(test.dir)
		if !errors.Is(err, test.want) || (err == nil) != (test.want == nil) {
			t.Errorf("%s: got %v, want %v", test.dir, err, test.want)
		}
		if err != nil {
			continue
		}
		want, _ := filepath.Abs(test.dir)
		if got, _ := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd)); got != want {
			t.Errorf("%s: got %s", test.dir, got)
		}
		unix.Close(fd)
	}
}

func TestMake(t *testing.T) {
	root := tree(t)
	for _, test := range []struct{ name, dir, made, want string }{
		{name: "there", dir: root + "/a", made: "a"},
		{name: "missing", dir: root + "/x/y/z", made: "x/y/z"},
		{name: "below a link", dir: root + "/link/new", made: "a/new"},
		{name: "below a magic link", dir: root + "/root" + root + "/evil", want: "magic link"},
		{name: "a dangling link", dir: root + "/dangling"},
		{name: "below a file", dir: root + "/file/x", want: "it is not a directory"},
		{name: "where nothing can be made", dir: "/proc/no/such", want: "it is in /proc or /sys"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := Make(test.dir)
			if (err == nil) != (test.want == "") || err != nil && (!strings.HasPrefix(err.Error(), "workdir /") || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if info, err := os.Stat(filepath.Join(root, test.made)); test.made != "" && (err != nil || !info.IsDir()) {
				t.Errorf("%s: %v", test.made, err)
			}
		})
	}
	if _, err := os.Lstat(root + "/evil"); err == nil {
		t.Error("made through a magic link")
	}
}
