package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// image holds the test internet and the probe, for what runs beside the
// workshop. It is removed at the end.
const image = "workshop-demo:local"

// container stands beside a workshop on Docker.
type container struct{ id string }

func (c *container) name() string { return "container" }

func (c *container) up(*stage) ([]string, error) { return nil, nil }

func docker(s *stage, args ...string) (string, error) { return s.command(nil, "docker", args...) }

func (c *container) ordinary(s *stage, probes []string) *exec.Cmd {
	return exec.CommandContext(s.ctx, "docker", append([]string{"run", "--rm", "-v", filepath.Join(s.dir, "ca.pem") + ":/ca.pem:ro", image, "/workshop-init", "probe"}, probes...)...)
}

// start runs the test internet in a privileged container with this
// machine's network, so that root isn't needed: who may use the engine may
// start it.
func (c *container) start(s *stage) error {
	archive, err := imageTar(s)
	if err != nil {
		return err
	}
	if _, err := s.command(archive, "docker", "import", "-", image); err != nil {
		return err
	}
	out, err := docker(s, "run", "-d", "--cap-add", "SYS_ADMIN", "--cap-add", "NET_ADMIN", "--security-opt", "seccomp=unconfined", "--security-opt", "apparmor=unconfined", "--network", "host", "-v", s.dir+":/demo", image, "/testnet", "-dir", "/demo", "-signal-only", "-wait", internetWait.String())
	c.id = strings.TrimSpace(out)
	if err != nil {
		return err
	}
	// testnet itself waits for another one, and ends when it has waited enough.
	started := time.Now()
	for said := false; time.Since(started) < internetWait+10*time.Second; time.Sleep(100 * time.Millisecond) {
		out, err := c.log(s)
		if err != nil {
			return err
		}
		if strings.Contains(out, "READY") {
			return nil
		}
		if state, _ := docker(s, "inspect", "-f", "{{.State.Status}}", c.id); strings.TrimSpace(state) == "exited" {
			break
		}
		if !said && time.Since(started) > 3*time.Second {
			said = true
			fmt.Fprintf(os.Stderr, "demo: waiting up to %v for another test internet on this machine to end\n", internetWait)
		}
	}
	out, err = c.log(s)
	return errors.Join(fmt.Errorf("the test internet did not start:\n%s", strings.TrimSpace(out)), err)
}

// log is what the test internet wrote to both of its outputs.
func (c *container) log(s *stage) (string, error) {
	out, err := exec.CommandContext(s.ctx, "docker", "logs", c.id).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("docker logs: %w\n%s", err, out)
	}
	return string(out), nil
}

// imageTar is a file system of two static programs.
func imageTar(s *stage) (io.Reader, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for name, file := range map[string]string{"testnet": "testnet", "workshop-init": "workshop-init-linux-" + runtime.GOARCH} {
		data, err := os.ReadFile(filepath.Join(s.bin, file))
		if err != nil {
			return nil, err
		}
		if err := w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(data))}); err != nil {
			return nil, err
		}
		if _, err := w.Write(data); err != nil {
			return nil, err
		}
	}
	return &b, w.Close()
}

func (c *container) close(s *stage) (err error) {
	if c.id != "" {
		// what the container wrote is root's: it has to remove it itself
		_, stopErr := docker(s, "stop", "-t", "5", c.id)
		_, rmErr := docker(s, "rm", "-f", c.id)
		err = errors.Join(stopErr, rmErr)
	}
	if _, e := docker(s, "image", "rm", "-f", image); e != nil {
		err = errors.Join(err, e)
	}
	return err
}
