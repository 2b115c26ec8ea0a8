package sshagent

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/llmdo/workshop/internal/lib/clip"
)

// Key is a key of the user's that a worker may use.
type Key struct {
	Name string // of the credential
	Blob []byte // the public key, as the user's agent has it
	// Hosts are those that it logs in at.
	Hosts []Host
	// Namespaces are those that messages are signed for, as git.
	Namespaces []string
}

// Host is a host with the keys that the user knows it by.
type Host struct {
	Name string
	Port uint16
	Keys [][]byte
}

func (h Host) String() string { return net.JoinHostPort(h.Name, strconv.Itoa(int(h.Port))) }

// Conn is one connection of a worker's program. The zero value with keys is ready.
type Conn struct {
	Keys []Key
	// bound is the session of the connection: one, as OpenSSH has it where nothing is
	// forwarded. A jump through another host has a connection of its own.
	bound *session
	// forwarded: it leads to programs of another host, which get nothing.
	forwarded bool
}

type session struct {
	id      []byte
	hostKey []byte
}

// Verdict is what is done with a request.
type Verdict struct {
	// Answer is sent to the program. nil: the answer of the user's agent to Forward.
	Answer []byte
	// Forward is sent to the user's agent. With an Answer, its own doesn't matter.
	Forward []byte
	// For is what is signed, in words.
	For string
	// Refused says why nothing is signed or bound.
	Refused error
}

func refuse(format string, args ...any) Verdict {
	return Verdict{Answer: []byte{msgFailure}, Refused: fmt.Errorf(format, args...)}
}

// Request decides on one message.
func (c *Conn) Request(m []byte) Verdict {
	if len(m) == 0 {
		return refuse("an empty message")
	}
	switch {
	case c.forwarded:
		return refuse("the connection is forwarded to another host")
	case m[0] == msgListKeys && len(m) == 1:
		return Verdict{Answer: c.list()}
	case m[0] == msgSign:
		return c.sign(m)
	case m[0] == msgExtension:
		return c.bind(m)
	}
	return refuse("a request of type %d, which no line has", m[0])
}

// list answers with the keys. Their comments are the names of the credentials: the user's
// may have names of machines.
func (c *Conn) list() []byte {
	out := binary.BigEndian.AppendUint32([]byte{msgKeys}, uint32(len(c.Keys)))
	for _, k := range c.Keys {
		out = append(out, ssh.Marshal(struct {
			Blob []byte
			Name string
		}{k.Blob, k.Name})...)
	}
	return out
}

// bind notes which host the connection's session is with. The host has signed the session,
// so nobody but it can have begun it (PROTOCOL.agent).
func (c *Conn) bind(m []byte) Verdict {
	var b bindRequest
	switch {
	case !exactly(m, &b) || b.Extension != extensionBind:
		return refuse("an extension that is not known, or not valid")
	case b.Forwarding:
		c.forwarded = true
		return refuse("the connection is to be forwarded to another host")
	case c.bound != nil:
		return refuse("the connection has a session already")
	case len(b.SessionID) == 0 || len(b.SessionID) > maxSessionID:
		return refuse("a session that is not valid")
	}
	hosts := c.hosts(b.HostKey)
	if len(hosts) == 0 {
		return refuse("the session is with a host whose key is not in known_hosts for a host of the line")
	}
	if err := verify(b); err != nil {
		return refuse("%s didn't sign the session: %w", hosts[0], err)
	}
	c.bound = &session{id: b.SessionID, hostKey: b.HostKey}
	return Verdict{Answer: []byte{msgSuccess}, Forward: m}
}

// hosts returns the hosts of all keys that have a host key.
func (c *Conn) hosts(key []byte) (out []string) {
	for _, k := range c.Keys {
		if at := k.at(key); at != "" {
			out = append(out, at)
		}
	}
	return out
}

// at returns the first host that has a host key; "": none.
func (k *Key) at(key []byte) string {
	for _, h := range k.Hosts {
		if slices.ContainsFunc(h.Keys, func(have []byte) bool { return bytes.Equal(have, key) }) {
			return h.String()
		}
	}
	return ""
}

// verify checks that a session was signed by its host key.
func verify(b bindRequest) error {
	key, err := ssh.ParsePublicKey(b.HostKey)
	if err != nil {
		return errors.New("its key is of a kind that is not known")
	}
	var sig ssh.Signature
	if err := ssh.Unmarshal(b.Signature, &sig); err != nil || len(sig.Rest) > 0 {
		return errMessage
	}
	if sig.Format == ssh.KeyAlgoRSA || sig.Format == "ssh-dss" {
		return errors.New("the signature is by SHA-1")
	}
	return key.Verify(b.SessionID, &sig)
}

// sign decides whether the agent may sign.
func (c *Conn) sign(m []byte) Verdict {
	var s signRequest
	if !exactly(m, &s) {
		return refuse("a request to sign that is not valid")
	}
	at := slices.IndexFunc(c.Keys, func(k Key) bool { return bytes.Equal(k.Blob, s.Key) })
	if at < 0 {
		return refuse("a key that no line has")
	}
	k := &c.Keys[at]
	algorithm, err := algorithmOf(k.Blob, s.Flags)
	if err != nil {
		return refuse("%w", err)
	}
	var what string
	if rest, is := bytes.CutPrefix(s.Data, []byte(signatureMagic)); is {
		what, err = k.signsMessage(rest)
	} else {
		what, err = c.signsLogin(k, s.Data, algorithm)
	}
	if err != nil {
		return refuse("%s: %w", k.Name, err)
	}
	return Verdict{Forward: m, For: k.Name + ": " + what}
}

// algorithmOf returns what a request with these flags is signed by. SHA-1 isn't asked for.
func algorithmOf(blob []byte, flags uint32) (string, error) {
	var key struct {
		Type string
		Rest []byte `ssh:"rest"`
	}
	if err := ssh.Unmarshal(blob, &key); err != nil {
		return "", err
	}
	switch {
	case key.Type == ssh.KeyAlgoRSA && flags == flagRSASHA256:
		return ssh.KeyAlgoRSASHA256, nil
	case key.Type == ssh.KeyAlgoRSA && flags == flagRSASHA512:
		return ssh.KeyAlgoRSASHA512, nil
	case key.Type != ssh.KeyAlgoRSA && flags == 0:
		return key.Type, nil
	}
	return "", fmt.Errorf("flags %#x of a signature, which no line has", flags)
}

var errRaw = errors.New("what is to be signed is neither to log in by SSH nor a message (SSHSIG)")

// signsMessage reports what a message is for, without its magic.
func (k *Key) signsMessage(data []byte) (string, error) {
	var m message
	if !exactly(data, &m) || m.Reserved != "" {
		return "", errRaw
	}
	switch {
	case m.Hash == "sha256" && len(m.Sum) == sha256.Size:
	case m.Hash == "sha512" && len(m.Sum) == sha512.Size:
	default:
		return "", errRaw
	}
	if m.Namespace == "" || !slices.Contains(k.Namespaces, m.Namespace) {
		return "", fmt.Errorf("a message for the namespace %q, which no line has", clip.Bytes(m.Namespace, 80))
	}
	return "a message for " + m.Namespace, nil
}

// signsLogin reports where the user logs in.
func (c *Conn) signsLogin(k *Key, data []byte, algorithm string) (string, error) {
	var bound boundLogin
	var l login
	switch {
	case exactly(data, &bound) && bound.Method == methodBoundKey:
		l = login{bound.SessionID, bound.Message, bound.User, bound.Service, bound.Method, bound.Signed, bound.Algorithm, bound.Key}
	case exactly(data, &l) && l.Method == methodKey:
	default:
		return "", errRaw
	}
	if l.Message != userauthRequest || l.Service != serviceSSH || !l.Signed || l.Algorithm != algorithm || !bytes.Equal(l.Key, k.Blob) {
		return "", errRaw
	}
	if c.bound == nil {
		return "", errors.New("the connection has no session with a host: it needs OpenSSH 8.9 or later")
	}
	if !bytes.Equal(c.bound.id, l.SessionID) {
		return "", errors.New("another session than the one of the connection")
	}
	if l.Method == methodBoundKey && !bytes.Equal(bound.HostKey, c.bound.hostKey) {
		return "", errors.New("another host than that of the session")
	}
	host := k.at(c.bound.hostKey)
	if host == "" {
		return "", errors.New("the session is with a host that the key has no line for")
	}
	return fmt.Sprintf("log in at %s as %q", host, clip.Bytes(l.User, 80)), nil
}

// isCertificate reports whether a public key is a certificate.
func isCertificate(blob []byte) bool {
	var key struct {
		Type string
		Rest []byte `ssh:"rest"`
	}
	return ssh.Unmarshal(blob, &key) != nil || strings.HasSuffix(key.Type, certificateInfix)
}

// Join adds a key to those of a worker. One that is there gets what the other is for, too.
func Join(keys []Key, k Key) []Key {
	for i := range keys {
		if bytes.Equal(keys[i].Blob, k.Blob) {
			keys[i].Hosts = append(keys[i].Hosts, k.Hosts...)
			keys[i].Namespaces = append(keys[i].Namespaces, k.Namespaces...)
			return keys
		}
	}
	return append(keys, k)
}
