package sshagent

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"

	"golang.org/x/crypto/ssh"
)

// MaxMessage bounds a message in both directions, in bytes; it is OpenSSH's bound.
const MaxMessage = 256 << 10

// The messages that are known here.
const (
	msgFailure       = 5
	msgSuccess       = 6
	msgListKeys      = 11
	msgKeys          = 12
	msgSign          = 13
	msgSignature     = 14
	msgExtension     = 27
	extensionBind    = "session-bind@openssh.com"
	flagRSASHA256    = 2
	flagRSASHA512    = 4
	userauthRequest  = 50
	serviceSSH       = "ssh-connection"
	methodKey        = "publickey"
	methodBoundKey   = "publickey-hostbound-v00@openssh.com"
	signatureMagic   = "SSHSIG"
	lengthBytes      = 4
	maxSessionID     = 64 // a hash of the key exchange
	certificateInfix = "-cert-v01@openssh.com"
)

var errMessage = errors.New("a message that is not valid")

// readMessage reads one message, without its length.
func readMessage(in io.Reader) ([]byte, error) {
	var head [lengthBytes]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n == 0 || n > MaxMessage {
		return nil, errMessage
	}
	var m bytes.Buffer // grows as the bytes come
	if _, err := io.CopyN(&m, in, int64(n)); err != nil {
		return nil, err
	}
	return m.Bytes(), nil
}

// writeMessage writes one message.
func writeMessage(out io.Writer, m []byte) error {
	b := binary.BigEndian.AppendUint32(make([]byte, 0, lengthBytes+len(m)), uint32(len(m)))
	_, err := out.Write(append(b, m...))
	return err
}

// exactly reads the fields of a struct, and reports whether they are all of the bytes, each
// in the one way that it can be written.
func exactly(data []byte, fields any) bool {
	return ssh.Unmarshal(data, fields) == nil && bytes.Equal(ssh.Marshal(fields), data)
}

type signRequest struct {
	Type  uint8
	Key   []byte
	Data  []byte
	Flags uint32
}

type bindRequest struct {
	Type       uint8
	Extension  string
	HostKey    []byte
	SessionID  []byte
	Signature  []byte
	Forwarding bool
}

// login is what is signed to log in (RFC 4252 section 7).
type login struct {
	SessionID []byte
	Message   uint8
	User      string
	Service   string
	Method    string
	Signed    bool
	Algorithm string
	Key       []byte
}

// boundLogin is what OpenSSH signs since 8.9.
type boundLogin struct {
	SessionID []byte
	Message   uint8
	User      string
	Service   string
	Method    string
	Signed    bool
	Algorithm string
	Key       []byte
	HostKey   []byte
}

// message is what is signed of a message, after the magic (PROTOCOL.sshsig).
type message struct {
	Namespace string
	Reserved  string
	Hash      string
	Sum       []byte
}
