//go:build linux

package toolbox

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/dev/testutil"
	host "github.com/llmdo/workshop/internal/toolbox/client"
	"github.com/llmdo/workshop/internal/toolbox/dialin"
	"github.com/llmdo/workshop/internal/toolbox/wire"
	"github.com/llmdo/workshop/tool"
)

// knock connects to the worker; the client's functions take it from there.
func (r *room) knock() io.ReadWriteCloser {
	r.t.Helper()
	conn, err := dialin.Accept(context.Background(), r.door, r.pid())
	if err != nil {
		r.t.Fatal(err)
	}
	return conn
}

func tarOf(t testing.TB, files ...string) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for i := 0; i < len(files); i += 2 {
		if err := w.WriteHeader(&tar.Header{Name: files[i], Mode: 0o640, Size: int64(len(files[i+1])), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		io.WriteString(w, files[i+1])
	}
	w.Close()
	return &b
}

// TestCopy: files go in and out as the worker's user, through memory too.
func TestCopy(t *testing.T) {
	r := open(t, &tool.Grant{})
	ctx := within(t, 20*time.Second)
	big := strings.Repeat("0123456789abcdef", 1<<18) // 4 MiB
	if err := host.CopyTo(ctx, r.knock(), ".", io.MultiReader(tarOf(t, "d/a", "A", "d/big", big), strings.NewReader("behind the end"))); err != nil {
		t.Fatal(err)
	}
	c := r.session(RoleExec)
	if _, out, _, err := c.exec(Exec{Argv: []string{"sh", "-c", "cat d/a; wc -c <d/big; stat -c '%u %a' d/a d; ln -s d l"}}, ""); err != nil || out != "A4194304\n64201 640\n64201 755\n" {
		t.Errorf("%v %q", err, out)
	}
	from := func(path string) (names []string, size int64) {
		t.Helper()
		s, err := host.CopyFrom(ctx, r.knock(), path)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		defer s.Close()
		for tr := tar.NewReader(s); ; {
			h, err := tr.Next()
			if err == io.EOF {
				return names, size
			}
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			names = append(names, h.Name)
			size += h.Size
		}
	}
	for path, want := range map[string]string{"d/a": "a", "l": "l", "l/a": "a"} {
		if names, _ := from(path); strings.Join(names, " ") != want {
			t.Errorf("%s: %q", path, names)
		}
	}
	if names, size := from("d"); len(names) != 3 || names[0] != "d/" || size != 1+4<<20 {
		t.Errorf("%q, %d bytes", names, size)
	}
	// What is behind the archive's end is the stream's too; a reader may stop.
	s, err := host.CopyFrom(ctx, r.knock(), "d")
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	testutil.Eventually(t, "its session ends", func() bool { return len(r.sessions()) == 1 })
}

func TestCopyProblems(t *testing.T) {
	r := open(t, &tool.Grant{})
	ctx := within(t, 20*time.Second)
	for path, want := range map[string]string{
		"/nowhere/x":     "no such file",
		"/root":          "permission denied",
		"/proc/1/fd/0":   "closed",
		"/proc/self/mem": "closed",
	} {
		_, err := host.CopyFrom(ctx, r.knock(), path)
		if err == nil || !strings.Contains(err.Error(), want) || errors.Is(err, fs.ErrNotExist) != (path == "/nowhere/x") {
			t.Errorf("from %s: %v", path, err)
		}
	}
	for dir, want := range map[string]string{
		"/nowhere":    "no such file",
		"/etc/passwd": "not a directory",
		"/etc":        "permission denied",
		dialin.Dir:    "read-only",
		"/proc/self":  "closed",
	} {
		err := host.CopyTo(ctx, r.knock(), dir, tarOf(t, "mem", "x"))
		if err == nil || !strings.Contains(err.Error(), want) || errors.Is(err, fs.ErrNotExist) != (dir == "/nowhere") {
			t.Errorf("to %s: %v", dir, err)
		}
	}
	// A reader that fails is no end: what it gave isn't taken for whole.
	broken := errors.New("the disk is gone")
	if err := host.CopyTo(ctx, r.knock(), ".", io.MultiReader(tarOf(t, "x", "y"), failingReader{broken})); !errors.Is(err, broken) {
		t.Errorf("a broken reader: %v", err)
	}
	// One that blocks holds up neither an error nor the end of the context.
	blocked, _ := io.Pipe()
	if err := host.CopyTo(ctx, r.knock(), "/nowhere", blocked); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a blocked reader: %v", err)
	}
	short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	if err := host.CopyTo(short, r.knock(), ".", blocked); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the end of the context: %v", err)
	}
	testutil.Eventually(t, "all sessions end", func() bool { return len(r.sessions()) == 0 })
	// Tools have no archives.
	err := r.session(RoleTools).Call(ctx, "archive.out", ArchiveOut{Path: "/etc"}, nil)
	wants(t, err, wire.CodeInvalidRequest, "has no archive.out")
}

type failingReader struct{ err error }

func (f failingReader) Read([]byte) (int, error) { return 0, f.err }

// TestCopyMisses: what was left out is an error at the end.
func TestCopyMisses(t *testing.T) {
	r := open(t, &tool.Grant{})
	ctx := within(t, 20*time.Second)
	c := r.session(RoleExec)
	c.exec(Exec{Argv: []string{"sh", "-c", "mkdir m && echo a >m/a && echo b >m/b && chmod 0 m/b"}}, "")
	s, err := host.CopyFrom(ctx, r.knock(), "m")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	b, err := io.ReadAll(s)
	if err == nil || !strings.Contains(err.Error(), "m/b") || !bytes.Contains(b, []byte("m/a")) {
		t.Errorf("%v, %d bytes", err, len(b))
	}
	// The end of the context is the stream's.
	ctx, cancel := context.WithCancel(ctx)
	s, err = host.CopyFrom(ctx, r.knock(), "/usr")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	cancel()
	if _, err := io.Copy(io.Discard, s); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the context: %v", err)
	}
}
