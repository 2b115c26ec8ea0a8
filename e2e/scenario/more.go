//go:build linux

package scenario

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/compose"
)

// Exists reports whether a file is in the scenario's directory.
func (s *Scenario) Exists(name string) bool {
	_, err := os.Lstat(filepath.Join(s.Dir, name))
	return err == nil
}

// Serve starts an HTTP server in a worker, and returns when it listens.
func (s *Scenario) Serve(worker, addr, text string) (stop func()) {
	s.Helper()
	c := s.Inspect(worker)
	ctx, cancel := context.WithCancel(context.Background())
	r, w := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, err := s.machine.exec(ctx, s, c, []string{compose.InitPath, "probe", "serve " + addr + " text=" + text}, w)
		w.CloseWithError(err)
	}()
	listening := make(chan string, 1)
	go func() {
		buf := make([]byte, 512)
		n, _ := r.Read(buf)
		listening <- string(buf[:n])
		_, _ = io.Copy(io.Discard, r)
	}()
	select {
	case line := <-listening:
		if !strings.Contains(line, "listening") {
			cancel()
			s.Fatalf("serve %s in %s: %q", addr, worker, line)
		}
	case <-time.After(5 * time.Second):
		cancel()
		s.Fatalf("serve %s in %s: it doesn't listen", addr, worker)
	}
	return func() { cancel(); <-ended }
}

// Chown gives everything in the scenario's directory to its user again, after
// a test wrote there as root.
func (s *Scenario) Chown() { s.Helper(); s.own() }

// WorkshopName is the name that workshop.yaml gives.
func (s *Scenario) WorkshopName() string { return s.field("name: ") }

// withDefault is a variable with a default, of which the default is taken.
var withDefault = regexp.MustCompile(`\$\{\w+:-([^}]*)\}`)

// LocalImages are the image references of workshop.yaml that no registry could
// answer here.
func (s *Scenario) LocalImages() []string {
	var out []string
	for line := range strings.Lines(s.Read("workshop.yaml")) {
		if ref, ok := strings.CutPrefix(strings.TrimSpace(line), "image: "); ok {
			ref, _, _ = strings.Cut(ref, " ")
			if ref = withDefault.ReplaceAllString(strings.Trim(ref, `"'`), "$1"); ref != "host" {
				out = append(out, ref)
			}
		}
	}
	return out
}

func (s *Scenario) field(prefix string) string {
	for line := range strings.Lines(s.Read("workshop.yaml")) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), prefix); ok {
			return strings.TrimSpace(v)
		}
	}
	s.Fatalf("workshop.yaml has no %q", prefix)
	return ""
}

// VerifyTestInternet has our programs verify the hosts of endpoints by the test internet's
// certificates, which are no file of the project.
func (s *Scenario) VerifyTestInternet() { s.Env = append(s.Env, "SSL_CERT_FILE="+s.caFile) }

// TrustTestInternet makes the test internet's certificates those that this machine
// trusts, until the test ends; so do workers with `image: host`.
func (s *Scenario) TrustTestInternet() {
	s.Helper()
	const certs = "/etc/ssl/certs"
	dir := s.TB.TempDir()
	traversable(dir)
	s.must(os.WriteFile(filepath.Join(dir, "ca-certificates.crt"), s.Internet.CA, 0o644))
	s.must(unix.Mount(dir, certs, "", unix.MS_BIND, ""))
	s.Cleanup(func() { _ = unix.Unmount(certs, unix.MNT_DETACH) })
}
