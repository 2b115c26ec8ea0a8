//go:build linux

package toolbox

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/toolbox/protocol"
	"github.com/llmdo/workshop/internal/toolbox/wire"
	"github.com/llmdo/workshop/tool"
)

// screen is a program on a terminal, as a person sees it.
type screen struct {
	t testing.TB
	o *wire.Outgoing

	mu   sync.Mutex
	text bytes.Buffer
	read chan struct{} // closed at the end of the output
}

// terminal starts a program on a terminal of 24 lines and 80 columns.
func (c *client) terminal(env []string, argv ...string) *screen {
	c.t.Helper()
	o, err := c.Start(within(c.t, 20*time.Second), "exec", Exec{Argv: argv, Env: env, Stdin: true, TTY: &protocol.TTY{Rows: 24, Cols: 80}})
	if err != nil {
		c.t.Fatal(err)
	}
	s := &screen{t: c.t, o: o, read: make(chan struct{})}
	out := o.Stream(wire.Stdout)
	go func() {
		defer close(s.read)
		io.Copy(s, out)
	}()
	return s
}

func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// shows waits for a text.
func (s *screen) shows(text string) {
	s.t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if strings.Contains(s.String(), text) {
			return
		}
	}
	s.t.Fatalf("%q is not on the screen: %q", text, s.String())
}

func (s *screen) typed(keys string) {
	s.t.Helper()
	// A key may end the program before the stream knows that it was taken.
	if _, err := io.WriteString(s.o.Stream(wire.Stdin), keys); err != nil && !errors.Is(err, wire.ErrCallEnded) {
		s.t.Fatal(err)
	}
}

// ends waits for the end of the program.
func (s *screen) ends(code int) string {
	s.t.Helper()
	var exit Exit
	err := s.o.Wait(&exit)
	<-s.read
	if err != nil || exit.Code != code {
		s.t.Errorf("%v %+v, want code %d: %.300q", err, exit, code, s.String())
	}
	return s.String()
}

func TestTerminal(t *testing.T) {
	c := open(t, &tool.Grant{}).session(RoleExec)
	for _, test := range []struct {
		name, line string
		keys       string // typed at once
		code       int
		shows      string
	}{
		{name: "it is one", line: "tty; test -t 0 -a -t 1 -a -t 2 && echo all; stty size; echo $TERM", shows: "/dev/pts/0\r\nall\r\n24 80\r\nxterm\r\n"},
		{name: "both outputs, the exit code", line: "echo o; echo e >&2; exit 7", code: 7, shows: "o\r\ne\r\n"},
		{name: "a signal ends it", line: "kill -9 $$", code: 137},
		{name: "the controlling terminal", line: "echo x >/dev/tty; set -- $(cat /proc/self/stat); test $6 = $$ && test $8 = $$ && echo leads", shows: "x\r\nleads\r\n"},
		{name: "end of file by a key", line: "stty -echo; echo ready; cat; echo end", keys: "a\n\x04", shows: "ready\r\na\r\nend\r\n"},
		{name: "a signal by a key", line: "trap 'echo got; exit 3' INT; echo ready; while :; do sleep 0.02; done", keys: "\x03", code: 3, shows: "^Cgot\r\n"},
		{name: "quit by a key", line: "trap 'exit 4' QUIT; echo ready; while :; do sleep 0.02; done", keys: "\x1c", code: 4},
		{name: "a character is erased, not a byte", line: "echo ready; read x; echo =$x=", keys: "aß\x7fb\n", shows: "=ab="},
		{name: "closes its streams and goes on", line: "exec >&- 2>&- <&-; sleep 0.2; echo late >/dev/tty; exit 4", code: 4, shows: "late\r\n"},
		{name: "no mark of a tool", line: "env | grep WORKSHOP_CALL", code: 1},
	} {
		s := c.terminal(nil, "sh", "-c", test.line)
		if test.keys != "" {
			s.shows("ready")
			s.typed(test.keys)
		}
		if text := s.ends(test.code); !strings.Contains(text, test.shows) {
			t.Errorf("%s: %q", test.name, text)
		}
	}
	if text := c.terminal([]string{"TERM=vt220"}, "sh", "-c", "echo $TERM").ends(0); text != "vt220\r\n" {
		t.Errorf("TERM: %q", text)
	}
	wants(t, c.terminal(nil, "no-such-program").o.Wait(nil), wire.CodeNotFound, "no such program")
	_, err := c.Start(within(t, time.Second), "exec", map[string]any{"argv": []string{"true"}, "tty": "yes"})
	if err != nil {
		t.Fatal(err)
	}
	o, _ := c.Start(within(t, 5*time.Second), "exec", map[string]any{"argv": []string{"true"}, "tty": map[string]int{"rows": 70000}})
	wants(t, o.Wait(nil), wire.CodeInvalidParams, "tty must be an object of numbers")
}

// TestTerminalInputEnds: a reader of lines learns of it, as by Ctrl-D.
func TestTerminalInputEnds(t *testing.T) {
	c := open(t, &tool.Grant{}).session(RoleExec)
	for _, text := range []string{"", "line\n", "no end of line"} {
		s := c.terminal(nil, "sh", "-c", "stty -echo; echo ready; cat; echo end")
		s.shows("ready")
		s.typed(text)
		s.o.Stream(wire.Stdin).Close()
		if got := strings.ReplaceAll(s.ends(0), "\r\n", "\n"); got != "ready\n"+text+"end\n" {
			t.Errorf("%q: %q", text, got)
		}
	}
}

func TestTerminalSize(t *testing.T) {
	c := open(t, &tool.Grant{}).session(RoleExec)
	s := c.terminal(nil, "sh", "-c", "trap 'stty size; exit 5' WINCH; echo ready; while :; do sleep 0.02; done")
	s.shows("ready")
	s.o.Notify("$/resize", map[string]any{"rows": 41, "cols": 101})
	if text := s.ends(5); text != "ready\r\n41 101\r\n" {
		t.Errorf("%q", text)
	}
	s = c.terminal(nil, "sh", "-c", "trap 'exit 6' TERM; echo ready; while :; do sleep 0.02; done")
	s.shows("ready")
	s.o.Notify("$/resize", map[string]any{"rows": -1})
	s.o.Notify("$/signal", map[string]any{"signal": "SIGTERM"})
	s.ends(6)
}

// TestTerminalByName: a terminal of a kernel that opens the program's side by its name alone,
// and tells nobody of a new size, as gVisor.
func TestTerminalByName(t *testing.T) {
	c := openWith(t, setting{Grant: text(t, &tool.Grant{}), ByName: true}).session(RoleExec)
	x := c.terminal(nil, "sh", "-c", "stty size; tty; read line; echo got $line; exit 7")
	x.shows("/dev/pts/0\r\n")
	x.typed("typed\r")
	if text := x.ends(7); text != "24 80\r\n/dev/pts/0\r\ntyped\r\ngot typed\r\n" {
		t.Errorf("%q", text)
	}
	// This kernel tells the foreground of a new size; not a job in the background.
	x = c.terminal(nil, "sh", "-mc", "(trap 'echo told' WINCH; echo ready; while :; do sleep 0.02; done) & wait")
	x.shows("ready")
	x.o.Notify("$/resize", map[string]any{"rows": 41, "cols": 101})
	x.shows("told")
}

// TestTerminalJobs: a shell has jobs there, which stop and go on.
func TestTerminalJobs(t *testing.T) {
	c := open(t, &tool.Grant{}).session(RoleExec)
	s := c.terminal([]string{"PS1=$ ", "ENV="}, "sh", "-i")
	s.shows("$ ")
	s.typed("sh -c 'echo runs; exec sleep 100'\n")
	s.shows("\nruns")
	s.typed("\x1a")
	s.shows("Stopped")
	s.typed("bg; echo in$((1+1))back; fg\n")
	s.shows("in2back")
	s.typed("\x03")
	s.typed("echo code=$?; exit 9\n")
	if text := s.ends(9); !strings.Contains(text, "code=130") {
		t.Errorf("%q", text)
	}
}

// TestTerminalCarriesAll: nothing is lost, in neither direction, and each waits
// for the other.
func TestTerminalCarriesAll(t *testing.T) {
	r := open(t, &tool.Grant{})
	c := r.session(RoleExec)
	s := c.terminal(nil, "sh", "-c", "stty raw; seq 1 100000")
	var want strings.Builder
	for i := range 100000 {
		fmt.Fprintln(&want, i+1)
	}
	if text := s.ends(0); text != want.String() {
		t.Errorf("%d bytes, want %d", len(text), want.Len())
	}
	const size = 1 << 20
	s = c.terminal(nil, "sh", "-c", "stty raw -echo; echo ready; sleep 0.3; head -c 1048576 | md5sum")
	s.shows("ready")
	go s.typed(strings.Repeat("0123456789abcde\n", size/16))
	plain := c.terminal(nil, "sh", "-c", "yes 0123456789abcde | head -c 1048576 | md5sum").ends(0)
	if text := s.ends(0); !strings.Contains(text, strings.Fields(plain)[0]) {
		t.Errorf("the paste: %q, want %q", text, plain)
	}
	// Nobody reads for a while.
	o, err := c.Start(within(t, 20*time.Second), "exec", Exec{Argv: []string{"sh", "-c", "stty raw; head -c 2097152 /dev/zero"}, TTY: &protocol.TTY{}})
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(300 * time.Millisecond)
	if kb := resident(t, r.sessions()[0]); kb > 60<<10 {
		t.Errorf("the session takes %d kB", kb)
	}
	if n, err := io.Copy(io.Discard, o.Stream(wire.Stdout)); err != nil || n != 2<<20 || o.Wait(nil) != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// TestTerminalShowsTheEnd: what a program printed last is read after it has ended, by a
// client that reads late, too: as much as the kernel keeps.
func TestTerminalShowsTheEnd(t *testing.T) {
	c := open(t, &tool.Grant{}).session(RoleExec)
	late := map[int]*wire.Outgoing{}
	for kept := 16 << 10; kept <= 26<<10; kept += 1 << 10 {
		size := wire.Window + kept
		o, err := c.Start(within(t, 20*time.Second), "exec", Exec{Argv: []string{"sh", "-c", "stty raw; head -c " + strconv.Itoa(size) + " /dev/zero"}, TTY: &protocol.TTY{}})
		if err != nil {
			t.Fatal(err)
		}
		late[size] = o
	}
	time.Sleep(500 * time.Millisecond)
	for size, o := range late {
		if n, err := io.Copy(io.Discard, o.Stream(wire.Stdout)); err != nil || n != int64(size) || o.Wait(nil) != nil {
			t.Errorf("%d bytes of %d, %v", n, size, err)
		}
	}
}

// TestTerminalIsHungUp: what a command leaves loses the terminal, and keeps
// nobody waiting.
func TestTerminalIsHungUp(t *testing.T) {
	r := open(t, &tool.Grant{})
	for name, test := range map[string]struct {
		line  string
		stays bool
	}{
		"quiet":  {"sh -c 'sleep 100; : %s' & echo started", false},
		"loud":   {"trap '' HUP; sh -c 'while echo x; do :; done; : %s' & sleep 0.1; echo started", false},
		"no hup": {"trap '' HUP; sh -c 'sleep 100; : %s' & echo started", true},
		"setsid": {"setsid sh -c 'sleep 100; : %s' >/dev/null 2>&1 </dev/null & sleep 0.1; echo started", true},
	} {
		c, m := r.session(RoleExec), mark()
		begin := testutil.Now()
		text := c.terminal(nil, "sh", "-c", fmt.Sprintf(test.line, m)).ends(0)
		if took := testutil.Since(begin); !strings.Contains(text, "started") || took > 3*time.Second {
			t.Errorf("%s: %.100q in %v", name, text, took)
		}
		c.Close()
		testutil.Eventually(t, "the session ends", func() bool { return len(r.sessions()) == 0 })
		if !test.stays {
			testutil.Eventually(t, name+" ends", func() bool { return len(marked(t, m)) == 0 })
			continue
		}
		time.Sleep(100 * time.Millisecond)
		if len(marked(t, m)) == 0 {
			t.Errorf("%s: it was killed", name)
		}
	}
}

// TestTerminalVanishes: a client that is gone hangs up, and all ends.
func TestTerminalVanishes(t *testing.T) {
	r := open(t, &tool.Grant{})
	c, m := r.session(RoleExec), mark()
	s := c.terminal(nil, "sh", "-c", "trap '' HUP TERM; (setsid sh -c 'sleep 100; : "+m+"' &); echo ready; while :; do sleep 0.01; done; : "+m)
	s.shows("ready")
	testutil.Eventually(t, "it runs", func() bool { return len(marked(t, m)) >= 2 })
	c.Close()
	testutil.Eventually(t, "all of it is killed", func() bool { return len(marked(t, m)) == 0 })

	c = r.session(RoleExec)
	s = c.terminal(nil, "sh", "-c", "trap 'echo hung up >"+m+"; exit' HUP; echo ready; while :; do sleep 0.01; done")
	s.shows("ready")
	c.Close()
	c = r.session(RoleExec)
	testutil.Eventually(t, "it was told", func() bool {
		_, out, _, _ := c.exec(Exec{Argv: []string{"sh", "-c", "cat " + m}}, "")
		return out == "hung up\n"
	})

}

// TestTerminalIsOneProgramsOwn: neither the program nor another process of the
// worker gets at the other side (B41).
func TestTerminalIsOneProgramsOwn(t *testing.T) {
	r := open(t, &tool.Grant{})
	c := r.session(RoleExec)
	s := c.terminal(nil, "sh", "-c", "ls -l /proc/$$/fd; ls /proc/$PPID/fd; cat /proc/$PPID/fd/*; echo ready $PPID; read x")
	s.shows("ready")
	text := s.String()
	if strings.Contains(text, "ptmx") || strings.Count(text, "/dev/pts/") != 3 || strings.Count(text, "ermission denied") != 2 {
		t.Errorf("%q", text)
	}
	_, session, _ := strings.Cut(text, "ready ")
	out, err := r.enter("sh", "-c", "ls /proc/"+strings.TrimSpace(session)+"/fd").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "denied") {
		t.Errorf("%v %q", err, out)
	}
	s.typed("\n")
	s.ends(0)
}
