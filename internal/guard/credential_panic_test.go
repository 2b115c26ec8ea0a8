package guard

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/guard/leases"
	"github.com/llmdo/workshop/internal/guard/panics"
)

// panicWith panics with a value that is about to be sent, and has it in a buffer.
func panicWith(h *leases.Held) {
	var b bytes.Buffer
	_ = h.WriteHeader(&b)
	defer b.Reset()
	panic(h)
}

// valueForms are forms in which a value could be printed.
func valueForms(value string) (out []string) {
	_, token, _ := strings.Cut(value, " ")
	for _, text := range []string{value, token} {
		b := []byte(text)
		decimal := strings.Trim(fmt.Sprint(b), "[]")
		out = append(out, text, decimal, strings.ReplaceAll(decimal, " ", ", "), hex.EncodeToString(b), fmt.Sprintf("% x", b), fmt.Sprintf("%#v", b), url.QueryEscape(text),
			strings.TrimRight(base64.StdEncoding.EncodeToString(b), "="), strings.TrimRight(base64.URLEncoding.EncodeToString(b), "="))
	}
	return out
}

// TestB32_PanicSaysNoValue: a guard that panics with a value in its hands, or crashes while
// one is sent, writes it neither to its log nor to its events.
func TestB32_PanicSaysNoValue(t *testing.T) {
	for _, x := range []struct {
		name, role string
		end        func(*world)
		shows      []string // what a log of such an end has
	}{
		{"recovered, until there are too many", "guard that panics with a value", func(w *world) {
			for range panics.Limit {
				c := w.mustDial("room", "tcp", apiAddr)
				_, _ = io.WriteString(c, getRepos+"\r\n")
				if b, err := io.ReadAll(c); err == nil {
					w.Errorf("the worker read %q", b)
				}
			}
		}, []string{"recovered: panic: (the credential key)", "guard.panicWith"}},
		{"a crash while a response streams", "guard", func(w *world) {
			w.in.Site("allowed.example.org", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				rw.(http.Flusher).Flush()
				<-r.Context().Done()
			}))
			c := w.mustDial("room", "tcp", apiAddr)
			_, _ = io.WriteString(c, strings.Replace(getRepos, "/repos/a", "/stream", 1)+"\r\n")
			if line, err := bufio.NewReader(c).ReadString('\n'); err != nil || !strings.Contains(line, "200") {
				w.Errorf("%q %v", line, err)
			}
			_ = w.guard.cmd.Process.Signal(syscall.SIGABRT)
		}, []string{"SIGABRT", "goroutine "}},
	} {
		t.Run(x.name, func(t *testing.T) {
			w := buildWorld(t, keyPolicy(t))
			w.policy.Roots = [][]byte{w.root()}
			w.writePolicy()
			w.startRooms()
			file, err := os.CreateTemp(t.TempDir(), "stderr")
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			w.role, w.stderr, w.env = x.role, file, []string{"GOTRACEBACK=system"}
			w.startGuard()
			b, _ := w.attach()
			b.lease(1, canary)
			x.end(w)
			select {
			case <-w.guard.done:
			case <-time.After(10 * time.Second):
				t.Fatal("the guard didn't end")
			}
			log, err := os.ReadFile(file.Name())
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range x.shows {
				if !bytes.Contains(log, []byte(text)) {
					t.Errorf("no %q in the log:\n%.3000s", text, log)
				}
			}
			w.guard.mu.Lock()
			defer w.guard.mu.Unlock()
			for _, e := range w.guard.lines {
				log = append(log, e.raw...)
			}
			for _, form := range valueForms(canary) {
				if bytes.Contains(log, []byte(form)) {
					t.Errorf("the guard wrote %q", form)
				}
			}
		})
	}
}
