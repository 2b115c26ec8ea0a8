package main

import (
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
	"strings"
	"time"
)

// internetWait is how long the test internet waits for another one, such as
// that of tests that run.
const internetWait = time.Minute

// stage is everything that the demo sets up.
type stage struct {
	ctx      context.Context
	bin, dir string
	raw      bool
	engine   string
	beside   beside
	control  *http.Client
}

// beside is what stands beside the workshop: the test internet, and somebody
// ordinary who tries the same.
type beside interface {
	// start starts the test internet and waits until it is ready.
	start(s *stage) error
	// ordinary is the command that runs probes with an ordinary network.
	ordinary(s *stage, probes []string) *exec.Cmd
	// name is what is ordinary about it: "container".
	name() string
	// up are more arguments of `workshop up`.
	up(s *stage) ([]string, error)
	// close ends the test internet. The context is not over.
	close(s *stage) error
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

func (s *stage) workshop(args ...string) (string, error) {
	return s.command(nil, filepath.Join(s.bin, "workshop"), append([]string{"--engine", s.engine}, args...)...)
}

func (s *stage) startInternet() error {
	if err := s.beside.start(s); err != nil {
		return err
	}
	return s.internetReady()
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

func (s *stage) up() error {
	more, err := s.beside.up(s)
	if err != nil {
		return err
	}
	out, err := s.workshop(append([]string{"up"}, more...)...)
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
	err = errors.Join(err, s.beside.close(s))
	if e := os.RemoveAll(s.dir); e != nil {
		err = errors.Join(err, e)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo: cleaning up:", err)
	}
}
