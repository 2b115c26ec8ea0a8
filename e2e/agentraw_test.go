//go:build linux

package e2e

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha512"
	"encoding/binary"
	"encoding/hex"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/llmdo/workshop/e2e/scenario"
)

// The messages of draft-miller-ssh-agent that are sent and answered here.
const (
	agentFailed, agentDone = "05", "06"
	agentBind              = "session-bind@openssh.com"
)

// framed is a message with its length, in hex.
func framed(m []byte) string {
	return hex.EncodeToString(append(binary.BigEndian.AppendUint32(nil, uint32(len(m))), m...))
}

// hostSession is a session's beginning: signed by a host, as one of some other's.
func hostSession(t *testing.T, as, by ssh.Signer, forwarding bool) string {
	t.Helper()
	sig, err := by.Sign(rand.Reader, []byte("a session"))
	if err != nil {
		t.Fatal(err)
	}
	return framed(ssh.Marshal(struct {
		Type                   uint8
		Name                   string
		HostKey, ID, Signature []byte
		Forwarding             bool
	}{27, agentBind, as.PublicKey().Marshal(), []byte("a session"), ssh.Marshal(sig), forwarding}))
}

// signing asks for a signature.
func signing(key, data []byte) string {
	return framed(ssh.Marshal(struct {
		Type      uint8
		Key, Data []byte
		Flags     uint32
	}{13, key, data, 0}))
}

// login is what is signed to log in at the session.
func login(key []byte) []byte {
	return ssh.Marshal(struct {
		ID                    []byte
		Type                  uint8
		User, Service, Method string
		Signed                bool
		Algorithm             string
		Key                   []byte
	}{[]byte("a session"), 50, "git", "ssh-connection", "publickey", true, ssh.KeyAlgoED25519, key})
}

// commit is what is signed of a message for a namespace.
func commit(namespace string) []byte {
	sum := sha512.Sum512([]byte("tree"))
	return append([]byte("SSHSIG"), ssh.Marshal(struct{ Namespace, Reserved, Hash, Sum string }{namespace, "", "sha512", string(sum[:])})...)
}

func newSigner(t *testing.T) (ed25519.PrivateKey, ssh.Signer) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return private, signer
}

func publicKey(t *testing.T, key string) ssh.PublicKey {
	t.Helper()
	public, _, _, _, err := ssh.ParseAuthorizedKey([]byte(readFile(t, key+".pub")))
	if err != nil {
		t.Fatal(err)
	}
	return public
}

// B32, B33: a program in a worker that speaks the ssh-agent's protocol itself has what the
// worker's lines have, and nothing else of it reaches the user's agent. Nowhere that it could
// look is the private key (attack 46).
func TestB33_AgentProtocol(t *testing.T) {
	s := scenario.New(t, "restricted", "whatever bytes a worker sends to the user's ssh-agent, the agent gets only what is signed by the worker's lines, and the worker never the key")
	addIntruder(s)
	program, _ := intruder(s)
	edit(s, "- ./ca.pem:/ca.pem", "- ./ca.pem:/ca.pem\n      - ./intruder:"+program)
	name, dir := s.Project, s.TempDir()
	key, fingerprint, agent := userAgent(s)
	s.Env = append(s.Env, "SSH_AUTH_SOCK="+agent)
	otherKey := filepath.Join(filepath.Dir(key), "other")
	newKey(s, otherKey, agent)
	user, other := publicKey(t, key), publicKey(t, otherKey)
	_, host := newSigner(t)
	evilPrivate, evil := newSigner(t)
	known := userFile(t, dir, "known_hosts", "[code.example.org]:2022 "+string(ssh.MarshalAuthorizedKey(host.PublicKey())))
	file := userFile(t, dir, "credentials.yaml", name+": {ssh_agent: \""+fingerprint+"\", hosts: [\"code.example.org:2022\"], known_hosts: "+known+"}\n")
	edit(s, "        - ssh.example.org:22\n", "        - code.example.org:2022\n")
	edit(s, "      dns: [198.51.100.53]\n", "      dns: [198.51.100.53]\n      agents:\n        - {ssh: "+name+", hosts: [\"code.example.org:2022\"]}\n        - {sign: "+name+", namespaces: [git]}\n")
	s.Up("--accept-credentials", digestOf(s, "--credentials", file), "--credentials", file)
	broker := brokerOf(s, name)

	// say sends messages over one connection, and returns the answers.
	say := func(messages ...string) []string {
		t.Helper()
		r := s.ProbeBy("worker", program, "messages /run/workshop/agent "+strings.Join(messages, " "))[0]
		return strings.Split(r.Seen, ",")
	}
	is := func(want string) func(string) bool { return func(got string) bool { return got == want } }
	signedBy := func(data []byte) func(string) bool {
		return func(got string) bool {
			var a struct {
				Type      uint8
				Signature []byte
			}
			var sig ssh.Signature
			b, _ := hex.DecodeString(got)
			return ssh.Unmarshal(b, &a) == nil && a.Type == 14 && ssh.Unmarshal(a.Signature, &sig) == nil && user.Verify(data, &sig) == nil
		}
	}
	list := framed([]byte{11})
	only := ssh.Marshal(struct {
		Type  uint8
		Count uint32
		Key   []byte
		Name  string
	}{12, 1, user.Marshal(), name})
	added := ssh.Marshal(struct {
		Kind                     string
		Public, Private, Comment []byte
	}{ssh.KeyAlgoED25519, evil.PublicKey().Marshal()[19:], evilPrivate, []byte("x")})
	bytesOf := func(b ...byte) string { return framed(b) }
	extension := func(name string) string {
		return framed(ssh.Marshal(struct {
			Type uint8
			Name string
		}{27, name}))
	}
	session := hostSession(t, host, host, false)
	at := user.Marshal()
	for _, tt := range []struct {
		what     string
		messages []string
		want     []string // "": a signature
		reach    []string // types of messages that reach the user's agent
	}{
		{"a log-in", []string{list, session, signing(at, login(at)), list}, []string{hex.EncodeToString(only), agentDone, "", hex.EncodeToString(only)}, []string{"27", "13"}},
		{"a commit", []string{signing(at, commit("git"))}, []string{""}, []string{"13"}},

		{"adding a key", []string{framed(append([]byte{17}, added...)), framed(append(append([]byte{25}, added...), 1, 0, 0, 0, 9)), bytesOf(20), bytesOf(26)}, []string{agentFailed, agentFailed, agentFailed, agentFailed}, nil},
		{"removing keys", []string{framed(ssh.Marshal(struct {
			Type uint8
			Key  []byte
		}{18, at})), bytesOf(19), bytesOf(9), bytesOf(21)}, []string{agentFailed, agentFailed, agentFailed, agentFailed}, nil},
		{"locking", []string{bytesOf(22, 0, 0, 0, 1, 'x'), bytesOf(23, 0, 0, 0, 1, 'x')}, []string{agentFailed, agentFailed}, nil},
		{"extensions", []string{extension("query"), extension("restrict-destination-v00@openssh.com"), extension(agentBind), bytesOf(27)}, []string{agentFailed, agentFailed, agentFailed, agentFailed}, nil},
		{"a log-in without a session", []string{signing(at, login(at))}, []string{agentFailed}, nil},
		{"a session with a host that isn't known", []string{hostSession(t, evil, evil, false), signing(at, login(at))}, []string{agentFailed, agentFailed}, nil},
		{"a session that another host signed", []string{hostSession(t, host, evil, false), signing(at, login(at))}, []string{agentFailed, agentFailed}, nil},
		{"a forwarded session", []string{hostSession(t, host, host, true), signing(at, login(at)), signing(at, commit("git")), list}, []string{agentFailed, agentFailed, agentFailed, agentFailed}, nil},
		{"another of the user's keys", []string{signing(other.Marshal(), commit("git"))}, []string{agentFailed}, nil},
		{"another of the user's keys, at the session", []string{session, signing(other.Marshal(), login(other.Marshal())), signing(other.Marshal(), login(at))}, []string{agentDone, agentFailed, agentFailed}, []string{"27"}},
		{"raw data", []string{session, signing(at, []byte("data")), signing(at, nil), signing(at, login(other.Marshal()))}, []string{agentDone, agentFailed, agentFailed, agentFailed}, []string{"27"}},
		{"another namespace", []string{signing(at, commit("file")), signing(at, commit("")), signing(at, append(commit("git"), 0))}, []string{agentFailed, agentFailed, agentFailed}, nil},
		{"version 1 and unknown types", []string{bytesOf(1), bytesOf(3), bytesOf(0), bytesOf(255)}, []string{agentFailed, agentFailed, agentFailed, agentFailed}, nil},
		{"a message that is too long", []string{"00040001" + "0b"}, []string{"closed"}, nil},
		{"an endless message", []string{"ffffffff" + strings.Repeat("0d", 4096)}, []string{"closed"}, nil},
		{"an empty message", []string{"00000000"}, []string{"closed"}, nil},
		{"a message that ends early", []string{signing(at, commit("git"))[:80] + "."}, []string{"closed"}, nil},
		{"a length that ends early", []string{"0000."}, []string{"closed"}, nil},
	} {
		t.Run(tt.what, func(t *testing.T) {
			before := reached(t, agent)
			got := say(tt.messages...)
			wrong := len(got) != len(tt.want)
			for i := 0; !wrong && i < len(got); i++ {
				check := is(tt.want[i])
				if tt.want[i] == "" {
					data := login(at)
					if tt.what == "a commit" {
						data = commit("git")
					}
					check = signedBy(data)
				}
				wrong = !check(got[i])
			}
			if wrong {
				t.Errorf("answered %q, want %q", got, tt.want)
			}
			if came := reached(t, agent)[len(before):]; !slices.Equal(came, tt.reach) {
				t.Errorf("the user's agent got messages of the types %q, want %q", came, tt.reach)
			}
		})
	}

	out, err := s.Program(t.Context(), "/usr/bin/ssh-add", "-L").CombinedOutput()
	publicText, otherText := readFile(t, key+".pub"), readFile(t, otherKey+".pub")
	if want := publicText + otherText; err != nil || string(out) != want {
		t.Errorf("the user's agent has\n%s%v, want\n%s", out, err, want)
	}
	if now := brokerOf(s, name); now != broker {
		t.Errorf("the broker is process %d, it was %d", now, broker)
	}

	// The same search finds the public key, so it would find the private one.
	secret := keyForms(s, key)
	public, beside := len(secret), false
	for _, f := range search(s, append(secret, []byte(strings.Fields(publicText)[1]))) {
		if f.form != public {
			t.Errorf("the private key is in %s", f.where)
		}
		beside = beside || f.form == public && strings.HasSuffix(f.where, "/run/workshop/signing.pub")
	}
	if !beside {
		t.Error("the public key is not found beside the socket")
	}
}

// messageType is what ssh-agent -d says of each message.
var messageType = regexp.MustCompile(`process_message: socket \d+ \(fd=\d+\) type (\d+)`)

// reached are the types of all messages that an agent of userAgent got, but for those that
// list its keys, as the broker does.
func reached(t *testing.T, socket string) (types []string) {
	t.Helper()
	for _, m := range messageType.FindAllStringSubmatch(readFile(t, socket+".log"), -1) {
		if m[1] != "11" {
			types = append(types, m[1])
		}
	}
	return types
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
