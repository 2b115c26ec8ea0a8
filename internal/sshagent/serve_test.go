package sshagent

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"io"
	"net"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
	"golang.org/x/crypto/ssh/knownhosts"
)

// keyring is a user's agent; its dial counts connections.
func keyring(t *testing.T, keys ...any) func() (io.ReadWriteCloser, error) {
	t.Helper()
	ring := agent.NewKeyring()
	for _, k := range keys {
		if err := ring.Add(agent.AddedKey{PrivateKey: k, Comment: "me@my-laptop"}); err != nil {
			t.Fatal(err)
		}
	}
	return func() (io.ReadWriteCloser, error) {
		here, there := net.Pipe()
		go func() {
			_ = agent.ServeAgent(ring, there)
			there.Close()
		}()
		return here, nil
	}
}

// serve has the connection of a worker's program, and the verdicts that were said.
func serve(t *testing.T, keys []Key, dial func() (io.ReadWriteCloser, error)) (net.Conn, *[]Verdict) {
	t.Helper()
	here, there := net.Pipe()
	t.Cleanup(func() { here.Close() })
	var said []Verdict
	go func() {
		_ = Serve(there, keys, dial, func(v Verdict) { said = append(said, v) })
		there.Close()
	}()
	return here, &said
}

func TestServe(t *testing.T) {
	userKey, user := newKey(t)
	otherKey, other := newKey(t)
	rsaKey, rsaUser := newRSA(t)
	_, host := newKey(t)
	keys := []Key{
		{Name: "work", Blob: blob(user), Hosts: []Host{{"git.example", 22, [][]byte{blob(host)}}}, Namespaces: []string{"git"}},
		{Name: "old", Blob: blob(rsaUser), Namespaces: []string{"git"}},
	}
	c, said := serve(t, keys, keyring(t, otherKey, userKey, rsaKey))
	a := agent.NewClient(c)
	list, err := a.List()
	if err != nil || len(list) != 2 || !bytes.Equal(list[0].Blob, blob(user)) || list[0].Comment != "work" {
		t.Fatalf("%v %v", list, err)
	}
	if sig, err := a.Sign(other.PublicKey(), messageOf("git")); err == nil {
		t.Errorf("signed by another key: %v", sig)
	}
	data := ssh.Marshal(loginOf(user, sid))
	if sig, err := a.Sign(user.PublicKey(), data); err == nil {
		t.Errorf("logged in without a session: %v", sig)
	}
	if _, err := a.Extension(extensionBind, bindOf(t, host, host, sid, false)[1+lengthBytes+len(extensionBind):]); err != nil {
		t.Fatal(err)
	}
	sig, err := a.Sign(user.PublicKey(), data)
	if err != nil || user.PublicKey().Verify(data, sig) != nil {
		t.Errorf("log in: %v %v", sig, err)
	}
	sig, err = a.SignWithFlags(rsaUser.PublicKey(), messageOf("git"), agent.SignatureFlagRsaSha512)
	if err != nil || sig.Format != ssh.KeyAlgoRSASHA512 || rsaUser.PublicKey().Verify(messageOf("git"), sig) != nil {
		t.Errorf("a message: %v %v", sig, err)
	}
	for what, err := range map[string]error{
		"add": a.Add(agent.AddedKey{PrivateKey: otherKey}), "remove": a.Remove(user.PublicKey()),
		"remove all": a.RemoveAll(), "lock": a.Lock([]byte("x")), "unlock": a.Unlock([]byte("x")),
	} {
		if err == nil {
			t.Errorf("%s was not refused", what)
		}
	}
	var signed, refused int
	for _, v := range *said {
		if v.Refused != nil {
			refused++
		} else if strings.HasPrefix(v.For, "work: log in") || strings.HasPrefix(v.For, "old: a message") {
			signed++
		}
	}
	if signed != 2 || refused != 7 {
		t.Errorf("said %d signed, %d refused: %+v", signed, refused, *said)
	}
}

// TestServeBounds: a message that is too long, or empty, ends the connection, and an agent's
// answer that isn't a signature is a failure.
func TestServeBounds(t *testing.T) {
	_, user := newKey(t)
	keys := []Key{{Name: "work", Blob: blob(user), Namespaces: []string{"git"}}}
	for name, n := range map[string]uint32{"too long": MaxMessage + 1, "empty": 0, "endless": 1<<32 - 1} {
		t.Run(name, func(t *testing.T) {
			c, _ := serve(t, keys, nil)
			if _, err := c.Write(binary.BigEndian.AppendUint32(nil, n)); err != nil {
				t.Fatal(err)
			}
			_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
			if got, err := c.Read(make([]byte, 1)); err != io.EOF {
				t.Errorf("got %d bytes, %v", got, err)
			}
		})
	}
	for name, answer := range map[string][]byte{
		"keys": {msgKeys, 0, 0, 0, 0}, "success": {msgSuccess}, "a signature and more": {msgSignature, 0, 0, 0, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := serve(t, keys, func() (io.ReadWriteCloser, error) {
				here, there := net.Pipe()
				go func() {
					_, _ = readMessage(there)
					_ = writeMessage(there, answer)
				}()
				return here, nil
			})
			_ = c.SetDeadline(time.Now().Add(10 * time.Second))
			if err := writeMessage(c, signOf(user, messageOf("git"), 0)); err != nil {
				t.Fatal(err)
			}
			if got, err := readMessage(c); err != nil || !bytes.Equal(got, []byte{msgFailure}) {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

func TestList(t *testing.T) {
	userKey, user := newKey(t)
	_, authority := newKey(t)
	otherKey, other := newKey(t)
	cert := &ssh.Certificate{Key: user.PublicKey(), CertType: ssh.UserCert, ValidBefore: ssh.CertTimeInfinity}
	if err := cert.SignCert(rand.Reader, authority); err != nil {
		t.Fatal(err)
	}
	ring := agent.NewKeyring()
	for _, k := range []agent.AddedKey{{PrivateKey: otherKey, Comment: "other"}, {PrivateKey: userKey, Certificate: cert, Comment: "a certificate"}, {PrivateKey: userKey, Comment: "mine"}} {
		if err := ring.Add(k); err != nil {
			t.Fatal(err)
		}
	}
	c, there := net.Pipe()
	defer c.Close()
	go func() { _ = agent.ServeAgent(ring, there); there.Close() }()
	got, err := List(c)
	if want := []Public{{blob(other), "other"}, {blob(user), "mine"}}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	for text, want := range map[string]bool{
		ssh.FingerprintSHA256(user.PublicKey()): true, Fingerprint(blob(user)) + "=": false, "SHA256:": false, "": false,
		"MD5:00": false, "sha256" + Fingerprint(blob(user))[6:]: false, Fingerprint(blob(user))[:49] + "\n": false,
	} {
		if ValidFingerprint(text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}

func TestKnownKeys(t *testing.T) {
	line := func(s ssh.Signer) string { return string(ssh.MarshalAuthorizedKey(s.PublicKey())) }
	_, a := newKey(t)
	_, b := newKey(t)
	_, c := newKey(t)
	_, authority := newKey(t)
	_, revoked := newKey(t)
	text := "# comment\n\nbroken\nold.example ssh-dss AAAA\n" +
		"git.example,198.51.100.1 " + line(a) +
		"[git.example]:2222 " + line(b) +
		"*.example.org,!bad.example.org " + line(c) +
		hashed("hashed.example") + " " + line(a) + hashed("[hashed.example]:2222") + " " + line(b) +
		"@cert-authority *.example " + line(authority) +
		"git.example " + line(revoked) + "@revoked * " + line(revoked)
	for _, tt := range []struct {
		host string
		port uint16
		want []ssh.Signer
	}{
		{"git.example", 22, []ssh.Signer{a}},
		{"GIT.example", 22, []ssh.Signer{a}},
		{"git.example", 2222, []ssh.Signer{b}},
		{"git.example", 2223, nil},
		{"x.git.example", 22, nil},
		{"a.example.org", 22, []ssh.Signer{c}},
		{"bad.example.org", 22, nil},
		{"example.org", 22, nil},
		{"hashed.example", 22, []ssh.Signer{a}},
		{"hashed.example", 2222, []ssh.Signer{b}},
		{"hashed.exampl", 22, nil},
		{"other.example", 22, nil},
	} {
		got := KnownKeys([]byte(text), tt.host, tt.port)
		if len(got) != len(tt.want) || len(got) > 0 && !bytes.Equal(got[0], blob(tt.want[0])) {
			t.Errorf("%s:%d: got %d keys, want %d", tt.host, tt.port, len(got), len(tt.want))
		}
	}
	got := string(KnownHosts([]Key{{Hosts: []Host{{"git.example", 2222, [][]byte{blob(b)}}, {"git.example", 22, [][]byte{blob(a), {1}}}}}}))
	if want := "[git.example]:2222 " + line(b) + "git.example " + line(a); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// hashed is a name as HashKnownHosts has it.
func hashed(name string) string { return knownhosts.HashHostname(name) }
