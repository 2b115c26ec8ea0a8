//go:build linux

package toolbox

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/toolbox/dialin"
	"github.com/llmdo/workshop/internal/toolbox/wire"
	"github.com/llmdo/workshop/tool"
)

// A session enters the working directory anew. Where that leads through a magic
// link by then, there are no tools, and a person gets in by an absolute path.
func TestWorkdirIsEnteredAnew(t *testing.T) {
	base := filepath.Join(filepath.Dir(initProgram(t)), "scratch")
	r := openWith(t, setting{Grant: text(t, everything()), Workdir: base + "/a/b"})
	for how, c := range map[string]*client{"door": r.session(RoleTools), "exec": first(r.sessionByExec(RoleTools))} {
		if got := c.shell("pwd").Stdout.Text; got != base+"/a/b\n" {
			t.Errorf("by %s it is %q", how, got)
		}
	}
	if exit, out, errs, err := r.session(RoleExec).exec(Exec{Argv: []string{"sh", "-c", "mkdir -p /tmp/b; mv " + base + "/a " + base + "/old && ln -s /proc/self/root/usr " + base + "/a && mkdir " + base + "/c"}}, ""); err != nil || exit.Code != 0 {
		t.Fatal(exit, out, errs, err)
	}
	conn, err := dialin.Accept(t.Context(), r.door, r.pid())
	if err != nil {
		t.Fatal(err)
	}
	tools := wire.NewClient(conn)
	defer tools.Close()
	err = tools.Call(within(t, 10*time.Second), "hello", Hello{Version: wire.Version, Client: "test", Role: RoleTools}, nil)
	wants(t, err, wire.CodeToolFailed, "workdir "+base+"/a/b: ", "magic link")

	c := r.session(RoleExec)
	for _, e := range []Exec{{Argv: []string{"pwd"}}, {Argv: []string{"pwd"}, Cwd: "c"}} {
		_, _, _, err := c.exec(e, "")
		wants(t, err, wire.CodeToolFailed, "workdir "+base+"/a/b: ")
	}
	_, _, _, err = c.exec(Exec{Argv: []string{"pwd"}, Cwd: base + "/a/bin"}, "")
	wants(t, err, wire.CodeInvalidParams, "cwd "+base+"/a/bin: ", "magic link")
	if _, out, _, err := c.exec(Exec{Argv: []string{"pwd"}, Cwd: base + "/c"}, ""); err != nil || out != base+"/c\n" {
		t.Errorf("%q, %v", out, err)
	}
}

func first[A, B any](a A, _ B) A { return a }

// No argument of a call leads a program through a magic link.
func TestCwdIsNoMagicLink(t *testing.T) {
	c := open(t, everything()).session(RoleTools)
	if r := c.shell("ln -s /proc/self/fd fds; ln -s /proc/self/cwd here; mkdir real; ln -s real link"); r.ExitCode != 0 {
		t.Fatalf("%+v", r)
	}
	for _, dir := range []string{"here", "here/real", "/proc/self/cwd", "/proc/self/fd/0", "fds", "/proc", "/proc/1/root"} {
		err := c.call(tool.Shell, tool.ShellArgs{Argv: []string{"pwd"}, Cwd: dir}, nil)
		wants(t, err, wire.CodeInvalidParams, "cwd "+dir+": ")
	}
	if r := c.run(tool.ShellArgs{Command: "basename $(pwd -P)", Cwd: "link"}); r.Stdout.Text != "real\n" {
		t.Errorf("%+v", r)
	}
}

// What an engine starts goes to the working directory by itself.
func TestEnter(t *testing.T) {
	base := filepath.Join(filepath.Dir(initProgram(t)), "scratch")
	r := openWith(t, setting{Workdir: base + "/a"})
	if err := os.Symlink("/proc/self/root", "/proc/"+strconv.Itoa(r.pid())+"/root"+base+"/a/magic"); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name      string
		args      []string
		code      int
		out, errs string
	}{
		{"the worker's", []string{".", "--", "pwd"}, 0, base + "/a\n", ""},
		{"relative to it", []string{"..", "--", "pwd"}, 0, base + "\n", ""},
		{"absolute", []string{"/usr", "--", "pwd"}, 0, "/usr\n", ""},
		{"exit code", []string{".", "--", "sh", "-c", "exit 3"}, 3, "", ""},
		{"through a magic link", []string{"magic/usr", "--", "pwd"}, 125, "", "workdir magic/usr: it is or leads through a magic link"},
		{"missing", []string{"/nowhere", "--", "pwd"}, 125, "", "workdir /nowhere: there is no such directory"},
		{"no program", []string{".", "--", "no-such-program"}, 127, "", "no such program"},
		{"no program of the path", []string{".", "--", "./no-such-program"}, 127, "", "no such program"},
		{"not executable", []string{".", "--", "/etc/passwd"}, 126, "", "permission denied"},
		{"no command", []string{".", "--"}, 2, "", "usage: "},
	} {
		t.Run(test.name, func(t *testing.T) {
			cmd := r.enter(append([]string{initProgram(t), "enter"}, test.args...)...)
			var errs bytes.Buffer
			cmd.Stderr = &errs
			out, _ := cmd.Output()
			if got := cmd.ProcessState.ExitCode(); got != test.code || string(out) != test.out || !bytes.Contains(errs.Bytes(), []byte(test.errs)) {
				t.Errorf("got %d, %q, %q", got, out, errs.String())
			}
		})
	}
}
