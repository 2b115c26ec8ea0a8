//go:build linux

package standalone

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/dev/testutil"
)

// relay runs the program, and returns a function that dials it. serve, if not nil, gets
// each connection that reaches the socket.
func relay(t *testing.T, serve func(*net.UnixConn)) (dial func() *net.TCPConn, cmd *exec.Cmd) {
	t.Helper()
	perl, err := exec.LookPath("perl")
	testutil.Require(t, err == nil, "perl")
	socket := filepath.Join(t.TempDir(), "x.sock")
	if serve != nil {
		l, err := net.Listen("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go func() { defer c.Close(); serve(c.(*net.UnixConn)) }()
			}
		}()
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	program, err := files.ReadFile("relay.pl")
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	cmd = exec.Command(perl, "-e", string(program), "--", socket, address, "localhost 127.0.0.1 [::1]")
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if said.Len() > 0 {
			t.Errorf("the relay says %s", &said)
		}
	})
	dial = func() *net.TCPConn {
		t.Helper()
		var c net.Conn
		testutil.Eventually(t, "the relay listens", func() (ok bool) {
			c, err = net.Dial("tcp", address)
			return err == nil
		})
		t.Cleanup(func() { c.Close() })
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		return c.(*net.TCPConn)
	}
	return dial, cmd
}

const head = "POST / HTTP/1.1\r\nHost: localhost:8080\r\n\r\n"

func send(t *testing.T, c net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
}

func rest(t *testing.T, c net.Conn) string {
	t.Helper()
	b, err := io.ReadAll(c)
	if err != nil {
		t.Errorf("after %d bytes: %v", len(b), err)
	}
	return string(b)
}

// echo answers with what it got so far, once the client ends its side.
func echo(c *net.UnixConn) {
	b, _ := io.ReadAll(c)
	_, _ = c.Write(b)
}

func TestRelayHosts(t *testing.T) {
	dial, _ := relay(t, echo)
	for _, c := range []struct{ name, head, want string }{
		{"name", "Host: localhost\r\n", ""},
		{"port", "Host: 127.0.0.1:8080\r\n", ""},
		{"IPv6", "host:[::1]:8080\r\n", ""},
		{"upper case", "A: b\r\nHOST: LocalHost\r\n", ""},
		{"rebinding", "Host: page.example.org:8080\r\n", "403"},
		{"beginning", "Host: localhost.example.org\r\n", "403"},
		{"none", "", "403"},
		{"empty", "Host: \r\n", "403"},
		{"two", "Host: localhost\r\nHost: page.example.org\r\n", "403"},
		{"in the body", "\r\nHost: localhost\r\n", "403"},
		{"long", "A: " + strings.Repeat("x", 70000), "431"},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn, sent := dial(), "GET / HTTP/1.1\r\n"+c.head+"\r\n"
			send(t, conn, sent)
			_ = conn.CloseWrite()
			got, _ := io.ReadAll(conn)
			switch {
			case c.want == "" && string(got) != sent:
				t.Errorf("%q, want what was sent", got)
			case c.want != "" && !strings.HasPrefix(string(got), "HTTP/1.1 "+c.want):
				t.Errorf("%q, want %s", got, c.want)
			}
		})
	}
	t.Run("in pieces", func(t *testing.T) {
		conn := dial()
		for _, b := range []byte(head) {
			send(t, conn, string(b))
			time.Sleep(time.Millisecond)
		}
		_ = conn.CloseWrite()
		if got := rest(t, conn); got != head {
			t.Errorf("%q", got)
		}
	})
}

// TestRelayCarries: what is much larger than any buffer, both ways at once, past readers
// that are slow.
func TestRelayCarries(t *testing.T) {
	const size = 16 << 20
	sum := func(r io.Reader, slow bool) [32]byte {
		h, buf := sha256.New(), make([]byte, 1<<20)
		for {
			n, err := r.Read(buf)
			h.Write(buf[:n])
			if err != nil {
				return [32]byte(h.Sum(nil))
			}
			if slow {
				time.Sleep(time.Millisecond)
			}
		}
	}
	up, down := bytes.Repeat([]byte("0123456789abcdef7"), size/17), bytes.Repeat([]byte("fedcba98765"), size/11)
	got := make(chan [32]byte, 1)
	dial, _ := relay(t, func(c *net.UnixConn) {
		go func() { _, _ = c.Write(down); _ = c.CloseWrite() }()
		got <- sum(c, true)
	})
	conn := dial()
	send(t, conn, head)
	go func() { _, _ = conn.Write(up); _ = conn.CloseWrite() }()
	if sum(conn, true) != sha256.Sum256(down) {
		t.Error("the client got something else")
	}
	if <-got != sha256.Sum256(append([]byte(head), up...)) {
		t.Error("the server got something else")
	}
}

// TestRelayEnds: each side sees that the other is gone.
func TestRelayEnds(t *testing.T) {
	seen := make(chan error, 1)
	dial, cmd := relay(t, func(c *net.UnixConn) {
		line, _ := bufio.NewReader(c).ReadString('\n')
		if strings.HasPrefix(line, "GET") {
			return // before its answer
		}
		_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
		_, err := io.Copy(io.Discard, c)
		seen <- err
	})
	conn := dial()
	send(t, conn, head)
	conn.Close()
	if err := <-seen; err != nil {
		t.Fatalf("the server doesn't see the client's end: %v", err)
	}
	conn = dial()
	send(t, conn, strings.Replace(head, "POST", "GET", 1))
	if got := rest(t, conn); got != "" {
		t.Errorf("%q", got)
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	defer time.AfterFunc(5*time.Second, func() { _ = cmd.Process.Kill() }).Stop()
	if err := cmd.Wait(); err != nil {
		t.Errorf("at SIGTERM: %v", err)
	}
}

// TestRelayLimits: who sends no request, or connects too often, keeps nobody else out for
// long.
func TestRelayLimits(t *testing.T) {
	dial, _ := relay(t, echo)
	idle := dial()
	began := time.Now()
	for range 199 {
		dial()
	}
	if got := rest(t, dial()); !strings.HasPrefix(got, "HTTP/1.1 503") {
		t.Errorf("one too many got %q", got)
	}
	if testing.Short() {
		return
	}
	_ = idle.SetReadDeadline(time.Now().Add(20 * time.Second))
	if got := rest(t, idle); t.Failed() || got != "" || time.Since(began) < 5*time.Second {
		t.Fatalf("the idle connection got %q after %s", got, time.Since(began))
	}
	testutil.Eventually(t, "there is room again", func() bool {
		c := dial()
		fmt.Fprint(c, head)
		_ = c.CloseWrite()
		got, _ := io.ReadAll(c)
		return string(got) == head
	})
}

func TestRelayWithoutServer(t *testing.T) {
	dial, _ := relay(t, nil)
	conn := dial()
	send(t, conn, head)
	if got := rest(t, conn); !strings.HasPrefix(got, "HTTP/1.1 503") {
		t.Errorf("%q", got)
	}
}
