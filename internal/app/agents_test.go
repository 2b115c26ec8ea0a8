package app

import (
	"crypto/ed25519"
	"crypto/rand"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/broker"
	"github.com/llmdo/workshop/internal/credential"
	"github.com/llmdo/workshop/internal/sshagent"
	"github.com/llmdo/workshop/internal/trust"
)

// newAgent is an ssh-agent with a key.
func newAgent(t *testing.T) (socket string, public ssh.PublicKey) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("it has no agent at a unix socket")
	}
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	ring := agent.NewKeyring()
	if err := ring.Add(agent.AddedKey{PrivateKey: private}); err != nil {
		t.Fatal(err)
	}
	socket = filepath.Join(t.TempDir(), "a")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _ = agent.ServeAgent(ring, c); c.Close() }()
		}
	}()
	return socket, signer.PublicKey()
}

// TestAgentKeys: a worker has a key for what its line, the user's file and the user's word
// all have, at hosts that known_hosts has.
func TestAgentKeys(t *testing.T) {
	_, key := newAgent(t)
	home := t.TempDir()
	env := &Env{Home: home, Lookup: func(name string) (string, bool) {
		return filepath.Join(home, "state"), name == "XDG_STATE_HOME"
	}}
	file, known := filepath.Join(home, "credentials.yaml"), filepath.Join(home, "known_hosts")
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fingerprint := ssh.FingerprintSHA256(key)
	entry := "work: {ssh_agent: \"" + fingerprint + "\", hosts: [git.example, \"git.example:2222\", unknown.example], known_hosts: " + known + "}\n"
	write(known, "git.example "+string(ssh.MarshalAuthorizedKey(key)))
	const agreed = "w ssh git.example:22 by work"
	if err := trust.Credentials(env.StateDir()).Add("/project", trust.Credential{Name: "work", Line: agreed}); err != nil {
		t.Fatal(err)
	}
	at := func(hosts ...broker.AgentHost) broker.Agent {
		return broker.Agent{Worker: "w", Directory: "/door", Credential: "work", Key: key.Marshal(), Hosts: hosts, Consent: agreed}
	}
	git := broker.AgentHost{Name: "git.example", Port: 22}
	for _, tt := range []struct {
		name, file string
		change     func(*broker.Use)
		want       int // hosts; -1: no key
	}{
		{"as agreed", entry, func(*broker.Use) {}, 1},
		{"another line", entry, func(u *broker.Use) { u.Agents[0].Consent = "w ssh git.example:2222 by work" }, -1},
		{"another project", entry, func(u *broker.Use) { u.Directory = "/other" }, -1},
		{"another key", entry, func(u *broker.Use) { u.Agents[0].Key = []byte("other") }, -1},
		{"no directory", entry, func(u *broker.Use) { u.Agents[0].Directory = "" }, -1},
		{"a host of a port that isn't known", entry, func(u *broker.Use) { u.Agents[0].Hosts[0].Port = 2222 }, 0},
		{"a host that isn't known", entry, func(u *broker.Use) { u.Agents[0].Hosts[0].Name = "unknown.example" }, 0},
		{"a host beyond the file", strings.Replace(entry, "[git.example,", "[", 1), func(*broker.Use) {}, 0},
		{"no such credential", "", func(*broker.Use) {}, -1},
		{"a value", "work: {env: WORK, hosts: [\"git.example:22\"]}\n", func(*broker.Use) {}, -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			write(file, tt.file)
			u := broker.Use{Directory: "/project", File: file, Agents: []broker.Agent{at(git)}}
			tt.change(&u)
			got, err := env.agentKeys(u)
			n := -1
			if keys := got["/door"]; len(keys) == 1 {
				n = len(keys[0].Hosts)
			}
			if err != nil || n != tt.want {
				t.Errorf("got %d hosts, %v, want %d", n, err, tt.want)
			}
		})
	}
	write(file, "work: [\n")
	if got, err := env.agentKeys(broker.Use{File: file, Agents: []broker.Agent{at(git)}}); err == nil || len(got) > 0 {
		t.Errorf("a file with an error: %v, %v", got, err)
	}
	// No request has a key as its value.
	write(file, "work: {ssh_agent: \""+fingerprint+"\", hosts: [\"git.example:443\"]}\n")
	all, _, _ := credential.Read(file, home)
	line := broker.Line{Consents: []string{agreed}}
	line.Host, line.Port, line.Credential = "git.example", 443, "work"
	if got, err := env.allowed(broker.Use{Directory: "/project", File: file, Lines: []broker.Line{line}}); err != nil || len(got) > 0 || len(all) != 1 {
		t.Errorf("a key is leased: %v, %v", got, err)
	}
}

// TestKnownHostsOfAWorker: a worker that can write known_hosts would choose which hosts the
// key logs in at.
func TestKnownHostsOfAWorker(t *testing.T) {
	src := t.TempDir()
	ready := &Project{Compiled: &compose.Compiled{Facts: &compose.Facts{Sources: map[string]compose.SourceFacts{"./src": {Real: RealPath(src)}}}}}
	env := &Env{Home: t.TempDir(), Lookup: func(string) (string, bool) { return "", false }}
	all := []credential.Credential{{Name: "work", Agent: "SHA256:x", KnownHosts: filepath.Join(src, "known_hosts")}}
	if err := own(env, ready, all, nil); err == nil || CodeOf(err) != CodeRefused || !strings.Contains(err.Error(), "known_hosts` of the credential work") {
		t.Error(err)
	}
	all[0].KnownHosts = filepath.Join(env.Home, "known_hosts")
	if err := own(env, ready, all, nil); err != nil {
		t.Error(err)
	}
}

// TestCredentialOfAgent: `credential test` finds a key in the user's agent.
func TestCredentialOfAgent(t *testing.T) {
	socket, key := newAgent(t)
	home := t.TempDir()
	variables := map[string]string{agentVariable: socket}
	env := &Env{Home: home, Dir: t.TempDir(), Lookup: func(name string) (string, bool) { v, ok := variables[name]; return v, ok }}
	file := env.CredentialsFile()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	known := filepath.Join(home, "known")
	write := func(fingerprint, hosts string) {
		t.Helper()
		text := "work: {ssh_agent: \"" + fingerprint + "\", hosts: [git.example], known_hosts: " + known + "}\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(known, []byte(hosts), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fails := func(want string) {
		t.Helper()
		if _, err := env.TestCredential(t.Context(), "work"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	host := "git.example " + string(ssh.MarshalAuthorizedKey(key))
	write(ssh.FingerprintSHA256(key), host)
	got, err := env.TestCredential(t.Context(), "work")
	if err != nil || !got.IsKey || !slices.Equal(got.Hosts, []string{"git.example:22"}) || len(got.Headers) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	write(ssh.FingerprintSHA256(key), "")
	fails("has no key of git.example:22")
	write(sshagent.Fingerprint([]byte("another")), host)
	fails("doesn't have it; it has " + ssh.FingerprintSHA256(key))
	variables[agentVariable] = filepath.Join(home, "none")
	fails("doesn't answer")
	delete(variables, agentVariable)
	fails("SSH_AUTH_SOCK isn't set")
}
