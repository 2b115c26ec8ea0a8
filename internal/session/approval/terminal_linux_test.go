package approval

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// keyboard is the other side of a terminal.
type keyboard struct {
	*os.File
	t      *testing.T
	screen string
	chunks chan string
}

// newTerminal makes a terminal and gives both sides.
func newTerminal(t *testing.T) (*Terminal, *keyboard) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Close() })
	// Not by Fd: what is read would block then, also beyond Close.
	raw, err := master.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	if control := raw.Control(func(fd uintptr) {
		if err = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); err == nil {
			n, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		}
	}); err != nil || control != nil {
		t.Fatal(err, control)
	}
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tty.Close() })
	k := &keyboard{File: master, t: t, chunks: make(chan string, 1024)}
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := master.Read(buf)
			if err != nil {
				close(k.chunks)
				return
			}
			k.chunks <- string(buf[:n])
		}
	}()
	return &Terminal{In: tty, Out: tty}, k
}

// sees waits until the screen has a text.
func (k *keyboard) sees(text string) {
	k.t.Helper()
	end := time.After(10 * time.Second)
	for !strings.Contains(k.screen, text) {
		select {
		case c := <-k.chunks:
			k.screen += c
		case <-end:
			k.t.Fatalf("the screen has no %q:\n%q", text, k.screen)
		}
	}
}

func (k *keyboard) types(text string) {
	k.t.Helper()
	if _, err := k.WriteString(text); err != nil {
		k.t.Fatal(err)
	}
}

type result struct {
	answer Answer
	err    error
}

func asking(ctx context.Context, term *Terminal, q Question) chan result {
	done := make(chan result, 1)
	go func() {
		a, err := term.Ask(ctx, q)
		done <- result{a, err}
	}()
	return done
}

func (k *keyboard) answered(done chan result) result {
	k.t.Helper()
	select {
	case r := <-done:
		return r
	case <-time.After(10 * time.Second):
		k.t.Fatalf("no answer; the screen:\n%s", k.screen)
		return result{}
	}
}

func question() Question {
	return Question{
		Call: Call{Worker: "fixer", Tool: "shell", Chain: []string{"reviewer"}}, Why: "no rule lets it pass",
		Text: "git push\nin the directory: /x", Rule: &Rule{"shell", "git push"}, Change: "workshop.yaml\n+   9 |     - {tool: shell}",
	}
}

const fullPrompt = "[y]es once, [s]ession, [a]lways, [N]o: "

func TestTerminal(t *testing.T) {
	for typed, want := range map[string]Answer{
		"y\n": Once, "YES\n": Once, "s\n": Session, "a\n": Always, "n\n": No, "\n": No, "\x04": "", // end of input
		"?\nq\ny\n": Once, "yy\nok\nyes please\n": "", "\x15y\n": Once, "n\x7fy\n": Once, // edited by the terminal
		strings.Repeat("y", 300) + "\nn\n": No, "\xff\ny\n": Once, "y\x1b[A\nn\n": No,
	} {
		term, k := newTerminal(t)
		done := asking(t.Context(), term, question())
		for i, line := range strings.SplitAfter(typed, "\n") {
			if line == "" {
				break
			}
			for end := time.Now().Add(10 * time.Second); strings.Count(k.screen, fullPrompt) <= i && time.Now().Before(end); {
				select {
				case c := <-k.chunks:
					k.screen += c
				case <-time.After(10 * time.Millisecond):
				}
			}
			k.types(line)
		}
		if r := k.answered(done); r.answer != want || errors.Is(r.err, ErrClosed) != (want == "") {
			t.Errorf("%q: %q %v", typed, r.answer, r.err)
		}
	}
}

func TestTerminalShows(t *testing.T) {
	term, k := newTerminal(t)
	q := question()
	q.Why = "x\x1b[2J"
	done := asking(t.Context(), term, q)
	k.sees(fullPrompt)
	want := "\r\nfixer wants shell (for reviewer):\r\n  | git push\r\n  | in the directory: /x\r\nasked because: x\\u{1b}[2J\r\n" +
		"session allows: shell \"git push\", each plain command that begins so\r\nalways changes:\r\n  | workshop.yaml\r\n  | +   9 |     - {tool: shell}\r\n" + fullPrompt
	if k.screen != want {
		t.Errorf("%q\nwant\n%q", k.screen, want)
	}
	k.types("n\n")
	k.answered(done)

	// What isn't offered isn't taken.
	for _, q := range []Question{{Text: "a; b"}, {Text: "a", Rule: &Rule{"shell", "a"}}} {
		term, k := newTerminal(t)
		done := asking(t.Context(), term, q)
		k.sees("[N]o: ")
		if strings.Contains(k.screen, "only once: no rule can be about just this call\r\n") != (q.Rule == nil) {
			t.Error(k.screen)
		}
		if strings.Contains(k.screen, "[a]") || strings.Contains(k.screen, "[s]") != (q.Rule != nil) {
			t.Error(k.screen)
		}
		k.types("a\n")
		k.screen = ""
		k.sees("[N]o: ")
		if want := map[bool]string{false: "not an answer: type y or n\r\n", true: "not an answer: type y, s or n\r\n"}[q.Rule != nil]; !strings.Contains(k.screen, want) {
			t.Errorf("the screen has no %q:\n%q", want, k.screen)
		}
		k.types("\n")
		if r := k.answered(done); r.answer != No || r.err != nil {
			t.Error(r)
		}
	}
}

// What was typed before the question stands there answers nothing.
func TestTerminalTypedBefore(t *testing.T) {
	for _, early := range []string{"y\n", "y\ny\ny\ny\n", "a"} {
		term, k := newTerminal(t)
		k.types(early)
		k.sees(strings.ReplaceAll(early, "\n", "\r\n")) // it is in the terminal's buffer
		done := asking(t.Context(), term, question())
		k.sees(fullPrompt)
		select {
		case r := <-done:
			t.Errorf("%q answers: %v", early, r)
			continue
		case <-time.After(300 * time.Millisecond):
		}
		k.types("\n")
		if r := k.answered(done); r.answer != No {
			t.Errorf("%q and an empty line: %v", early, r)
		}
	}
}

// A question that isn't wanted any more takes nothing of what is typed then.
func TestTerminalCancelled(t *testing.T) {
	term, k := newTerminal(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := asking(ctx, term, question())
	k.sees(fullPrompt)
	cancel()
	if r := k.answered(done); !errors.Is(r.err, context.Canceled) || r.answer != "" {
		t.Error(r)
	}
	k.types("next\n")
	line, err := readLine(t.Context(), term.In)
	if line != "next" || err != nil {
		t.Errorf("%q %v", line, err)
	}
}

// A terminal that is gone is no yes.
func TestTerminalGone(t *testing.T) {
	term, k := newTerminal(t)
	done := asking(t.Context(), term, question())
	k.sees(fullPrompt)
	k.types("y")
	k.Close()
	for range k.chunks { // the reader lets go of it
	}
	if r := k.answered(done); r.answer != "" || !errors.Is(r.err, ErrClosed) {
		t.Error(r)
	}
}

func TestNoTerminal(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	w.WriteString("y\n")
	for _, in := range []*os.File{r, nil} {
		var out strings.Builder
		if a, err := (&Terminal{In: in, Out: &out}).Ask(t.Context(), question()); err == nil || a != "" || out.Len() > 0 {
			t.Error(a, err, out.String())
		}
	}
	if !slices.Equal((&Question{}).Answers(), []Answer{No, Once}) {
		t.Error((&Question{}).Answers())
	}
}
