//go:build linux

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmdo/workshop/e2e/scenario"
	"github.com/llmdo/workshop/internal/dev/testnet"
	"github.com/llmdo/workshop/internal/dev/testutil"
)

const plainCompose = "plain Compose starts the generated project at Docker"

// composeUp starts the generated project with docker-compose 1.29, as
// `compile --load` prints it; changes are made to its second file before.
func composeUp(t *testing.T, s *scenario.Scenario, changes ...func(facts string) string) {
	t.Helper()
	_, err := exec.LookPath("docker-compose")
	testutil.Require(t, err == nil, "docker-compose 1.29 (Debian package docker-compose)")
	d := s.Expect(0, "compile", "--load")
	facts := filepath.Join(".workshop", s.WorkshopName(), "run", "compose.facts.yaml")
	for _, change := range changes {
		s.Write(facts, change(s.Read(facts)))
	}
	line := ""
	for l := range strings.Lines(d.Out) {
		if strings.Contains(l, "compose -p ") {
			line = strings.TrimSpace(l)
		}
	}
	if line == "" {
		t.Fatalf("compile --load prints no command:\n%s%s", d.Out, d.Err)
	}
	line = strings.Replace(line, "docker compose ", "docker-compose ", 1)
	run := func(verb string) {
		cmd := exec.Command("sh", "-c", strings.TrimSuffix(line, "up")+verb)
		cmd.Dir, cmd.Env = s.Dir, append(os.Environ(), s.Env...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", cmd.Args[2], err, out)
		}
	}
	t.Cleanup(func() { run("down -v -t 1") })
	run("up -d")
}

func TestPlainCompose_Boundary(t *testing.T) {
	scenario.OnlyDocker(t, plainCompose)
	s := scenario.New(t, "restricted", "the generated project, started by docker-compose 1.29, keeps the promises")
	composeUp(t, s)
	s.Eventually("the guard serves", func() bool {
		return s.Probe("worker", "http https://allowed.example.org/ ca=/ca.pem limit=1s")[0].Seen == "200"
	})
	s.Denied("worker",
		scenario.Denial{Probe: "connect 198.51.100.66:9000 -> ECONNREFUSED", Control: "open"},
		scenario.Denial{Probe: "udp 198.51.100.66:5000 -> EPERM|ECONNREFUSED", Control: "data"},
		scenario.Denial{Probe: "tcp 198.51.100.66:22 -> " + cutOff, Control: "data"},
		scenario.Denial{Probe: "dns 198.51.100.54 denied.example.org A -> NXDOMAIN", Control: testnet.Denied},
		scenario.Denial{Probe: "http https://denied.example.org/ ca=/ca.pem connect=198.51.100.11:443 -> " + cutOff, Control: "200"},
	)
	s.Internet.Reset()
	s.Sees("worker", "interfaces -> lo", "status CapEff -> "+zero, "status CapBnd -> "+zero, "status NoNewPrivs -> 1", "status Seccomp -> 2", "socket AF_VSOCK SOCK_STREAM -> EPERM|EACCES",
		"mount / -> ro", "status Name 1 -> workshop-init", "rules flush -> EPERM", "bind tcp 0.0.0.0:534 -> EACCES", "dns 198.51.100.54 denied.example.org A -> NXDOMAIN",
		"http https://allowed.example.org/ ca=/ca.pem connect=198.51.100.66:443 -> 200", "tcp ssh.example.org:22 -> data")
	silent(s, testnet.Evil)
	silent(s, testnet.DNS2)
	if l := s.Limits("worker"); l.Memory == 0 || l.Swap != 0 || l.CPUs == 0 || l.Pids == 0 {
		t.Errorf("limits: %+v", l)
	}
	if u := s.ProcStatus("worker", "Uid"); u == "" || strings.HasPrefix(u, "0") {
		t.Errorf("user %q", u)
	}
	if d := s.Expect(0, "ps"); !strings.Contains(d.Out+d.Err, "ompose") {
		t.Errorf("ps doesn't say who made the containers:\n%s%s", d.Out, d.Err)
	}
	s.FlushRules("room")
	for _, r := range s.Probe("worker", "connect 198.51.100.66:9000 limit=500ms", "udp 198.51.100.66:5000 limit=500ms") {
		if r.Seen == "open" || r.Seen == "data" {
			t.Errorf("after the flush: %s %v: %s", r.Probe, r.Args, r.Seen)
		}
	}
	silent(s, testnet.Evil)
}

func TestPlainCompose_Mounts(t *testing.T) {
	scenario.OnlyDocker(t, plainCompose)
	s := scenario.New(t, "mounts", "files, protection and users are the same under docker-compose")
	s.Write("out/.git/hooks/pre-commit", "#!/bin/sh\n")
	composeUp(t, s)
	s.Eventually("the worker runs", func() bool { return s.Containers()["worker"].State == "running" })
	s.Sees("worker", "read /workspace/in/file.txt -> ok", "write /workspace/in/new -> EROFS", `write /workspace/out/mine text=x -> ok`, "write /workspace/out/.git/hooks/pre-commit -> EROFS",
		"write /workspace/out/.claude/settings.json -> EROFS", "read /copy/dotenv -> ENOENT", "read /copy/file.txt -> ok", "fill /scratch/big 6M -> ENOSPC")
}

// TestPlainCompose_Down: down removes what plain Compose made, also from the files
// of an older version, which gave networks and volumes no label.
func TestPlainCompose_Down(t *testing.T) {
	scenario.OnlyDocker(t, plainCompose)
	older := func(facts string) string {
		const ours = "    labels:\n      dev.llmdo.workshop.directory: "
		services, rest, _ := strings.Cut(facts, "\nnetworks:\n")
		_, tools, _ := strings.Cut(rest, "  tools:\n")
		if !strings.Contains(rest, ours) {
			t.Errorf("no label in:\n%s", rest)
		}
		return services + "\nvolumes:\n  tools:\n" + tools
	}
	for name, changes := range map[string][]func(string) string{"now": nil, "older": {older}} {
		t.Run(name, func(t *testing.T) {
			s := scenario.New(t, "restricted", "down removes all that docker-compose 1.29 made of the generated project")
			composeUp(t, s, changes...)
			s.Expect(0, "down")
			if left := s.Leftovers(); len(left) > 0 {
				t.Errorf("down left %v", left)
			}
		})
	}
}

// TestB60_OthersOfTheName: a docker-compose.yml beside workshop.yaml, of the same
// project name, has containers, a network and a volume that are nobody's to remove.
func TestB60_OthersOfTheName(t *testing.T) {
	scenario.OnlyDocker(t, "what Compose's label of a project tells")
	s := scenario.New(t, "none", "up and down remove nothing that only carries the project's name")
	_, err := exec.LookPath("docker-compose")
	testutil.Require(t, err == nil, "docker-compose 1.29 (Debian package docker-compose)")
	s.Expect(0, "compile", "--load")
	_, image, _ := strings.Cut(s.Read(filepath.Join(".workshop", s.WorkshopName(), "run", "facts.env")), "WORKSHOP_INIT_IMAGE=")
	s.Write("docker-compose.yml", `version: "3.7"
services:
  db:
    image: "`+strings.TrimSpace(image)+`"
    command: [probe, "serve 127.0.0.1:1"]
    volumes: ["pgdata:/data"]
volumes: {pgdata: {}}
`)
	run := func(args ...string) {
		t.Helper()
		cmd := exec.Command("docker-compose", append([]string{"-p", s.Project}, args...)...)
		cmd.Dir, cmd.Env = s.Dir, append(os.Environ(), s.Env...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	s.Cleanup(func() { run("down", "-v", "-t", "1") })
	theirs := 3
	check := func(verb string) {
		t.Helper()
		if left := s.Leftovers(); len(left) != theirs {
			t.Errorf("after %s there is %v", verb, left)
		}
	}
	run("up", "-d")
	for _, verb := range []string{"up", "down", "restart", "ps"} {
		if d := s.Expect(4, verb); !strings.Contains(d.Err, "is not a workshop") || !strings.Contains(d.Err, "-p ") {
			t.Errorf("%s: %s", verb, d.Err)
		}
		check(verb)
	}
	run("rm", "-s", "-f")
	theirs = 2 // a volume and a network are enough
	for _, verb := range []string{"up", "down"} {
		s.Expect(4, verb)
		check(verb)
	}
	run("down", "-v")
	s.Up()
	run("up", "-d")
	theirs = 3
	if d := s.Expect(0, "down"); !strings.Contains(d.Err, "pgdata stays") {
		t.Errorf("down doesn't name what stays: %s", d.Err)
	}
	check("down beside")
}

// TestWithoutLoadComposeRefuses: the first file alone must not start.
func TestWithoutLoadComposeRefuses(t *testing.T) {
	scenario.OnlyDocker(t, plainCompose)
	s := scenario.New(t, "restricted", "without what compile --load prepares, plain Compose stops with what to do")
	_, err := exec.LookPath("docker-compose")
	testutil.Require(t, err == nil, "docker-compose 1.29 (Debian package docker-compose)")
	s.Expect(0, "compile")
	cmd := exec.Command("docker-compose", "-p", s.Project, "-f", "compose.yaml", "up", "-d")
	cmd.Dir = filepath.Join(s.Dir, ".workshop", s.WorkshopName())
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "compile --load") {
		t.Errorf("%v\n%s", err, out)
	}
}
