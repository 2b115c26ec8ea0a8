package facts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/dev/testutil"
)

// deep makes directories inside each other, of which the innermost has no path
// that the system takes.
func deep(t *testing.T, dir string, n int, name string) {
	t.Helper()
	at, err := os.Open(dir)
	for i := 0; i < n && err == nil; i++ {
		if err = syscall.Mkdirat(int(at.Fd()), name, 0o755); err != nil {
			break
		}
		var next *os.File
		next, err = openDirAt(at, name)
		at.Close()
		at = next
	}
	if err != nil {
		t.Fatal(err)
	}
	at.Close()
}

// B60: whatever a worker leaves below its mount, `up` goes on, and says where it
// didn't look; ps and down say so too.
func TestWhatIsBeyondTheBounds(t *testing.T) {
	tests := []struct {
		name  string
		make  func(t *testing.T, dir string)
		place string // begins so
		why   string
	}{
		{"names without end", func(t *testing.T, dir string) { deep(t, dir, 300, strings.Repeat("n", 200)) }, "nnn", "deep"},
		{"depth", func(t *testing.T, dir string) { deep(t, dir, maxDepth+10, "d") }, "d/d/d", "deep"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir, o := project(t, "    mounts: [{source: ./out, target: /out, mode: rw}]\n")
			out := filepath.Join(dir, "out")
			write(t, out, ".git/config", "")
			if err := chownAll(out); err != nil {
				t.Fatal(err)
			}
			tt.make(t, out)
			c, list := judge(t, o)
			if !slices.Equal(codes(list), []string{CodeNotChecked}) || list.HasErrors() {
				t.Fatalf("up: %v", list)
			}
			if text := list[0].Summary; !strings.Contains(text, out+"/"+tt.place) || !strings.Contains(text, tt.why) || len(text) > 1000 {
				t.Errorf("up says: %s", text)
			}
			if !slices.Equal(c.Facts.Protected["./out"], []compose.Protected{{Path: ".git", Kind: compose.GitDir}}) {
				t.Errorf("held: %v", c.Facts.Protected)
			}
			s, err := TakeSnapshot(context.Background(), c, dir)
			if err != nil {
				t.Fatal(err)
			}
			missed := s.Compare(s)
			if len(missed) != 1 || missed[0].Kind != NotChecked || !strings.HasPrefix(missed[0].Path, out+"/"+tt.place) || !strings.Contains(missed[0].Why, tt.why) {
				t.Errorf("not checked: %v", missed)
			}
		})
	}
}

// B60: a search ends at its bounds, names the place, and doesn't say of what it
// didn't reach that it is gone.
func TestBoundsOfASnapshot(t *testing.T) {
	dir := t.TempDir()
	for i := range 30 {
		write(t, dir, fmt.Sprintf("a/%02d/x", i), "")
	}
	write(t, dir, ".envrc", "")
	write(t, dir, "z/.envrc", "")
	take := func(most int) Snapshot {
		t.Helper()
		w := watcher{ctx: context.Background(), roots: []string{dir}, home: t.TempDir(), lookup: none, most: most, keeps: maxWatched}
		s, err := w.take()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	all := take(1000)
	if n := all.NotChecked(); len(n) > 0 {
		t.Errorf("without a bound: %v", n)
	}
	some := take(20)
	got := all.Compare(some)
	if len(got) != 1 || got[0].Path != dir || got[0].Kind != NotChecked || !strings.Contains(got[0].Why, "ended in a") {
		t.Errorf("%v", got)
	}
	if some[filepath.Join(dir, ".envrc")] == "" {
		t.Error("what lies outermost wasn't looked at first")
	}
	write(t, dir, ".envrc", "changed")
	if got := all.Compare(take(20)); len(got) != 2 || got[1].Kind != Changed {
		t.Errorf("a change: %v", got)
	}
}

// B60: so does what is kept of it, and what configuration of git makes it read.
func TestBoundsOfNames(t *testing.T) {
	for _, tt := range []struct {
		name string
		make func(dir string)
		path string
		why  string
	}{
		{"watched files", func(dir string) {
			for i := range 30 {
				write(t, dir, fmt.Sprintf("%d/.envrc", i), "")
			}
		}, ".", "more than 20 watched files"},
		{"a large file of configuration", func(dir string) {
			write(t, dir, ".git/config", strings.Repeat("# nothing\n", maxConfig/10+1)+"[core]\nhooksPath = x\n")
		}, ".git/config", "larger than 1 MiB"},
		{"files that include others", func(dir string) {
			write(t, dir, ".git/config", "[include]\npath = ../0\n")
			for i := range maxIncludes + 2 {
				write(t, dir, fmt.Sprint(i), fmt.Sprintf("[include]\npath = %d\n", i+1))
			}
		}, fmt.Sprint(maxIncludes), "includes deep"},
		{"a file that includes itself", func(dir string) { write(t, dir, ".git/config", "[include]\npath = config\n") }, "", ""},
		{"names in configuration", func(dir string) {
			write(t, dir, ".git/config", "[a]\nb ="+strings.Repeat(" c", maxLookups/2+1)+"\n")
		}, ".git/config", "names in configuration"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			tt.make(dir)
			w := watcher{ctx: context.Background(), roots: []string{dir}, home: t.TempDir(), lookup: none, most: maxEntries, keeps: 20}
			s, err := w.take()
			if err != nil {
				t.Fatal(err)
			}
			got := s.NotChecked()
			if tt.path == "" {
				if len(got) > 0 {
					t.Errorf("not checked: %v", got)
				}
			} else if len(got) != 1 || got[0].Path != filepath.Join(dir, tt.path) || !strings.Contains(got[0].Why, tt.why) {
				t.Errorf("not checked: %v", got)
			}
		})
	}
}

// TestBoundsOfLinks: links are followed as far as the kernel follows them, for a
// time, and until the command is interrupted (B60). A worker's links that lead over
// hundreds of others cost a tenth of a second each, and a configuration of 800 KB
// named one 100,000 times: `ps` and `down` went on for hours.
func TestBoundsOfLinks(t *testing.T) {
	dir := t.TempDir()
	chain := func(n int, to string) string {
		for i := range n {
			name := fmt.Sprintf("%d-%d", n, i)
			if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
			to = name
		}
		return to
	}
	write(t, dir, "near", "")
	write(t, dir, "far", "")
	for link, to := range map[string]string{".envrc": chain(30, "near"), ".npmrc": chain(100, "far")} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	take := func(ctx context.Context, until time.Time) (Snapshot, error) {
		w := watcher{ctx: ctx, roots: []string{dir}, home: t.TempDir(), lookup: none, most: maxEntries, keeps: maxWatched, until: until}
		return w.take()
	}
	s, err := take(t.Context(), time.Time{})
	if err != nil || len(s.NotChecked()) > 0 || s[filepath.Join(dir, "near")] == "" || s[filepath.Join(dir, "far")] != "" {
		t.Errorf("followed: %v, %v; want near, and not far", s, err)
	}
	s, err = take(t.Context(), time.Now())
	if got := s.NotChecked(); err != nil || len(got) != 1 || got[0].Path != dir || !strings.Contains(got[0].Why, "took more than") || s[filepath.Join(dir, "near")] != "" {
		t.Errorf("without time: %v, %v", s, err)
	}

	write(t, dir, ".git/config", "[a]\nb ="+strings.Repeat(" ../.envrc", 1000)+"\n")
	ctx := &countedContext{Context: t.Context(), last: 200}
	if _, err := take(ctx, time.Time{}); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted while names are looked up: %v", err)
	}
}

// countedContext is cancelled once it was asked some times.
type countedContext struct {
	context.Context
	last int
}

func (c *countedContext) Err() error {
	if c.last--; c.last < 0 {
		return context.Canceled
	}
	return nil
}

// A directory that a worker closes is one that it may open again: it is named
// where it wasn't closed at `up`.
func TestClosedDirectoryIsNamed(t *testing.T) {
	for _, mode := range []os.FileMode{0, 0o111} { // with the second, files in it can be looked at
		t.Run(fmt.Sprintf("%#o", mode), func(t *testing.T) { closeDirectory(t, mode) })
	}
}

func closeDirectory(t *testing.T, mode os.FileMode) {
	testutil.Require(t, os.Geteuid() == 0, "only root can become another user")
	dir := t.TempDir()
	for up := dir; up != "/tmp" && up != "/"; up = filepath.Dir(up) {
		if err := os.Chmod(up, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, dir, "a/.envrc", "")
	write(t, dir, "own/x", "")
	if err := os.Chmod(filepath.Join(dir, "own"), 0); err != nil { // of somebody else, such as a database's
		t.Fatal(err)
	}
	done := make(chan []string)
	go func() {
		defer close(done)
		runtime.LockOSThread() // and the thread ends with it
		if unix.Setfsuid(4321) != nil {
			return
		}
		take := func() Snapshot {
			w := watcher{ctx: context.Background(), roots: []string{dir}, home: "/nonexistent", lookup: none, most: maxEntries, keeps: maxWatched}
			s, err := w.take()
			if err != nil {
				t.Error(err)
			}
			return s
		}
		before := take()
		if err := os.Chmod(filepath.Join(dir, "a"), 0); err == nil {
			t.Error("the thread has root's rights")
		}
		done <- nil
		<-done
		var got []string
		for _, c := range before.Compare(take()) {
			rel, _ := filepath.Rel(dir, c.Path)
			got = append(got, string(c.Kind)+" "+rel)
		}
		done <- got
	}()
	<-done
	if err := os.Chmod(filepath.Join(dir, "a"), mode); err != nil {
		t.Fatal(err)
	}
	done <- nil
	if got := <-done; !slices.Contains(got, "new a") || len(got) != 2 {
		t.Errorf("named: %q", got)
	}
}

// What is too large to be read is known by its times.
func TestDigestOfLargeFiles(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, ".envrc")
	write(t, dir, ".envrc", "")
	if err := os.Truncate(name, 30<<30); err != nil { // takes no room
		t.Fatal(err)
	}
	before := Snapshot{}
	if err := before.file(name); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("echo"), 20<<30); err != nil {
		t.Fatal(err)
	}
	f.Close()
	after := Snapshot{}
	if err := after.file(name); err != nil || len(before.Compare(after)) != 1 {
		t.Errorf("a change of the end isn't seen: %v, %v", before.Compare(after), err)
	}
}
