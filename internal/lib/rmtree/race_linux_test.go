package rmtree

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/dev/testutil"
)

const worker = 1000

func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "swap" {
		swap(os.Args[2], os.Args[3])
	}
	os.Exit(m.Run())
}

// swap makes directories in dir, and puts a link to outside in the place of each
// and takes it away again, until stdin ends.
func swap(dir, outside string) {
	go func() {
		_, _ = bufio.NewReader(os.Stdin).ReadByte()
		os.Exit(0)
	}()
	for n := 0; ; n++ {
		d, link := fmt.Sprintf("%s/d%d", dir, n%4), fmt.Sprintf("%s/l%d", dir, n%4)
		_ = syscall.Unlink(d) // the link, if that is what it is: the swapper itself follows none
		_ = os.MkdirAll(d+"/kept", 0o755)
		_ = os.WriteFile(d+"/file", nil, 0o644)
		if n%3 == 0 { // one to be opened
			_ = os.Chmod(d, 0)
		}
		_ = os.Symlink(outside, link)
		for range 20 {
			_ = unix.Renameat2(unix.AT_FDCWD, d, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE)
		}
		if n == 10 {
			fmt.Println("swapping")
		}
	}
}

// TestRemoveBesideARacer: a worker puts links in the place of directories of
// which the caller is removing; as root, and as the worker itself, whose closed
// directories have to be opened.
func TestRemoveBesideARacer(t *testing.T) {
	outside, err := os.MkdirTemp("", "rmtree-outside")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(outside) })
	if os.Geteuid() == 0 {
		t.Run("as an ordinary user", asWorker)
	} else {
		testutil.Require(t, os.Getenv(again) != "", "root removes what a worker writes")
	}
	if err := errors.Join(os.Chmod(outside, 0o750), os.Mkdir(outside+"/kept", 0o755), os.WriteFile(outside+"/kept/file", []byte("mine"), 0o644), os.WriteFile(outside+"/file", nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	top, err := os.MkdirTemp("", "rmtree-tree")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = Remove(top) })
	volume := filepath.Join(top, "state", "volume")
	if err := errors.Join(os.Chmod(top, 0o755), os.MkdirAll(volume, 0o755), os.Chown(volume, worker, worker)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe", "swap", volume, outside)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: worker, Gid: worker, NoSetGroups: os.Geteuid() != 0}}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); _ = cmd.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "swapping\n" {
		t.Fatal(line, err)
	}
	n, lost := 0, 0
	for end := time.Now().Add(time.Second); time.Now().Before(end); n++ {
		for _, name := range []string{"d0", "l0", "d1", "l1", "d2", "l2", "d3", "l3"} {
			if err := Remove(filepath.Join(volume, name)); err != nil {
				lost++ // it makes new ones, and closes them
			}
		}
		info, err := os.Stat(outside)
		b, e := os.ReadFile(outside + "/kept/file")
		_, there := os.Stat(outside + "/file")
		if err = errors.Join(err, e, there); err != nil || info.Mode().Perm() != 0o750 || string(b) != "mine" {
			t.Fatalf("after %d rounds what is outside is touched: %v, %v, %q", n, err, info.Mode(), b)
		}
	}
	if n < 100 {
		t.Errorf("%d rounds show nothing", n)
	}
	t.Logf("%d rounds, %d trees were not gone", n, lost)
}

const again = "RMTREE_TEST_AGAIN"

// asWorker runs the race in a process of an ordinary user.
func asWorker(t *testing.T) {
	dir, err := os.MkdirTemp("", "rmtree-test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	self, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = errors.Join(os.Chmod(dir, 0o755), os.WriteFile(dir+"/test", self, 0o755), os.Mkdir(dir+"/tmp", 0o700), os.Chown(dir+"/tmp", worker, worker))
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(dir+"/test", "-test.run=^TestRemove", "-test.v")
	cmd.Dir = "/"
	cmd.Env = []string{again + "=1", "TMPDIR=" + dir + "/tmp"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: worker, Gid: worker}}
	b, err := cmd.CombinedOutput()
	if err != nil || strings.Count(string(b), "--- PASS: TestRemove") != 6 {
		t.Errorf("%v\n%s", err, b)
	}
	t.Logf("%s", b)
}
