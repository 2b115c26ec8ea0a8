package sshagent

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

func newKey(t testing.TB) (ed25519.PrivateKey, ssh.Signer) {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return key, s
}

func newRSA(t testing.TB) (*rsa.PrivateKey, ssh.AlgorithmSigner) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	s, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return key, s.(ssh.AlgorithmSigner)
}

func blob(s ssh.Signer) []byte { return s.PublicKey().Marshal() }

var sid = []byte("0123456789abcdef0123456789abcdef")

func bindOf(t testing.TB, host, signs ssh.Signer, sid []byte, forwarding bool) []byte {
	t.Helper()
	sig, err := signs.Sign(rand.Reader, sid)
	if err != nil {
		t.Fatal(err)
	}
	return ssh.Marshal(bindRequest{msgExtension, extensionBind, blob(host), sid, ssh.Marshal(sig), forwarding})
}

func loginOf(key ssh.Signer, sid []byte) login {
	return login{sid, userauthRequest, "git", serviceSSH, methodKey, true, key.PublicKey().Type(), blob(key)}
}

func messageOf(namespace string) []byte {
	sum := sha512.Sum512([]byte("tree 1"))
	return append([]byte(signatureMagic), ssh.Marshal(message{namespace, "", "sha512", sum[:]})...)
}

func signOf(key ssh.Signer, data []byte, flags uint32) []byte {
	return ssh.Marshal(signRequest{msgSign, blob(key), data, flags})
}

// TestConn: the agent signs to log in at the hosts of a line, and messages for its
// namespaces. Everything else is refused (attack 46).
func TestConn(t *testing.T) {
	_, user := newKey(t)
	_, signer := newKey(t)
	_, other := newKey(t)
	_, host := newKey(t)
	_, second := newKey(t)
	_, evil := newKey(t)
	_, rsaUser := newRSA(t)
	_, rsaHost := newRSA(t)
	keys := []Key{
		{Name: "work", Blob: blob(user), Hosts: []Host{{"git.example", 22, [][]byte{blob(host), blob(rsaHost)}}}},
		{Name: "signing", Blob: blob(signer), Namespaces: []string{"git"}},
		{Name: "old", Blob: blob(rsaUser), Hosts: []Host{{"second.example", 22, [][]byte{blob(second)}}}, Namespaces: []string{"git"}},
	}
	bind := bindOf(t, host, host, sid, false)
	change := func(f func(*login)) []byte {
		l := loginOf(user, sid)
		f(&l)
		return signOf(user, ssh.Marshal(l), 0)
	}
	bound := func(hostKey ssh.Signer) []byte {
		l := loginOf(user, sid)
		return signOf(user, ssh.Marshal(boundLogin{l.SessionID, l.Message, l.User, l.Service, methodBoundKey, true, l.Algorithm, l.Key, blob(hostKey)}), 0)
	}
	plain := change(func(*login) {})
	extension := func(name string) []byte {
		return ssh.Marshal(struct {
			Type uint8
			Name string
		}{msgExtension, name})
	}
	sha1Bind := func() []byte {
		sig, err := rsaHost.SignWithAlgorithm(rand.Reader, sid, ssh.KeyAlgoRSA)
		if err != nil {
			t.Fatal(err)
		}
		return ssh.Marshal(bindRequest{msgExtension, extensionBind, blob(rsaHost), sid, ssh.Marshal(sig), false})
	}
	otherBind := func() []byte {
		var b bindRequest
		if !exactly(bind, &b) {
			t.Fatal("not a bind")
		}
		b.SessionID = []byte("another session")
		return ssh.Marshal(b)
	}
	sum := sha256.Sum256(nil)
	ofMessage := func(m message) []byte {
		return signOf(signer, append([]byte(signatureMagic), ssh.Marshal(m)...), 0)
	}
	rsaLogin := func(algorithm string) []byte {
		l := loginOf(rsaUser, sid)
		l.Algorithm = algorithm
		return ssh.Marshal(l)
	}
	for _, tt := range []struct {
		name    string
		first   [][]byte // of the same connection
		request []byte
		want    string // For; "-" is a bind
		refused string
	}{
		{"bind", nil, bind, "-", ""},
		{"log in", [][]byte{bind}, plain, `work: log in at git.example:22 as "git"`, ""},
		{"log in, bound to the host", [][]byte{bind}, bound(host), `work: log in at git.example:22 as "git"`, ""},
		{"log in again", [][]byte{bind, plain}, plain, `work: log in at git.example:22 as "git"`, ""},
		{"RSA with SHA-512", [][]byte{bindOf(t, second, second, sid, false)}, signOf(rsaUser, rsaLogin("rsa-sha2-512"), 4), `old: log in at second.example:22 as "git"`, ""},
		{"RSA with SHA-256", [][]byte{bindOf(t, second, second, sid, false)}, signOf(rsaUser, rsaLogin("rsa-sha2-256"), 2), `old: log in at second.example:22 as "git"`, ""},
		{"a commit", nil, signOf(signer, messageOf("git"), 0), "signing: a message for git", ""},
		{"a commit, SHA-256", nil, ofMessage(message{"git", "", "sha256", sum[:]}), "signing: a message for git", ""},
		{"a commit by RSA", nil, signOf(rsaUser, messageOf("git"), 4), "old: a message for git", ""},

		{"raw data", [][]byte{bind}, signOf(user, []byte("some data"), 0), "", "neither to log in"},
		{"no data", [][]byte{bind}, signOf(user, nil, 0), "", "neither to log in"},
		{"a foreign namespace", nil, signOf(signer, messageOf("file"), 0), "", `namespace "file"`},
		{"no namespace", nil, signOf(signer, messageOf(""), 0), "", `namespace ""`},
		{"a namespace that begins so", nil, signOf(signer, messageOf("git\x00"), 0), "", "namespace"},
		{"a message by the key for hosts", [][]byte{bind}, signOf(user, messageOf("git"), 0), "", "namespace"},
		{"a message of another hash", nil, ofMessage(message{"git", "", "sha1", sum[:20]}), "", "neither"},
		{"a message with a hash of another length", nil, ofMessage(message{"git", "", "sha512", sum[:]}), "", "neither"},
		{"a message with a reserved field", nil, ofMessage(message{"git", "x", "sha256", sum[:]}), "", "neither"},
		{"a message with more behind it", nil, signOf(signer, append(messageOf("git"), 0), 0), "", "neither"},
		{"a log-in by the key for messages", [][]byte{bind}, signOf(signer, ssh.Marshal(loginOf(signer, sid)), 0), "", "has no line for"},
		{"a key that isn't of a line", [][]byte{bind}, signOf(other, ssh.Marshal(loginOf(other, sid)), 0), "", "a key that no line has"},
		{"another key in what is signed", [][]byte{bind}, change(func(l *login) { l.Key = blob(other) }), "", "neither"},
		{"SHA-1 by flags", [][]byte{bindOf(t, second, second, sid, false)}, signOf(rsaUser, rsaLogin("ssh-rsa"), 0), "", "flags"},
		{"SHA-1 in what is signed", [][]byte{bindOf(t, second, second, sid, false)}, signOf(rsaUser, rsaLogin("ssh-rsa"), 4), "", "neither"},
		{"flags of another kind of key", nil, signOf(signer, messageOf("git"), 4), "", "flags"},
		{"unknown flags", nil, signOf(rsaUser, messageOf("git"), 12), "", "flags"},

		{"no session", nil, plain, "", "no session"},
		{"a session of another connection", nil, bound(host), "", "no session"},
		{"another session", [][]byte{bind}, change(func(l *login) { l.SessionID = []byte("another") }), "", "another session"},
		{"a longer session", [][]byte{bind}, change(func(l *login) { l.SessionID = append(slices.Clone(sid), 0) }), "", "another session"},
		{"another host than that of the session", [][]byte{bind}, bound(second), "", "another host"},
		{"a host of another key", [][]byte{bindOf(t, second, second, sid, false)}, plain, "", "has no line for"},
		{"not a log-in", [][]byte{bind}, change(func(l *login) { l.Message = 51 }), "", "neither"},
		{"another service", [][]byte{bind}, change(func(l *login) { l.Service = "ssh-userauth" }), "", "neither"},
		{"hostbased", [][]byte{bind}, change(func(l *login) { l.Method = "hostbased" }), "", "neither"},
		{"bound without the host", [][]byte{bind}, change(func(l *login) { l.Method = methodBoundKey }), "", "neither"},
		{"only asked for", [][]byte{bind}, change(func(l *login) { l.Signed = false }), "", "neither"},
		{"more behind it", [][]byte{bind}, signOf(user, append(ssh.Marshal(loginOf(user, sid)), 0), 0), "", "neither"},
		{"a request with more behind it", [][]byte{bind}, append(slices.Clone(plain), 0), "", "not valid"},

		{"a session of a host that isn't known", nil, bindOf(t, evil, evil, sid, false), "", "not in known_hosts"},
		{"a session that another host signed", nil, bindOf(t, host, evil, sid, false), "", "didn't sign"},
		{"a session that the host signed by SHA-1", nil, sha1Bind(), "", "SHA-1"},
		{"another session than the signed", nil, otherBind(), "", "didn't sign"},
		{"a forwarded session", nil, bindOf(t, host, host, sid, true), "", "forwarded"},
		{"after a forwarded session", [][]byte{bindOf(t, host, host, sid, true)}, plain, "", "forwarded"},
		{"a list after a forwarded session", [][]byte{bindOf(t, host, host, sid, true)}, []byte{msgListKeys}, "", "forwarded"},
		{"after a forged session", [][]byte{bindOf(t, host, evil, sid, false)}, plain, "", "no session"},
		{"a second session", [][]byte{bind}, bindOf(t, second, second, []byte("2"), false), "", "already"},
		{"the same session again", [][]byte{bind}, bind, "", "already"},
		{"after a second session, for the second", [][]byte{bind, bindOf(t, second, second, []byte("2"), false)}, signOf(rsaUser, rsaLogin("rsa-sha2-512"), 4), "", "no line for"},
		{"a session without an id", nil, bindOf(t, host, host, nil, false), "", "not valid"},
		{"a long id, as of a message", nil, bindOf(t, host, host, messageOf("git"), false), "", "not valid"},
		{"a session with more behind it", nil, append(slices.Clone(bind), 0), "", "not valid"},

		{"an empty message", nil, nil, "", "empty"},
		{"request identities with more behind it", nil, []byte{msgListKeys, 0}, "", "type 11"},
		{"identities of version 1", nil, []byte{1}, "", "type 1,"},
		{"add", nil, ssh.Marshal(struct {
			Type uint8
			Kind string
		}{17, "ssh-ed25519"}), "", "type 17"},
		{"add, constrained", nil, []byte{25}, "", "type 25"},
		{"remove", nil, append([]byte{18}, ssh.Marshal(struct{ B []byte }{blob(user)})...), "", "type 18"},
		{"remove all", nil, []byte{19}, "", "type 19"},
		{"add from a token", nil, []byte{20}, "", "type 20"},
		{"lock", nil, []byte{22, 0, 0, 0, 1, 'x'}, "", "type 22"},
		{"unlock", nil, []byte{23, 0, 0, 0, 1, 'x'}, "", "type 23"},
		{"the extension query", nil, extension("query"), "", "not known"},
		{"another extension", nil, extension("restrict-destination-v00@openssh.com"), "", "not known"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := &Conn{Keys: keys}
			for _, m := range tt.first {
				c.Request(m)
			}
			v := c.Request(tt.request)
			if tt.want == "" {
				if v.Refused == nil || !strings.Contains(v.Refused.Error(), tt.refused) || string(v.Answer) != string([]byte{msgFailure}) || v.Forward != nil {
					t.Errorf("got %+v, want a refusal with %q", v, tt.refused)
				}
				return
			}
			if v.Refused != nil || string(v.Forward) != string(tt.request) || tt.want != "-" && (v.For != tt.want || v.Answer != nil) {
				t.Errorf("got %+v, want %q", v, tt.want)
			}
		})
	}
}

// FuzzRequest: no requests crash it, and what reaches the user's agent is one of the two.
func FuzzRequest(f *testing.F) {
	_, user := newKey(f)
	_, host := newKey(f)
	f.Add(bindOf(f, host, host, sid, false), signOf(user, ssh.Marshal(loginOf(user, sid)), 0))
	f.Add([]byte{msgListKeys}, signOf(user, messageOf("git"), 0))
	f.Add([]byte{msgExtension, 0, 0, 0, 1, 'x'}, []byte{17})
	keys := []Key{{Name: "work", Blob: blob(user), Hosts: []Host{{"git.example", 22, [][]byte{blob(host)}}}, Namespaces: []string{"git"}}}
	f.Fuzz(func(t *testing.T, first, then []byte) {
		c := &Conn{Keys: keys}
		for _, m := range [][]byte{first, then} {
			v := c.Request(m)
			switch {
			case (v.Refused != nil) != (len(v.Answer) == 1 && v.Answer[0] == msgFailure):
				t.Errorf("%+v", v)
			case v.Refused != nil && (v.Forward != nil || v.For != ""):
				t.Errorf("refused and forwarded: %+v", v)
			case v.Forward == nil && v.Answer == nil:
				t.Error("neither answered nor forwarded")
			case v.Answer == nil && v.For == "":
				t.Error("signed for nothing")
			case v.Forward != nil && m[0] == msgSign:
				var s signRequest
				if err := ssh.Unmarshal(m, &s); err != nil || string(s.Key) != string(blob(user)) {
					t.Errorf("%v %q", err, s.Key)
				}
				if !strings.HasPrefix(string(s.Data), signatureMagic) && (c.bound == nil || !strings.HasPrefix(string(s.Data[lengthBytes:]), string(c.bound.id))) {
					t.Errorf("signed: %q", s.Data)
				}
			}
		}
	})
}
