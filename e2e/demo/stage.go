package main

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
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

// internetWait is how long the test internet waits for another one, such as
// that of tests that run.
const internetWait = time.Minute

// stage is everything that the demo sets up.
type stage struct {
	ctx      context.Context
	bin, dir string
	raw      bool
	internet string // container ID
	control  *http.Client
}

func (s *stage) project() string { return filepath.Join(s.dir, "project") }

// copyProject writes the embedded workshop to where it may make files.
func (s *stage) copyProject() error {
	if err := os.Chmod(s.dir, 0o755); err != nil {
		return err
	}
	sub, err := fs.Sub(project, "project")
	if err != nil {
		return err
	}
	return os.CopyFS(s.project(), sub)
}

// command runs a program and returns its standard output.
func (s *stage) command(stdin io.Reader, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(s.ctx, name, args...)
	cmd.Stdin, cmd.Dir = stdin, s.project()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), strings.Join(args, " "), err, errs.String())
	}
	return out.String(), nil
}

func (s *stage) docker(args ...string) (string, error) { return s.command(nil, "docker", args...) }

func (s *stage) workshop(args ...string) (string, error) {
	return s.command(nil, filepath.Join(s.bin, "workshop"), args...)
}

// startInternet runs the test internet in a privileged container with this
// machine's network, so that root isn't needed: who may use the engine may
// start it.
func (s *stage) startInternet() error {
	archive, err := s.imageTar()
	if err != nil {
		return err
	}
	if _, err := s.command(archive, "docker", "import", "-", image); err != nil {
		return err
	}
	out, err := s.docker("run", "-d", "--cap-add", "SYS_ADMIN", "--cap-add", "NET_ADMIN", "--security-opt", "seccomp=unconfined", "--security-opt", "apparmor=unconfined", "--network", "host", "-v", s.dir+":/demo", image, "/testnet", "-dir", "/demo", "-signal-only", "-wait", internetWait.String())
	s.internet = strings.TrimSpace(out)
	if err != nil {
		return err
	}
	// testnet itself waits for another one, and ends when it has waited enough.
	started := time.Now()
	for said := false; time.Since(started) < internetWait+10*time.Second; time.Sleep(100 * time.Millisecond) {
		out, err := s.internetLog()
		if err != nil {
			return err
		}
		if strings.Contains(out, "READY") {
			return s.internetReady()
		}
		if state, _ := s.docker("inspect", "-f", "{{.State.Status}}", s.internet); strings.TrimSpace(state) == "exited" {
			break
		}
		if !said && time.Since(started) > 3*time.Second {
			said = true
			fmt.Fprintf(os.Stderr, "demo: waiting up to %v for another test internet on this machine to end\n", internetWait)
		}
	}
	out, err = s.internetLog()
	return errors.Join(fmt.Errorf("the test internet did not start:\n%s", strings.TrimSpace(out)), err)
}

// internetLog is what the test internet wrote to both of its outputs.
func (s *stage) internetLog() (string, error) {
	out, err := exec.CommandContext(s.ctx, "docker", "logs", s.internet).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("docker logs: %w\n%s", err, out)
	}
	return string(out), nil
}

func (s *stage) internetReady() error {
	s.control = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(s.dir, "control.sock"))
	}}}
	ca, err := os.ReadFile(filepath.Join(s.dir, "ca.pem"))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.project(), "ca.pem"), ca, 0o644)
}

// imageTar is a file system of two static programs.
func (s *stage) imageTar() (io.Reader, error) {
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

func (s *stage) up() error {
	out, err := s.workshop("up")
	fmt.Print(out)
	return err
}

// packets asks the test internet how many packets an address got.
func (s *stage) packets(key string) (int, error) {
	r, err := s.control.Get("http://testnet/counts")
	if err != nil {
		return 0, err
	}
	defer r.Body.Close()
	var counts struct{ Packets map[string]int }
	if err := json.NewDecoder(r.Body).Decode(&counts); err != nil {
		return 0, err
	}
	return counts.Packets[key], nil
}

// close removes everything, also after an interrupt.
func (s *stage) close() {
	s.ctx = context.Background()
	_, err := s.workshop("down")
	if s.internet != "" {
		// what the container wrote is root's: it has to remove it itself
		_, stopErr := s.docker("stop", "-t", "5", s.internet)
		_, rmErr := s.docker("rm", "-f", s.internet)
		err = errors.Join(err, stopErr, rmErr)
	}
	if _, e := s.docker("image", "rm", "-f", image); e != nil {
		err = errors.Join(err, e)
	}
	if e := os.RemoveAll(s.dir); e != nil {
		err = errors.Join(err, e)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo: cleaning up:", err)
	}
}
