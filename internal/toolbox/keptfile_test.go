//go:build linux

package toolbox

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/tool"
)

// In these tests the working directory is scratch (TestMain).

func TestOutputFile(t *testing.T) {
	r := open(t, everything())
	c := r.session(RoleTools)
	got := c.shell("seq 1 100000; seq 1 50000 >&2; echo end")
	if got.Stdout.File == "" || got.Stderr.File == "" || got.Stdout.File == got.Stderr.File || got.Note != "" {
		t.Fatalf("%q, %q, %q", got.Stdout.File, got.Stderr.File, got.Note)
	}
	if same := c.shell(fmt.Sprintf("(seq 1 100000; echo end) | cmp - %s && seq 1 50000 | cmp - %s", got.Stdout.File, got.Stderr.File)); same.ExitCode != 0 {
		t.Errorf("the files differ from what was printed: %+v", same)
	}
	var part tool.ReadFileResult
	if err := c.call(tool.ReadFile, tool.ReadFileArgs{Path: got.Stdout.File, FirstLine: got.Stdout.NextLine, MaxLines: 1}, &part); err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(got.Stdout.Text, "\n[…")
	if want := fmt.Sprintln(got.Stdout.NextLine); part.Content != want || !strings.HasSuffix(head, fmt.Sprint("\n", got.Stdout.NextLine-1)) {
		t.Errorf("line %d is %q, and the text before the cut ends with %q", got.Stdout.NextLine, part.Content, head[len(head)-10:])
	}
	if got := c.shell("seq 1 3000"); got.Stdout.Omitted != 0 || got.Stdout.File != "" {
		t.Errorf("what fits into the result is in a file: %+v", got.Stdout)
	}

	t.Run("more than a file takes", func(t *testing.T) {
		got := c.shell("seq 1 5000000")
		if want := got.Stdout.Bytes - tool.MaxOutputFile; got.Stdout.FileOmitted != want || got.Note != "" {
			t.Errorf("%d bytes are not in the file, want %d; the note is %q", got.Stdout.FileOmitted, want, got.Note)
		}
		ends := c.shell(fmt.Sprintf("stat -c %%s %[1]s; head -n 2 %[1]s; grep -c 'bytes left out' %[1]s; tail -n 250000 %[1]s | head -n 1; tail -n 1 %[1]s", got.Stdout.File))
		if lines := strings.Split(ends.Stdout.Text, "\n"); len(lines) != 7 || len(lines[0]) != 7 || lines[0] > "4194400" || strings.Join(lines[1:6], " ") != "1 2 1 4750001 5000000" {
			t.Errorf("%+v", ends)
		}
	})
	t.Run("binary", func(t *testing.T) {
		got := c.shell("head -c 100000 /dev/zero")
		if size := c.shell("stat -c %s " + got.Stdout.File); size.Stdout.Text != "100000\n" || !got.Stdout.Binary {
			t.Errorf("%+v", size)
		}
	})
	t.Run("one line", func(t *testing.T) {
		got := c.shell("head -c 100000 /dev/zero | tr '\\0' x")
		if size := c.shell("stat -c %s " + got.Stdout.File); size.Stdout.Text != "100000\n" || got.Stdout.NextLine != 1 || got.Stdout.NextOffset != 0 {
			t.Errorf("%+v, line %d", size, got.Stdout.NextLine)
		}
	})
	t.Run("one line that read_file cuts", func(t *testing.T) {
		got := c.shell("head -c 1000000 /dev/zero | tr '\\0' x; echo; echo end").Stdout
		if got.NextLine != 0 || got.NextOffset != tool.DefaultOutputBytes/2 || !strings.HasSuffix(got.Text, "x\nend\n") {
			t.Fatalf("line %d, offset %d, %q", got.NextLine, got.NextOffset, got.Text[len(got.Text)-10:])
		}
		var part tool.ReadFileResult
		if err := c.call(tool.ReadFile, tool.ReadFileArgs{Path: got.File, Binary: true, Offset: got.NextOffset, MaxBytes: 3}, &part); err != nil || part.Content != "eHh4" {
			t.Errorf("%+v, %v", part, err)
		}
	})
	t.Run("without an end", func(t *testing.T) {
		got := c.run(tool.ShellArgs{Argv: []string{"yes"}, TimeoutSeconds: 0.3})
		if !got.TimedOut || got.Stdout.File == "" || !strings.HasSuffix(got.Stdout.Text, "y\ny\n") {
			t.Errorf("%v, %q, %q", got.TimedOut, got.Stdout.File, got.Note)
		}
	})
	t.Run("bounded", func(t *testing.T) {
		first := got.Stdout.File
		for range tool.MaxOutputFiles {
			c.shell("seq 1 10000")
		}
		all := c.shell(fmt.Sprintf("ls %[1]s/%[2]s/* | wc -l; ls %[3]s", scratchOf(first), outputDir, first))
		if lines := strings.Split(all.Stdout.Text, "\n"); lines[0] != fmt.Sprint(tool.MaxOutputFiles) || all.ExitCode == 0 {
			t.Errorf("%+v", all)
		}
		for range 10 {
			c.shell("head -c 10M /dev/zero")
		}
		used := c.shell(fmt.Sprintf("du -s -B1 %s/%s | cut -f1", scratchOf(first), outputDir))
		var n int
		if fmt.Sscan(used.Stdout.Text, &n); n == 0 || n > 17<<20 { // a quarter of 64 MiB
			t.Errorf("%d bytes", n)
		}
	})
	t.Run("removed with the session", func(t *testing.T) {
		c.Close()
		other := r.session(RoleTools)
		testutil.Eventually(t, "it is removed", func() bool {
			return other.shell("ls "+outputDir).Stdout.Text == ""
		})
	})
}

func scratchOf(file string) string {
	before, _, _ := strings.Cut(file, "/"+outputDir+"/")
	return before
}

// A session that was killed leaves its files to the next one.
func TestOutputFileOfKilled(t *testing.T) {
	r := open(t, everything())
	first := r.session(RoleTools).shell("seq 1 10000").Stdout.File
	_ = unix.Kill(r.sessions()[0], unix.SIGKILL)
	testutil.Eventually(t, "it has ended", func() bool { return len(r.sessions()) == 0 })
	got := r.session(RoleTools).shell("seq 1 10000; ls " + first + " >&2")
	if got.Stdout.File == "" || got.ExitCode == 0 && !strings.Contains(got.Stderr.Text, first) {
		t.Errorf("%+v", got)
	}
	if left := r.session(RoleTools).shell("ls " + first); left.ExitCode == 0 {
		t.Errorf("%s is still there", first)
	}
}

// A cancelled call has no result, and so no file.
func TestOutputFileOfCancelled(t *testing.T) {
	c := open(t, everything()).session(RoleTools)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() {
		done <- c.Call(ctx, "call", Call{Tool: tool.Shell, Arguments: []byte(`{"command":"seq 1 10000; sleep 60"}`)}, nil)
	}()
	files := func() string { return c.shell("ls " + outputDir + "/*").Stdout.Text }
	testutil.Eventually(t, "there is a file", func() bool { return files() == "1.stdout\n" })
	cancel()
	<-done
	testutil.Eventually(t, "it is removed", func() bool { return files() == "" })
}

// Whatever becomes of the file, the result is there, and says why there is none.
func TestNoOutputFile(t *testing.T) {
	limited := everything()
	for i, o := range limited.Tools {
		switch o.Name {
		case tool.ReadFile:
			limited.Tools[i].Name = tool.WriteFile
		case tool.Shell:
			limited.Tools[i].Limit = "seq:*"
		}
	}
	for _, test := range []struct {
		name   string
		with   setting
		before string
		note   string
	}{
		{"scratch is full", setting{TmpSize: "2m"}, "head -c 3M /dev/zero > big", "no space left on device"},
		{"scratch is small", setting{TmpSize: "512k"}, "true", "is too small for it"},
		{"a link in its place", setting{}, "mkdir elsewhere; ln -s elsewhere " + outputDir, "the rest of stdout was not kept: "},
		{"a file in its place", setting{}, "echo > " + outputDir, "not a directory"},
		{"a place that can't be written", setting{}, "mkdir -m 0500 " + outputDir, "permission denied"},
		{"no tool to read it", setting{Grant: text(t, limited)}, "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.with.Grant == "" {
				test.with.Grant = text(t, everything())
			}
			c := openWith(t, test.with).session(RoleTools)
			if test.before != "" {
				c.shell(test.before)
			}
			got := c.run(tool.ShellArgs{Argv: []string{"seq", "1", "10000"}})
			if got.Stdout.File != "" || got.Stdout.Bytes != 48894 || !strings.HasSuffix(got.Stdout.Text, "\n10000\n") || got.ExitCode != 0 {
				t.Errorf("%+v", got)
			}
			if !strings.Contains(got.Note, test.note) || (got.Note == "") != (test.note == "") {
				t.Errorf("the note is %q, want %q in it", got.Note, test.note)
			}
			if test.name == "a link in its place" {
				if ls := c.shell("ls elsewhere"); ls.Stdout.Text != "" {
					t.Errorf("the link was followed: %+v", ls)
				}
			}
		})
	}
}
