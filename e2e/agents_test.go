//go:build linux

package e2e

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/e2e/scenario"
	"github.com/llmdo/workshop/internal/dev/testnet"
)

// sshHost serves a name of the test internet by sshd, at a port of its own: for root, by one
// key. It returns the line of known_hosts.
func sshHost(s *scenario.Scenario, name, addr, port, authorized string) string {
	s.Helper()
	dir := s.TB.TempDir()
	key := filepath.Join(dir, "host")
	command(s.TB, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key)
	config := filepath.Join(dir, "sshd_config")
	text := "HostKey " + key + "\nAuthorizedKeysFile " + authorized + "\nPermitRootLogin prohibit-password\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nUsePAM no\nStrictModes no\nPidFile none\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		s.Fatal(err)
	}
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil { // of its separation of privileges
		s.Fatal(err)
	}
	var l net.Listener
	if err := s.Internet.NS().Do(func() (err error) { l, err = net.Listen("tcp", net.JoinHostPort(addr, port)); return err }); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { l.Close() })
	s.Internet.Answer(name, testnet.A(addr))
	sshd, err := exec.LookPath("sshd")
	if err != nil {
		sshd = "/usr/sbin/sshd"
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			f, err := c.(*net.TCPConn).File()
			c.Close()
			if err != nil {
				continue
			}
			cmd := exec.CommandContext(s.TB.Context(), sshd, "-i", "-f", config)
			cmd.Stdin, cmd.Stdout = f, f
			if err := s.Internet.NS().Do(cmd.Start); err == nil { // it forwards to other hosts from there
				go func() { _ = cmd.Wait() }()
			}
			f.Close()
		}
	}()
	public, err := os.ReadFile(key + ".pub")
	if err != nil {
		s.Fatal(err)
	}
	return "[" + name + "]:" + port + " " + string(public)
}

// userAgent is an ssh-agent of whoever runs our programs, with one key, and its file. It
// writes each message that it gets into agent.log beside them.
func userAgent(s *scenario.Scenario) (key, fingerprint, socket string) {
	s.Helper()
	dir := s.TempDir()
	key, socket = filepath.Join(dir, "key"), filepath.Join(dir, "agent")
	log, err := os.Create(socket + ".log")
	if err != nil {
		s.Fatal(err)
	}
	defer log.Close()
	ctx, cancel := context.WithCancel(s.TB.Context())
	scenario.Own(s.TB, dir)
	process := s.Program(ctx, "/usr/bin/ssh-agent", "-d", "-a", socket)
	process.Stdout, process.Stderr = log, log
	if err := process.Start(); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { cancel(); _ = process.Wait() })
	s.Eventually("the agent listens", func() bool { _, err := os.Lstat(socket); return err == nil })
	return key, newKey(s, key, socket), socket
}

// newKey makes a key for an agent, and returns its fingerprint.
func newKey(s *scenario.Scenario, key, socket string) (fingerprint string) {
	s.Helper()
	command(s.TB, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "of the user", "-f", key)
	scenario.Own(s.TB, filepath.Dir(key))
	add := s.Program(s.TB.Context(), "/usr/bin/ssh-add", "-q", key)
	add.Env = append(add.Env, "SSH_AUTH_SOCK="+socket)
	if out, err := add.CombinedOutput(); err != nil {
		s.Fatalf("%v\n%s", err, out)
	}
	return strings.Fields(command(s.TB, "ssh-keygen", "-l", "-f", key))[1]
}

func command(t testing.TB, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// jumpConfig is commands that write a configuration of ssh, in which a jump finds the keys of
// hosts, too. The host in the middle knows others by their addresses alone.
const jumpConfig = `cd /tmp && cat >jump <<END
Host code
  HostName code.example.org
Host inner
  HostName 198.51.100.43
  HostKeyAlias [inner.example.org]:2022
Host other
  HostName other.example.org
Host beyond
  HostName 198.51.100.42
Host other beyond
  StrictHostKeyChecking no
  UserKnownHostsFile /tmp/k
Host *
  User root
  Port 2022
  BatchMode yes
  StrictHostKeyChecking yes
  UserKnownHostsFile /run/workshop/known_hosts
END
`

// B32, B33: the user's ssh-agent signs for a worker what its lines have, and nothing else
// (attack 46).
func TestB33_Agents(t *testing.T) {
	s := scenario.New(t, "restricted", "git clones, pushes and signs by the user's ssh-agent, for one host and one namespace; the agent does nothing else for a worker")
	name := s.Project
	dir := s.TempDir()
	key, fingerprint, agent := userAgent(s)
	s.Env = append(s.Env, "SSH_AUTH_SOCK="+agent)
	public, err := os.ReadFile(key + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	known := sshHost(s, "code.example.org", "198.51.100.41", "2022", key+".pub")
	sshHost(s, "other.example.org", "198.51.100.42", "2022", key+".pub") // nobody knows its key
	known += sshHost(s, "inner.example.org", "198.51.100.43", "2022", key+".pub")
	knownHosts := userFile(t, dir, "known_hosts", known)
	hosts := "[\"code.example.org:2022\", \"inner.example.org:2022\"]"
	userFile(t, dir, "credentials.yaml", name+": {ssh_agent: \""+fingerprint+"\", hosts: "+hosts+", known_hosts: "+knownHosts+"}\n")
	repository := filepath.Join(t.TempDir(), "app.git")
	command(t, "git", "init", "-q", "--bare", repository)
	scenario.Own(t, dir)

	edit(s, "        - ssh.example.org:22\n", "        - code.example.org:2022\n        - other.example.org:2022\n")
	edit(s, "      dns: [198.51.100.53]\n", "      dns: [198.51.100.53]\n      agents:\n        - {ssh: "+name+", hosts: "+hosts+"}\n        - {sign: "+name+", namespaces: [git]}\n")
	flags := []string{"--credentials", filepath.Join(dir, "credentials.yaml")}
	says(s, s.Expect(4, append([]string{"up"}, flags...)...), "nobody agreed", "code.example.org:2022")
	s.Up(append([]string{"--accept-credentials", digestOf(s, flags...)}, flags...)...)

	sh := func(code int, script string, want ...string) {
		t.Helper()
		d := s.Run("exec", "worker", "--", "sh", "-c", script)
		for _, w := range want {
			if !strings.Contains(d.Out+d.Err, w) {
				t.Errorf("%s\nlacks %q", script, w)
			}
		}
		if (d.Code == 0) != (code == 0) {
			t.Errorf("exit code %d of\n%s\n%s%s", d.Code, script, d.Out, d.Err)
		}
	}
	const me = "-c user.name=Me -c user.email=me@example.org "
	sh(0, "cd /tmp && git clone -q ssh://root@code.example.org:2022"+repository+" r && cd r && git "+me+"commit -q --allow-empty -S -m one && git push -q origin HEAD:refs/heads/agent/x")
	signers := filepath.Join(t.TempDir(), "signers")
	if err := os.WriteFile(signers, []byte("me@example.org "+string(public)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := command(t, "git", "-C", repository, "-c", "safe.directory=*", "-c", "gpg.ssh.allowedSignersFile="+signers, "verify-commit", "agent/x"); !strings.Contains(out, "Good \"git\" signature") {
		t.Errorf("the commit verifies as %q", out)
	}
	sh(0, "ssh-add -l", fingerprint)
	sh(0, "cd /tmp && echo x > m && ssh-keygen -Y sign -n git -f $(dirname $SSH_AUTH_SOCK)/signing.pub m")
	sh(0, jumpConfig+"ssh -F jump -J code inner echo $((6*7))", "42")
	sh(1, jumpConfig+"ssh -F jump -J other inner true", "root@other.example.org: Permission denied (publickey)")
	sh(1, jumpConfig+"ssh -F jump -J code beyond true", "root@198.51.100.42: Permission denied (publickey)")
	for what, script := range map[string]string{
		"another host":        "GIT_SSH_COMMAND= ssh -o StrictHostKeyChecking=no -o UserKnownHostsFile=/tmp/k -o BatchMode=yes -p 2022 root@other.example.org true",
		"another namespace":   "cd /tmp && echo y > n && ssh-keygen -Y sign -n file -f $(dirname $SSH_AUTH_SOCK)/signing.pub n",
		"forwarding":          "ssh -A -o UserKnownHostsFile=$(dirname $SSH_AUTH_SOCK)/known_hosts -o BatchMode=yes -p 2022 root@code.example.org ssh-add -l",
		"removing the key":    "ssh-add -D",
		"adding a key":        "ssh-keygen -q -t ed25519 -N '' -f /tmp/own && ssh-add /tmp/own",
		"locking":             "printf 'a\\na\\n' | SSH_ASKPASS=/bin/echo SSH_ASKPASS_REQUIRE=force ssh-add -x </dev/null",
		"changing the socket": "rm -f $SSH_AUTH_SOCK",
	} {
		t.Run(what, func(t *testing.T) {
			if d := s.Run("exec", "worker", "--", "sh", "-c", script); d.Code == 0 {
				t.Errorf("it is done:\n%s%s", d.Out, d.Err)
			}
		})
	}
	if out, err := s.Program(t.Context(), "/usr/bin/ssh-add", "-l").CombinedOutput(); err != nil || !strings.Contains(string(out), fingerprint) {
		t.Errorf("the user's agent has %s, %v", out, err)
	}
	says(s, s.Expect(0, "ps"), "worker: the ssh-agent has the key "+name+"\n")
	began := time.Now()
	s.Expect(0, "credential", "revoke", name)
	sh(1, "ssh-add -l")
	if time.Since(began) > 5*time.Second {
		t.Errorf("revoked after %v", time.Since(began))
	}
	says(s, s.Expect(0, "ps"), "worker: the ssh-agent doesn't have the key "+name+": it was revoked")
	s.Expect(0, "down")
}
