package app

import (
	"io"
	"log"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/compose"
)

// Where nothing can start the process that leases credentials, nothing is started.
func TestMayStartBroker(t *testing.T) {
	ready := func(dir string) *Project {
		return &Project{Compiled: &compose.Compiled{Facts: &compose.Facts{RuntimeDir: dir}}}
	}
	env := &Env{Self: []string{"/usr/bin/workshop"}}
	long := "/" + strings.Repeat("d", maxSocketPath)
	for _, c := range []struct {
		env  *Env
		dir  string
		want string
	}{
		{env, t.TempDir(), ""},
		{env, long, "is too long by 8 bytes"},
		{&Env{}, t.TempDir(), "which a process of the program workshop leases"},
	} {
		err := c.env.mayStartBroker(t.Context(), ready(c.dir))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.dir, err, c.want)
		}
	}
}

// TestBrokerLog: what a guard or a worker says moves no cursor where the log is read, and is
// bounded.
func TestBrokerLog(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	l := log.New(&boundedLog{f: f}, "", 0)
	l.Printf("not attached: \x1b[2J\nends: %s", strings.Repeat("x", 1<<20))
	l.Printf("end")
	text, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Split(string(text), "\n"); len(lines) != 3 || lines[1] != "end" || strings.Contains(lines[0], "\x1b") || len(text) > 4<<10 {
		t.Errorf("%d bytes: %.200q", len(text), text)
	}
}

// TestGuardThatDoesntAttach: a guard that doesn't answer, or without end, is left, so that the
// next one is asked.
func TestGuardThatDoesntAttach(t *testing.T) {
	for name, says := range map[string]string{"silent": "", "endless": strings.Repeat("x", 64<<10)} {
		here, there := net.Pipe()
		go func() {
			_, _ = there.Read(make([]byte, 1<<10))
			for says != "" {
				if _, err := io.WriteString(there, says); err != nil {
					return
				}
			}
		}()
		ended := make(chan error, 1)
		go func() {
			_, err := attach(here, 100*time.Millisecond)
			ended <- err
		}()
		select {
		case err := <-ended:
			if err == nil {
				t.Errorf("%s: it is attached", name)
			}
		case <-time.After(5 * time.Second):
			t.Errorf("%s: it waits", name)
		}
		there.Close()
	}
}
