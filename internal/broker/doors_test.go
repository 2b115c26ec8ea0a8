package broker

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha512"
	"errors"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/sshagent"
)

// TestDoors: a worker's programs have the user's key sign what its lines have, until the
// lines are gone; then open connections end, and nothing is left.
func TestDoors(t *testing.T) {
	_, private, _ := ed25519.GenerateKey(rand.Reader)
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	ring := agent.NewKeyring()
	if err := ring.Add(agent.AddedKey{PrivateKey: private, Comment: "secret comment"}); err != nil {
		t.Fatal(err)
	}
	var dialled atomic.Int32
	dir, other := t.TempDir(), t.TempDir()
	key := sshagent.Key{Name: "work-key", Blob: signer.PublicKey().Marshal(), Namespaces: []string{"git"},
		Hosts: []sshagent.Host{{Name: "git.example", Port: 22, Keys: [][]byte{signer.PublicKey().Marshal()}}}}
	var allowed atomic.Pointer[map[string][]sshagent.Key]
	allowed.Store(&map[string][]sshagent.Key{dir: {key}, other: {{Name: "other", Blob: []byte("x"), Namespaces: []string{"file"}}}})
	socket, _, _, _ := serve(t, &Server{
		Allowed: func() (Allowed, error) { return nil, nil },
		Agents:  func() (map[string][]sshagent.Key, error) { return *allowed.Load(), nil },
		Dial: func() (net.Conn, error) {
			dialled.Add(1)
			here, there := net.Pipe()
			go func() { _ = agent.ServeAgent(ring, there); there.Close() }()
			return here, nil
		},
	})
	a, err := Call(t.Context(), socket, Request{Op: OpLook})
	if err != nil || len(a.Agents) != 2 {
		t.Fatal(a, err)
	}
	connect := func() net.Conn {
		t.Helper()
		c, err := net.Dial("unix", filepath.Join(dir, compose.AgentSocket))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	client := agent.NewClient(connect())
	list, err := client.List()
	if err != nil || len(list) != 1 || list[0].Comment != "work-key" {
		t.Errorf("%v %v", list, err)
	}
	sum := sha512.Sum512([]byte("tree"))
	data := append([]byte("SSHSIG"), ssh.Marshal(struct{ Namespace, Reserved, Hash, Sum string }{"git", "", "sha512", string(sum[:])})...)
	if sig, err := client.Sign(signer.PublicKey(), data); err != nil || signer.PublicKey().Verify(data, sig) != nil {
		t.Errorf("%v %v", sig, err)
	}
	if _, err := client.Sign(signer.PublicKey(), []byte("raw")); err == nil {
		t.Error("raw data was signed")
	}
	for name, want := range map[string]string{
		compose.KnownHosts: "git.example " + string(ssh.MarshalAuthorizedKey(signer.PublicKey())),
		compose.SigningKey: string(ssh.MarshalAuthorizedKey(signer.PublicKey())),
	} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); string(got) != want {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, want)
		}
	}
	// One connection too many is refused; a worker can't hold all of the process.
	var more []net.Conn
	for range maxAgentConns {
		more = append(more, connect())
	}
	if _, err := agent.NewClient(more[len(more)-1]).List(); err == nil {
		t.Error("a connection too many is served")
	}
	allowed.Store(&map[string][]sshagent.Key{})
	if a, err = Call(t.Context(), socket, Request{Op: OpLook}); err != nil || len(a.Agents) > 0 {
		t.Error(a, err)
	}
	if _, err := client.List(); err == nil {
		t.Error("a connection goes on after its line is gone")
	}
	if left, err := os.ReadDir(dir); len(left) > 0 || err != nil {
		t.Errorf("left: %v %v", left, err)
	}
	if n := dialled.Load(); n != 1 {
		t.Errorf("the user's agent was dialled %d times, want 1", n)
	}
}

// B60: a worker's requests cost the host's CPU and the user's agent, which its own limits don't
// have: so many are answered at once, and then a few in each second.
func TestDoorsArePaced(t *testing.T) {
	dir := t.TempDir()
	_, private, _ := ed25519.GenerateKey(rand.Reader)
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	socket, _, _, _ := serve(t, &Server{
		Allowed: func() (Allowed, error) { return nil, nil },
		Agents: func() (map[string][]sshagent.Key, error) {
			return map[string][]sshagent.Key{dir: {{Name: "k", Blob: signer.PublicKey().Marshal()}}}, nil
		},
	})
	if a, err := Call(t.Context(), socket, Request{Op: OpLook}); err != nil || len(a.Agents) != 1 {
		t.Fatal(a, err)
	}
	var n atomic.Int32
	for range 4 {
		c, err := net.Dial("unix", filepath.Join(dir, compose.AgentSocket))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		client := agent.NewClient(c)
		go func() {
			for {
				if _, err := client.List(); err != nil {
					return
				}
				n.Add(1)
			}
		}()
	}
	start := time.Now()
	waitFor(t, "the first are answered", func() bool { return n.Load() >= 50 })
	first := time.Since(start)
	time.Sleep(time.Second)
	if got, most := n.Load(), int32(agentBurst+time.Since(start)/agentEvery)+4; got > most || got < agentBurst/2 || first > time.Second {
		t.Errorf("%d requests were answered, want at most %d; the first after %v", got, most, first)
	}
}

// TestDoorsProblem: what can't be known is not offered.
func TestDoorsProblem(t *testing.T) {
	dir := t.TempDir()
	var failing atomic.Bool
	socket, _, _, _ := serve(t, &Server{
		Allowed: func() (Allowed, error) { return nil, nil },
		Agents: func() (map[string][]sshagent.Key, error) {
			if failing.Load() {
				return map[string][]sshagent.Key{dir: {{Name: "k", Blob: []byte("x")}}}, errors.New("can't be read")
			}
			return map[string][]sshagent.Key{dir: {{Name: "k", Blob: []byte("x")}}}, nil
		},
	})
	if a, err := Call(t.Context(), socket, Request{Op: OpLook}); err != nil || len(a.Agents) != 1 || !bytes.Equal(a.Agents[0].Key, []byte("x")) {
		t.Fatal(a, err)
	}
	failing.Store(true)
	if a, err := Call(t.Context(), socket, Request{Op: OpLook}); err != nil || len(a.Agents) != 0 {
		t.Error(a, err)
	}
}
