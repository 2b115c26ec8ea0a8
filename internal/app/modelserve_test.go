package app

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/llmdo/workshop/internal/model/service"
)

// lines collects what is written, a line each time.
type lines []string

func (l *lines) Write(p []byte) (int, error) {
	*l = append(*l, string(p))
	return len(p), nil
}

// full is a disk that is.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestModelLines(t *testing.T) {
	var got lines
	l := &modelLines{to: &got}
	long := strings.Repeat("x", maxBrokerLine)
	for _, part := range []string{"one\ntw", "o\r\n\n", "\n", long + "y\nlast"} {
		if n, err := l.Write([]byte(part)); n != len(part) || err != nil {
			t.Errorf("%d of %d bytes, %v", n, len(part), err)
		}
	}
	if want := []string{"one", "two", long, "y"}; !slices.Equal(got, want) {
		t.Errorf("the lines are %.20q, want %.20q", []string(got), want)
	}
	if last := l.lastWords(); last != ": last" {
		t.Errorf("the last words are %q", last)
	}
	// Else the server ended: who prints to it would be stopped.
	l = &modelLines{to: full{}}
	for range 3 {
		if n, err := l.Write([]byte("a line\nand")); n != 10 || err != nil {
			t.Errorf("on a full disk: %d bytes, %v", n, err)
		}
	}
	if len(l.part) > 3 {
		t.Errorf("what can't be written is kept: %q", l.part)
	}
}

// TestModelLinesFlood: empty lines cost no more than others.
func TestModelLinesFlood(t *testing.T) {
	l := &modelLines{to: &lines{}}
	flood := bytes.Repeat([]byte("\n"), 4<<20)
	begun := time.Now()
	_, _ = l.Write(flood)
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("%d empty lines took %v", len(flood), took)
	}
}

// TestModelLog: a log that began anew has no hole before its lines.
func TestModelLog(t *testing.T) {
	dir := t.TempDir()
	f, err := openModelLog(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	l := &modelLines{to: &boundedLog{f: f}}
	for range maxBrokerLog/1000 + 10 {
		_, _ = l.Write([]byte(strings.Repeat("x", 1000) + "\n"))
	}
	got, err := os.ReadFile(modelLog(dir))
	if err != nil || bytes.IndexByte(got, 0) >= 0 || len(got) == 0 || len(got) > maxBrokerLog {
		t.Errorf("%d bytes, a NUL at %d, %v", len(got), bytes.IndexByte(got, 0), err)
	}
}

// TestLockOwn: who is to serve a model waits for the one before, which is about to end.
func TestLockOwn(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "model")
	before, err := lockOwn(t.Context(), socket, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lockOwn(t.Context(), socket, 0); err == nil {
		t.Error("a second one has the lock, too")
	}
	time.AfterFunc(300*time.Millisecond, func() { before.Close() })
	after, err := lockOwn(t.Context(), socket, 20*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	after.Close()
}

// TestModelPort: other users' connections to the port are bounded, and it answers nothing without
// the key, whatever the method.
func TestModelPort(t *testing.T) {
	h := &modelHost{gateway: service.NewGateway("key", func(context.Context) (net.Conn, error) { return nil, io.EOF }, log.New(io.Discard, "", 0))}
	address, err := h.listen()
	if err != nil {
		t.Fatal(err)
	}
	ask := func(c net.Conn) (string, error) {
		_, _ = io.WriteString(c, "OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n")
		_ = c.SetReadDeadline(time.Now().Add(time.Second))
		line, err := bufio.NewReader(c).ReadString('\n')
		return line, err
	}
	var held []net.Conn
	for range maxModelClients {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if line, err := ask(c); line != "HTTP/1.1 401 Unauthorized\r\n" {
			t.Fatalf("without the key: %q, %v", line, err)
		}
		held = append(held, c)
	}
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if line, err := ask(c); err == nil {
		t.Errorf("connection %d is served: %q", maxModelClients+1, line)
	}
	held[0].Close()
	_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, err := bufio.NewReader(c).ReadString('\n'); err != nil {
		t.Errorf("it isn't served when another has ended: %v", err)
	}
}

// TestSlowed: a flood is held up, and all of it is written.
func TestSlowed(t *testing.T) {
	var got bytes.Buffer
	s := &slowed{t.Context(), &got, rate.NewLimiter(1000, 100)}
	begun := time.Now()
	if n, err := s.Write(make([]byte, 400)); n != 400 || err != nil || got.Len() != 400 {
		t.Errorf("%d of 400 bytes, %v, %d are written", n, err, got.Len())
	}
	if took := time.Since(begun); took < 200*time.Millisecond {
		t.Errorf("300 bytes more than at once took %v, at 1000 a second", took)
	}
}
