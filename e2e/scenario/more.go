//go:build linux

package scenario

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/probe"
)

// Exists tells whether a file is in the scenario's directory.
func (s *Scenario) Exists(name string) bool {
	_, err := os.Lstat(filepath.Join(s.Dir, name))
	return err == nil
}

// ProbeLoop is Probe for a container that may vanish meanwhile: it returns
// what could be read and fails nothing.
func (s *Scenario) ProbeLoop(id string, probes ...string) []probe.Result {
	out, _, err := s.tryExec(id, container.ExecOptions{Cmd: append([]string{compose.InitPath, "probe"}, probes...)})
	if err != nil {
		s.Logf("probe ended early: %v", err)
	}
	return results(out)
}

// Serve starts an HTTP server in a worker, and returns when it listens.
func (s *Scenario) Serve(worker, addr, text string) (stop func()) {
	s.Helper()
	id := s.Inspect(worker).ID
	ctx, cancel := context.WithCancel(context.Background())
	e, err := s.Docker.ContainerExecCreate(ctx, id, container.ExecOptions{
		Cmd: []string{compose.InitPath, "probe", "serve " + addr + " text=" + text}, AttachStdout: true,
	})
	if err != nil {
		s.Fatal(err)
	}
	a, err := s.Docker.ContainerExecAttach(ctx, e.ID, container.ExecAttachOptions{})
	if err != nil {
		s.Fatal(err)
	}
	_ = a.Conn.SetReadDeadline(time.Now().Add(5 * time.Second))
	buf := make([]byte, 512)
	n, err := a.Reader.Read(buf)
	if !strings.Contains(string(buf[:n]), "listening") {
		s.Fatalf("serve %s in %s: %q %v", addr, worker, buf[:n], err)
	}
	return func() {
		// the process outlives its client: end it by its id
		if i, err := s.Docker.ContainerExecInspect(context.Background(), e.ID); err == nil && i.Running {
			_ = syscall.Kill(i.Pid, syscall.SIGKILL)
		}
		a.Close()
		cancel()
	}
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
