//go:build unix

package boundedfile_test

import (
	"bytes"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/lib/boundedfile"
)

// TestRead: B60: what another put in the place of a file neither hangs a command
// nor fills its memory.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.WriteFile(at("small"), []byte("12345678"), 0o600))
	must(os.WriteFile(at("over"), []byte("123456789"), 0o600))
	must(os.WriteFile(at("sparse"), nil, 0o600))
	must(os.Truncate(at("sparse"), 30<<30))
	must(syscall.Mkfifo(at("pipe"), 0o600))
	must(os.Mkdir(at("dir"), 0o700))
	must(os.Symlink("pipe", at("link")))
	must(os.Symlink("nowhere", at("dangling")))
	l, err := net.Listen("unix", at("socket"))
	must(err)
	defer l.Close()
	if err := syscall.Mknod(at("device"), syscall.S_IFCHR|0o600, 1<<8|5); err != nil { // zero, which has no end
		must(os.Symlink("/dev/zero", at("device")))
	}
	root, err := os.OpenRoot(dir)
	must(err)
	defer root.Close()

	hung := false
	for _, c := range []struct{ name, want string }{
		{name: "small"},
		{name: "over", want: "larger than 8 bytes"},
		{name: "sparse", want: "larger than 8 bytes"},
		{name: "pipe", want: "is a named pipe, want a regular file"},
		{name: "link", want: "is a named pipe, want a regular file"},
		{name: "dir", want: "is a directory, want a regular file"},
		{name: "socket", want: "is a socket, want a regular file"},
		{name: "device", want: "is a device, want a regular file"},
		{name: "dangling", want: "no such file"},
	} {
		for way, read := range map[string]func() ([]byte, error){
			"Copy": func() ([]byte, error) {
				var b bytes.Buffer
				err := boundedfile.Copy(&b, at(c.name), 8)
				return b.Bytes(), err
			},
			"path": func() ([]byte, error) { return boundedfile.Read(at(c.name), 8) },
			"root": func() ([]byte, error) { return boundedfile.ReadIn(root, c.name, 8) },
			"fs":   func() ([]byte, error) { return boundedfile.ReadFS(os.DirFS(dir), c.name, 8) },
			"swapped": func() ([]byte, error) { // the look before it is opened sees another file
				return boundedfile.ReadFS(opensOnly{dir}, c.name, 8)
			},
		} {
			t.Run(c.name+" by "+way, func(t *testing.T) {
				if hung {
					t.Skip("another one hangs")
				}
				if c.name == "socket" && way == "swapped" {
					t.Skip("a socket can't be opened")
				}
				hung = true
				data, err := within(t, read)
				hung = false
				if c.want == "" {
					if string(data) != "12345678" || err != nil {
						t.Errorf("got %q, %v", data, err)
					}
					return
				}
				if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.name) {
					t.Errorf("got %v, want %s", err, c.want)
				}
			})
		}
	}
	if _, err := boundedfile.Read(at("dangling"), 8); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want fs.ErrNotExist", err)
	}
	// Regular by its type, of size 0, and longer.
	if _, err := os.Stat("/proc/self/mounts"); err == nil {
		if _, err := boundedfile.Read("/proc/self/mounts", 8); !errors.As(err, new(boundedfile.SizeError)) {
			t.Errorf("got %v, want a SizeError", err)
		}
	}
}

// opensOnly says of each name that it is a small file, and opens what is there.
type opensOnly struct{ dir string }

func (o opensOnly) Open(name string) (fs.File, error) {
	return boundedfile.Open(filepath.Join(o.dir, name))
}

func (o opensOnly) Stat(name string) (fs.FileInfo, error) {
	if name == "dangling" {
		return os.Stat(filepath.Join(o.dir, name))
	}
	return os.Stat(filepath.Join(o.dir, "small"))
}

// within fails a test that hangs.
func within(t *testing.T, read func() ([]byte, error)) (data []byte, err error) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); data, err = read() }()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("it hangs")
	}
	return data, err
}

func TestSizeError(t *testing.T) {
	for limit, want := range map[boundedfile.SizeError]string{
		1 << 20: "larger than 1 MiB", 512 << 10: "larger than 512 KiB", 1000: "larger than 1000 bytes", 0: "larger than 0 bytes",
	} {
		if got := limit.Error(); got != want {
			t.Errorf("%d: got %q, want %q", int64(limit), got, want)
		}
	}
}
