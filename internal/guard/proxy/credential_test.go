package proxy

import (
	"bufio"
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/guard/lease"
	"github.com/llmdo/workshop/internal/guard/leases"
	"github.com/llmdo/workshop/internal/guard/panics"
)

// failing panics as a fault in the code would: by what it writes.
type failing struct{ seen []byte }

func (f *failing) Write(b []byte) (int, error) {
	f.seen = append(f.seen, b...)
	return int(b[len(b)+len(f.seen)]), nil
}

// TestB45_PanicShowsNoCredential is attack 45: a panic while the value is sent is logged
// without it, and ends its use.
func TestB45_PanicShowsNoCredential(t *testing.T) {
	const canary = "Bearer canary-9d02c1"
	line := lease.Line{Room: "room", At: "api", Host: host, Port: 443, Credential: "key", Rule: "0123456789abcdef"}
	store := leases.NewStore(lease.Lasting, []lease.Line{line})
	value := lease.Value(canary)
	store.Put(&lease.Lease{Line: line, Generation: 1, Header: "Authorization", Value: value})
	e := &endpoint{name: "api", held: store.Take(line), using: true}
	upstream := &failing{}
	side := &requestSide{ubw: bufio.NewWriter(upstream)}
	req, err := http.NewRequest("GET", "http://"+host+"/a", nil)
	if err != nil {
		t.Fatal(err)
	}
	log := stderr(t, func() {
		if panics.Serve(func() { _ = side.writeHead(req, e) }, func() {}) {
			t.Error("it didn't panic")
		}
	})
	if !bytes.Contains(upstream.seen, []byte(canary)) || !strings.Contains(log, "recovered") || !strings.Contains(log, "writeHead") {
		t.Errorf("the control failed: %q, %s", upstream.seen, log)
	}
	if strings.Contains(log, "canary") || strings.Contains(log, "63616e617279") {
		t.Errorf("the log has it: %s", log)
	}
	store.Revoke("key")
	if !bytes.Equal(value, make([]byte, len(canary))) {
		t.Error("the value is in use for ever")
	}
}

// stderr is what f writes to the process's standard error.
func stderr(t testing.TB, f func()) string {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	old, err := unix.FcntlInt(2, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(old)
	if err := unix.Dup3(int(file.Fd()), 2, 0); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Dup3(old, 2, 0); err != nil {
			t.Fatal(err)
		}
	}()
	f()
	b, err := os.ReadFile(file.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestIsDummy: only the fixed word is taken for no credential.
func TestIsDummy(t *testing.T) {
	for value, want := range map[string]bool{
		"workshop": true, "Bearer workshop": true, "token workshop": true, "Basic d29ya3Nob3A6eA==": true, "Basic eDp3b3Jrc2hvcA==": true,
		"": false, "Workshop": false, "Bearer": false, "Bearer ": false, "Bearer  workshop": false, "Bearer workshop ": false, "Bearer workshop, Bearer x": false,
		"Basic workshop": false, "Basic d29ya3Nob3A=": false, "Basic eDp5": false, "Basic !": false, "a/b workshop": false, "workshop workshop x": false,
	} {
		if got := isDummy(value); got != want {
			t.Errorf("%q: %v, want %v", value, got, want)
		}
	}
}
