//go:build linux

package container

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
)

func init() {
	insides["cat"] = func(a []string) {
		for _, p := range a {
			b, err := os.ReadFile(p)
			fmt.Printf("%s: %s", p, b)
			if err != nil {
				report(err)
			}
		}
	}
	insides["each"] = func(a []string) { // "write /x" "read /y"
		for _, s := range a {
			f := strings.Fields(s)
			fmt.Print(s, ": ")
			insides[f[0]](f[1:])
		}
	}
	insides["fill"] = func(a []string) {
		f, err := os.Create(a[0])
		for i := 0; i < 64 && err == nil; i++ {
			_, err = f.Write(bytes.Repeat([]byte{'x'}, 1<<16))
		}
		report(err)
	}
	insides["ls"] = func(a []string) {
		l, err := os.ReadDir(a[0])
		for _, e := range l {
			fmt.Print(e.Name(), " ")
		}
		fmt.Println(err)
	}
	insides["stat"] = func(a []string) {
		var st unix.Stat_t
		if err := unix.Stat(a[0], &st); err != nil {
			report(err)
			return
		}
		fmt.Printf("%o %d:%d\n", st.Mode&0o7777, st.Uid, st.Gid)
	}
	insides["mountinfo"] = func([]string) {
		b, _ := os.ReadFile("/proc/self/mountinfo")
		os.Stdout.Write(b)
	}
}

// testDir is a directory of a test, which an ordinary user can enter and owns.
func testDir(t testing.TB, mode string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "contain-mounts")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	uid, gid := ids(mode)
	if os.Getuid() == 0 {
		if err := os.Chown(dir, int(uid), int(gid)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func put(t testing.TB, p, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(p), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	_ = os.Chmod(filepath.Dir(p), 0o777)
	_ = os.Chmod(p, 0o666)
}

func bind(source, target string) spec.Mount {
	return spec.Mount{Type: spec.Bind, Source: source, Target: target}
}

func readOnlyBind(source, target string) spec.Mount {
	return spec.Mount{Type: spec.Bind, Source: source, Target: target, ReadOnly: true}
}

func TestMounts(t *testing.T) {
	eachMode(t, func(t *testing.T, mode string) {
		dir := testDir(t, mode)
		put(t, dir+"/rw/file", "rw\n")
		put(t, dir+"/rw/.git/config", "git\n")
		put(t, dir+"/ro/file", "ro\n")
		put(t, dir+"/secret", "s\n")
		uid, gid := ids(mode)
		c := container(mode, "each", "write /ws/new", "write /ws/.git/config", "write /ws/.git/new", "write /ro/file", "write /ro/new", "write /run/secret",
			"cat /ro/file", "cat /run/secret", "write /deep/a/b/tmp/x", "write /deep/a/x", "fill /deep/a/b/tmp/y", "fill /dev/shm/y", "fill /ws/y", "stat /deep/a/b/tmp", "stat /deep",
			"cat /deep/a/b/tmp/ro/file", "cat /etc/hosts", "write /etc/hosts", "cat /deep/a/b/tmp/f", "write /deep/a/b/tmp/f", "stat /etc/hosts", "cat /ro/file2", "ls /")
		put(t, dir+"/ro/file2", "hidden\n")
		c.Mounts = append(c.Mounts, bind(dir+"/rw", "/ws"), readOnlyBind(dir+"/rw/.git", "/ws/.git"), readOnlyBind(dir+"/ro", "/ro"), readOnlyBind(dir+"/secret", "/run/secret"),
			spec.Mount{Type: spec.Tmpfs, Target: "/deep/a/b/tmp", Size: 1 << 20, Mode: 0o1770, UID: uid, GID: gid},
			readOnlyBind(dir+"/ro", "/deep/a/b/tmp/ro"))
		c.Files = []spec.File{{Path: "/etc/hosts", Data: "hosts\n", Mode: 0o444}, {Path: "/deep/a/b/tmp/f", Data: "f\n", Mode: 0o444}, {Path: "/ro/file2", Data: "over\n", Mode: 0o444}}
		got := run(t, mode, job{Spec: c})
		want := fmt.Sprintf(`write /ws/new: done
write /ws/.git/config: refused EROFS
write /ws/.git/new: refused EROFS
write /ro/file: refused EROFS
write /ro/new: refused EROFS
write /run/secret: refused EROFS
cat /ro/file: /ro/file: ro
cat /run/secret: /run/secret: s
write /deep/a/b/tmp/x: done
write /deep/a/x: refused EROFS
fill /deep/a/b/tmp/y: refused ENOSPC
fill /dev/shm/y: refused ENOSPC
fill /ws/y: done
stat /deep/a/b/tmp: 1770 %d:%d
stat /deep: 755 %[3]d:%[3]d
cat /deep/a/b/tmp/ro/file: /deep/a/b/tmp/ro/file: ro
cat /etc/hosts: /etc/hosts: hosts
write /etc/hosts: refused EROFS
cat /deep/a/b/tmp/f: /deep/a/b/tmp/f: f
write /deep/a/b/tmp/f: refused EROFS
stat /etc/hosts: 444 %[3]d:%[3]d
cat /ro/file2: /ro/file2: over
ls /: deep dev etc inside lib lib64 proc ro run sys usr ws <nil>
`, uid, gid, map[bool]uint32{true: 0, false: uid}[mode == "root"])
		if got.Err != "" || got.Out != want {
			t.Errorf("%s\n%s\nwant\n%s", got.Err, got.Out, want)
		}
		if b, err := os.ReadFile(dir + "/ro/file2"); string(b) != "hidden\n" || err != nil {
			t.Errorf("on the machine: %q %v", b, err)
		}
		if _, err := os.Stat(dir + "/rw/new"); err != nil {
			t.Error(err)
		}
	})
}

// Every mount's attributes, by what the kernel says of it.
func TestAttributes(t *testing.T) {
	eachMode(t, func(t *testing.T, mode string) {
		dir := testDir(t, mode)
		put(t, dir+"/file", "x")
		c := container(mode, "mountinfo")
		c.Mounts = append(c.Mounts, bind(dir, "/ws"), spec.Mount{Type: spec.Tmpfs, Target: "/tmp", Size: 1 << 20, NoExec: true}, spec.Mount{Type: spec.Bind, Source: dir, Target: "/noexec", NoExec: true})
		got := run(t, mode, job{Spec: c})
		writable := []string{"/dev/mqueue", "/dev/pts", "/dev/shm", "/noexec", "/proc", "/tmp", "/ws"}
		var seen []string
		checkMountInfo(t, got.Out)
		for _, line := range lines(got.Out) {
			f := strings.Fields(line)
			options := strings.Split(f[5], ",")
			target := f[4]
			if slices.Contains(options, "rw") {
				seen = append(seen, target)
			}
			device := strings.HasPrefix(target, "/dev") && target != "/dev/shm" && target != "/dev/mqueue" || f[3] == "/null"
			if !slices.Contains(options, "nosuid") || !slices.Contains(options, "nodev") && !device {
				t.Errorf("%s", line)
			}
			if (target == "/tmp" || target == "/noexec" || target == "/dev/shm" || target == "/proc" || target == "/sys") && !slices.Contains(options, "noexec") {
				t.Errorf("%s", line)
			}
			if f[6] != "-" {
				t.Errorf("mounts are propagated: %s", line)
			}
		}
		slices.Sort(seen)
		if !slices.Equal(seen, writable) {
			t.Errorf("%v can be written, want %v\n%s%s", seen, writable, got.Err, got.Out)
		}
	})
}

// An image as root: its links are followed below the root, its files are
// replaced, and it stays what it is.
func TestImageRoot(t *testing.T) {
	eachMode(t, func(t *testing.T, mode string) {
		dir := testDir(t, mode)
		put(t, dir+"/root,a:b/bin/x", "x\n") // characters that mean something to overlayfs
		image := dir + "/root,a:b"
		put(t, image+"/etc/resolv.conf", "image's\n")
		put(t, image+"/etc/keep", "keep\n")
		put(t, image+"/run/x", "x\n")
		for link, to := range map[string]string{"/var": "/../../../run", "/etc/hosts": "/proc/self/fd/7", "/abs": "/etc", "/up": "../../../../../../../etc"} {
			if err := os.Symlink(to, image+link); err != nil {
				t.Fatal(err)
			}
		}
		put(t, dir+"/ws/file", "ws\n")
		if mode == "user" && os.Getuid() == 0 { // an ordinary user's image is the user's
			err := filepath.Walk(dir, func(p string, _ os.FileInfo, err error) error {
				return errors.Join(err, os.Lchown(p, userID, userID))
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		before := tree(t, image)
		c := container(mode, "each", "cat /etc/resolv.conf", "cat /etc/keep", "write /etc/keep", "write /new", "cat /etc/hosts", "cat /run/lib/file", "cat /etc/new/file", "cat /etc/up/file", "ls /var", "ls /home/w", "mountinfo")
		c.Root.Dir = image
		c.Process.Cwd = "/home/w"
		c.Mounts = append(c.Mounts, bind(dir+"/ws", "/var/lib"), bind(dir+"/ws", "/abs/new"), bind(dir+"/ws", "/up/up"))
		c.Files = []spec.File{{Path: "/etc/resolv.conf", Data: "ours\n", Mode: 0o444}, {Path: "/etc/hosts", Data: "hosts\n", Mode: 0o444}}
		got := run(t, mode, job{Spec: c})
		want := `cat /etc/resolv.conf: /etc/resolv.conf: ours
cat /etc/keep: /etc/keep: keep
write /etc/keep: refused EROFS
write /new: refused EROFS
cat /etc/hosts: /etc/hosts: hosts
cat /run/lib/file: /run/lib/file: ws
cat /etc/new/file: /etc/new/file: ws
cat /etc/up/file: /etc/up/file: ws
ls /var: lib x <nil>
ls /home/w: <nil>
`
		out, mounts, _ := strings.Cut(got.Out, "mountinfo: ")
		if got.Err != "" || out != want {
			t.Errorf("%s\n%s\nwant\n%s", got.Err, out, want)
		}
		checkMountInfo(t, mounts)
		if after := tree(t, image); after != before {
			t.Errorf("the image was changed:\n%s\n%s", before, after)
		}
		put(t, dir+"/escape/proc", "")
		c.Root.Dir = dir + "/linked"
		if err := os.MkdirAll(c.Root.Dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("/etc", c.Root.Dir+"/proc"); err != nil {
			t.Fatal(err)
		}
		if got := run(t, mode, job{Spec: c}); !strings.Contains(got.Err, "/proc: the path contains a symbolic link") {
			t.Errorf("an image whose /proc is a link: %+v", got)
		}
	})
}

// checkMountInfo: all that is mounted is the container's own.
func checkMountInfo(t *testing.T, text string) {
	t.Helper()
	seen := map[string]bool{}
	for _, line := range lines(text) {
		f := strings.Fields(line)
		if len(f) < 10 {
			t.Fatalf("%q", line)
		}
		first := strings.Split(f[4], "/")[1]
		if seen[f[4]] || !slices.Contains(strings.Fields(" inside lib lib64 usr proc sys dev ws tmp noexec run etc"), first) && f[4] != "/" {
			t.Errorf("not the container's: %s", line)
		}
		seen[f[4]] = true
		if kind := f[len(f)-3]; f[4] == "/" && kind != "tmpfs" && kind != "overlay" {
			t.Errorf("the root: %s", line)
		}
	}
	if !seen["/"] || !seen["/proc"] {
		t.Errorf("%s", text)
	}
}

func tree(t *testing.T, dir string) string {
	var b strings.Builder
	err := filepath.Walk(dir, func(p string, i os.FileInfo, err error) error {
		if err == nil {
			fmt.Fprintln(&b, p, i.Mode(), i.Size())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Links that are there, in sources and in targets of binds that can be
// written: refused, or followed inside an image alone.
func TestLinks(t *testing.T) {
	eachMode(t, func(t *testing.T, mode string) {
		dir := testDir(t, mode)
		put(t, dir+"/rw/real/file", "x")
		put(t, dir+"/other/file", "other")
		for link, to := range map[string]string{"/rw/link": dir + "/other", "/rw/abs": "/usr", "/rw/self": ".", "/rw/flink": "real/file"} {
			if err := os.Symlink(to, dir+link); err != nil {
				t.Fatal(err)
			}
		}
		if err := unix.Mkfifo(dir+"/fifo", 0o666); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			mounts []spec.Mount
			files  []spec.File
			want   string
		}{
			{mounts: []spec.Mount{bind(dir+"/rw/link", "/x")}, want: "symbolic link"},
			{mounts: []spec.Mount{bind(dir+"/rw/self/real", "/x")}, want: "symbolic link"},
			{mounts: []spec.Mount{bind(dir+"/rw/missing", "/x")}, want: "no such file"},
			{mounts: []spec.Mount{bind(dir+"/fifo", "/x")}, want: "not a directory, file or socket"},
			{mounts: []spec.Mount{bind("/dev/null", "/x")}, want: "not a directory, file or socket"},
			{mounts: []spec.Mount{bind(dir+"/rw", "/ws"), bind(dir+"/other", "/ws/abs")}, want: "symbolic link"},
			{mounts: []spec.Mount{bind(dir+"/rw", "/ws"), bind(dir+"/other", "/ws/abs/lib")}, want: "symbolic link"},
			{mounts: []spec.Mount{bind(dir+"/rw", "/ws"), bind(dir+"/other", "/ws/self/real")}, want: "symbolic link"},
			{mounts: []spec.Mount{bind(dir+"/rw", "/ws"), bind(dir+"/other", "/ws/missing")}, want: "/ws/missing doesn't exist in the mount at /ws, where nothing is created: create it"},
			{mounts: []spec.Mount{bind(dir+"/rw", "/ws"), bind(dir+"/other", "/ws/missing/more")}, want: "doesn't exist"},
			{mounts: []spec.Mount{bind(dir+"/rw", "/ws"), bind(dir+"/other", "/ws/real/file")}, want: "source and target must both be directories or both be files"},
			{mounts: []spec.Mount{bind(dir+"/rw", "/ws")}, files: []spec.File{{Path: "/ws/flink", Data: "x"}}, want: "symbolic link"},
			{mounts: []spec.Mount{bind(dir+"/rw", "/ws")}, files: []spec.File{{Path: "/ws/new", Data: "x"}}, want: "doesn't exist"},
			{mounts: []spec.Mount{bind(dir+"/rw", "/ws"), {Type: spec.Tmpfs, Target: "/ws/new", Size: 4096}}, want: "doesn't exist"},
		} {
			s := container(mode, "exit")
			s.Mounts, s.Files = append(s.Mounts, c.mounts...), c.files
			if got := run(t, mode, job{Spec: s}); !strings.Contains(got.Err, c.want) {
				t.Errorf("%v %v: %+v; want %q", c.mounts, c.files, got, c.want)
			}
		}
		if l, err := os.ReadDir(dir + "/rw"); err != nil || len(l) != 5 {
			t.Errorf("something was made on the machine: %v %v", l, err)
		}
	})
}

// Somebody swaps a directory and a link while containers start: the mount is
// where it belongs and shows what it should, or the start fails.
func TestRaces(t *testing.T) {
	eachMode(t, func(t *testing.T, mode string) {
		dir := testDir(t, mode)
		put(t, dir+"/good/file", "good")
		put(t, dir+"/bad/file", "bad")
		put(t, dir+"/rw/a/file", "under")
		if err := os.Symlink("good", dir+"/swap"); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"/link", "/rw/l"} {
			if err := os.Symlink(dir+"/bad", dir+name); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Rename(dir+"/good", dir+"/source"); err != nil {
			t.Fatal(err)
		}
		var stop atomic.Bool
		ended := make(chan int)
		go func() {
			n := 0
			for ; !stop.Load(); n++ {
				_ = unix.Renameat2(unix.AT_FDCWD, dir+"/source", unix.AT_FDCWD, dir+"/link", unix.RENAME_EXCHANGE)
				_ = unix.Renameat2(unix.AT_FDCWD, dir+"/rw/a", unix.AT_FDCWD, dir+"/rw/l", unix.RENAME_EXCHANGE)
				time.Sleep(10 * time.Microsecond) // what is raced needs a processor too
			}
			ended <- n
		}()
		outcomes := map[string]int{}
		rounds := 50
		if testing.Short() {
			rounds = 20
		}
		for range rounds {
			c := container(mode, "cat", "/x/file", "/ws/a/file")
			c.Mounts = append(c.Mounts, readOnlyBind(dir+"/source", "/x"), bind(dir+"/rw", "/ws"), readOnlyBind(dir+"/bad", "/ws/a"))
			got := run(t, mode, job{Spec: c})
			switch {
			case strings.Contains(got.Err, "symbolic link") || strings.Contains(got.Err, "was changed while") || strings.Contains(got.Err, "one is a directory"):
				outcomes["refused"]++
			case got.Err != "":
				outcomes[got.Err]++
			case strings.Contains(got.Out, "/x/file: bad"):
				t.Fatalf("the source was followed: %+v", got)
			default:
				outcomes[strings.ReplaceAll(got.Out, "\n", " ")]++
			}
		}
		stop.Store(true)
		t.Logf("%d swaps: %v", <-ended, outcomes)
		for what := range outcomes {
			// Swapped after the start, the directory is moved away with its mount;
			// what is there then is a link, or the directory itself.
			if what != "refused" && !strings.Contains(what, "/x/file: good") {
				t.Errorf("%s: %d", what, outcomes[what])
			}
		}
		if outcomes["refused"] == 0 || outcomes["refused"] == rounds {
			t.Errorf("%v: nothing was raced", outcomes)
		}
	})
}

// What is mounted below a source: an ordinary user can't leave it out.
func TestLockedMounts(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can mount something there")
	}
	dir := testDir(t, "user")
	if err := os.Mkdir(dir+"/sub", 0o777); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("none", dir+"/sub", "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	defer unix.Unmount(dir+"/sub", unix.MNT_DETACH)
	put(t, dir+"/sub/file", "sub\n")
	for _, mode := range modes() {
		c := container(mode, "each", "cat /ws/sub/file", "write /ws/sub/file")
		c.Mounts = append(c.Mounts, spec.Mount{Type: spec.Bind, Source: dir, Target: "/ws", ReadOnly: true})
		got := run(t, mode, job{Spec: c})
		if mode == "root" && !strings.Contains(got.Out, "ENOENT") || mode == "user" && !strings.Contains(got.Err, "a file system is mounted below it") {
			t.Errorf("%s: %+v", mode, got)
		}
		c.Mounts[len(c.Mounts)-1].Recursive = true
		got = run(t, mode, job{Spec: c})
		if got.Out != "cat /ws/sub/file: /ws/sub/file: sub\nwrite /ws/sub/file: refused EROFS\n" {
			t.Errorf("%s: %+v", mode, got)
		}
	}
}
