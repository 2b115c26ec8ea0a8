//go:build linux

package e2e

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/llmdo/workshop/e2e/scenario"
)

// TestRootlessPodman: an ordinary user with podman has what the promises say, but limits,
// which podman can't set on cgroups of version 1.
func TestRootlessPodman(t *testing.T) {
	scenario.OnlyDocker(t, "an engine of another user")
	scenario.HasRootless(t, "podman", "slirp4netns", "newuidmap")
	if !scenario.Alone(t) {
		return
	}
	scenario.AsUser(t)
	scenario.NewRootlessPodman(t)
	s := scenario.New(t, "restricted", "rootless podman: files are the user's, the room holds; limits that podman would only promise are refused")
	file := strings.Replace(s.Read("workshop.yaml"), "./ca.pem:/ca.pem", "./ca.pem:/ca.pem\n      - ./out:/out:rw", 1)
	file = strings.Replace(file, "    network:", "    secrets: [{name: token, file: ./token}]\n    network:", 1)
	file = strings.Replace(file, "    - worker\n", "    - name: worker\n      container: {secrets: [token]}\n", 1)
	s.Write("token", "0f9d2c7e51")
	s.Write("out/.keep", "")
	s.Write("workshop.yaml", file)
	if d := s.Expect(4, "up"); !strings.Contains(d.Err, "memory, swap, cpu, pids: without root podman sets no limits on cgroups of version 1 (B5)") {
		t.Errorf("up:\n%s", d.Err)
	}
	if l := left(s); l != nil {
		t.Errorf("it left %v", l)
	}
	s.Write("workshop.yaml", strings.Replace(strings.Replace(file, "      - ./out:/out:rw\n", "", 1), "    image: host\n", "    image: host\n    user: \"2000:2000\"\n", 1))
	if d := s.Expect(4, "up", "--without-limits"); !strings.Contains(d.Err, "without root podman keeps no other user than yours, 1000:1000, and the worker's is 2000:2000 (B4)") {
		t.Errorf("up with another user:\n%s", d.Err)
	}
	s.Write("workshop.yaml", file)

	s.Up("--without-limits")
	s.Sees("worker",
		"interfaces -> lo",
		"http https://allowed.example.org/ ca=/ca.pem -> 200",
		"http http://169.254.169.254/ -> 403",
	)
	s.Expect(0, "exec", "worker", "--", "sh", "-c", "cat /run/secrets/token >/out/made")
	if made, err := os.Stat(filepath.Join(s.Dir, "out/made")); err != nil || made.Sys().(*syscall.Stat_t).Uid != scenario.UID {
		t.Errorf("what the worker wrote is not the user's (B4): %v", err)
	}
	// slirp4netns leads from 10.0.2.2 to the machine's loopback.
	loopback, came := scenario.Listen(t, "127.0.0.1")
	_, port, err := net.SplitHostPort(loopback)
	if err != nil {
		t.Fatal(err)
	}
	edit(s, "- ssh.example.org:22\n", "- ssh.example.org:22\n        - {cidr: 10.0.0.0/8, port: "+port+"}\n        - {cidr: 10.0.2.2/32, port: "+port+"}\n")
	s.Expect(0, "firewall", "reload")
	s.Sees("worker", "tcp 10.0.2.2:"+port+" -> "+cutOff, "http http://10.0.2.2:"+port+"/ -> "+cutOff)
	if n := came(); n != 0 {
		t.Errorf("the machine's loopback got %d connections of a worker (B26)", n)
	}
	probe := exec.CommandContext(t.Context(), "podman", "--url", os.Getenv("DOCKER_HOST"), "exec", s.Project+"-guard-1", "/workshop-init", "probe", "tcp 10.0.2.2:"+port+" -> data")
	if out, err := probe.CombinedOutput(); err != nil || came() != 1 {
		t.Errorf("control: %v: %s", err, out)
	}
	if d := s.Run("ps"); !strings.Contains(d.Out, "B5–B6") && !strings.Contains(d.Out, "B5, B6") {
		t.Errorf("ps:\n%s%s", d.Out, d.Err)
	}
	// The machine's, with control groups of the same uid.
	s.Sees("worker", "list /sys -> empty", "mount /sys -> ro")
	if d := s.Run("verify"); !strings.Contains(d.Out, " 0 broken, ") {
		t.Errorf("verify:\n%s%s", d.Out, d.Err)
	}
	s.Expect(0, "down")
	if l := left(s); l != nil {
		t.Errorf("down left %v", l)
	}

	if d := s.Run("doctor", "-v", "--engine", "namespace"); !strings.Contains(d.Out+d.Err, "to use it: `workshop --engine podman up`") {
		t.Errorf("doctor:\n%s%s", d.Out, d.Err)
	}

	// By its usual socket, without DOCKER_HOST; what is up there is found without --engine.
	s.Env = append(s.Env, "DOCKER_HOST=")
	s.Expect(0, "up", "--engine", "podman", "--without-limits")
	if d := s.Expect(0, "ps"); !strings.Contains(d.Out, "podman") {
		t.Errorf("ps:\n%s", d.Out)
	}
	s.Expect(0, "exec", "worker", "--", "true")
	if d := s.Expect(0, "ls"); !strings.Contains(d.Out, s.Project) {
		t.Errorf("ls:\n%s", d.Out)
	}
	s.Expect(0, "up", "--without-limits")
	if d := s.Expect(4, "up", "--engine", "namespace"); !strings.Contains(d.Err, "is up on podman at unix://") {
		t.Errorf("up on namespaces:\n%s", d.Err)
	}
	s.Expect(0, "down")
	if l := left(s); l != nil {
		t.Errorf("down left %v", l)
	}
}
