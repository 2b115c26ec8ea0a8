package control

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// attaching is a server whose broker's bytes are echoed.
func attaching(t testing.TB) func() net.Conn {
	s := NewServer(echo)
	s.Attach = func(c net.Conn) { _, _ = io.Copy(c, c) }
	return listening(t, s)
}

// attach attaches and checks that both sides speak.
func attach(t testing.TB, c net.Conn) io.ReadWriteCloser {
	t.Helper()
	b, err := NewClient(c).Attach()
	if err != nil {
		t.Fatal(err)
	}
	speaks(t, b)
	return b
}

func speaks(t testing.TB, b io.ReadWriter) {
	t.Helper()
	io.WriteString(b, "x")
	if _, err := io.ReadFull(b, make([]byte, 1)); err != nil {
		t.Fatalf("the broker isn't answered: %v", err)
	}
}

// TestAttach: one broker at a time, whatever else it asked before; the next when it has gone.
func TestAttach(t *testing.T) {
	dial := attaching(t)
	first := NewClient(dial())
	if err := first.Do(Request{Op: OpState}, &Request{}); err != nil {
		t.Fatal(err)
	}
	b, err := first.Attach()
	if err != nil {
		t.Fatal(err)
	}
	second := NewClient(dial())
	if _, err := second.Attach(); err == nil || !strings.Contains(err.Error(), "another broker is attached") {
		t.Errorf("a second broker: %v", err)
	}
	if err := second.Do(Request{Op: OpState}, &Request{}); err != nil {
		t.Errorf("the request after it: %v", err)
	}
	speaks(t, b)
	b.Close()
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if b, err := second.Attach(); err == nil {
			speaks(t, b)
			break
		} else if time.Now().After(end) {
			t.Fatalf("after the first has gone: %v", err)
		}
	}
}

// TestAttachHasAPlaceOfItsOwn: others don't keep a broker away, and it takes none of their
// places.
func TestAttachHasAPlaceOfItsOwn(t *testing.T) {
	dial := attaching(t)
	attach(t, dial()).Close()
	var busy []net.Conn
	for range MaxConns {
		c := dial()
		io.WriteString(c, `{"op":"sta`) // not idle
		busy = append(busy, c)
	}
	time.Sleep(100 * time.Millisecond)
	b := attach(t, dial())
	late := dial()
	io.WriteString(late, `{"op":"state"}`+"\n")
	if line, err := bufio.NewReader(late).ReadString('\n'); err != nil || !strings.Contains(line, "too many connections") {
		t.Errorf("one more: %q, %v", line, err)
	}
	for _, c := range busy {
		io.WriteString(c, `te"}`+"\n")
		if line, err := bufio.NewReader(c).ReadString('\n'); err != nil || !strings.Contains(line, `"result"`) {
			t.Errorf("%q, %v", line, err)
		}
		c.Close()
	}
	speaks(t, b)
}

// TestAttachRefuses: another version, and bytes that weren't asked for.
func TestAttachRefuses(t *testing.T) {
	for name, want := range map[string]string{
		`{"op":"attach"}` + "\n":                          "version 0",
		`{"op":"attach","version":2}` + "\n":              "version 2",
		`{"op":"attach","version":1,"host":"a"}` + "\n":   "no field",
		`{"op":"attach","version":1}` + "\n" + `{"type":`: "before the response",
	} {
		t.Run(fmt.Sprintf("%q", name), func(t *testing.T) {
			c := attaching(t)()
			io.WriteString(c, name)
			if line, err := bufio.NewReader(c).ReadString('\n'); err != nil || !strings.Contains(line, want) {
				t.Errorf("got %q, %v, want %s", line, err, want)
			}
		})
	}
	c := listening(t, NewServer(echo))()
	if _, err := NewClient(c).Attach(); err == nil || !strings.Contains(err.Error(), "no broker can attach") {
		t.Errorf("a guard without credentials: %v", err)
	}
}
