package sshagent

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"golang.org/x/crypto/ssh"
)

// Serve answers a program of a worker until its connection ends. dial connects to the
// user's agent; say gets each verdict that refused or has something signed.
func Serve(client io.ReadWriter, keys []Key, dial func() (io.ReadWriteCloser, error), say func(Verdict)) error {
	c := &Conn{Keys: keys}
	var agent io.ReadWriteCloser
	defer func() {
		if agent != nil {
			agent.Close()
		}
	}()
	for {
		m, err := readMessage(client)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		v := c.Request(m)
		if v.Refused != nil || v.For != "" {
			say(v)
		}
		answer := v.Answer
		if v.Forward != nil {
			if agent == nil {
				if agent, err = dial(); err != nil {
					return err
				}
			}
			got, err := exchange(agent, v.Forward)
			if err != nil {
				return fmt.Errorf("the user's agent: %w", err)
			}
			if answer == nil {
				answer = signature(got)
			}
		}
		if err := writeMessage(client, answer); err != nil {
			return err
		}
	}
}

func exchange(agent io.ReadWriter, m []byte) ([]byte, error) {
	if err := writeMessage(agent, m); err != nil {
		return nil, err
	}
	return readMessage(agent)
}

// signature returns an agent's answer, if it is a signature alone; else a failure.
func signature(m []byte) []byte {
	var s struct {
		Type      uint8
		Signature []byte
	}
	if m[0] != msgSignature || !exactly(m, &s) {
		return []byte{msgFailure}
	}
	return m
}

// Public is a key as an agent lists it.
type Public struct {
	Blob    []byte
	Comment string
}

// List returns the keys of an agent without certificates, which have no fingerprint of their
// own.
func List(agent io.ReadWriter) (keys []Public, err error) {
	m, err := exchange(agent, []byte{msgListKeys})
	if err != nil {
		return nil, err
	}
	if m[0] != msgKeys || len(m) < 1+lengthBytes {
		return nil, errMessage
	}
	n := binary.BigEndian.Uint32(m[1:])
	for m = m[1+lengthBytes:]; n > 0; n-- {
		var key struct {
			Blob    []byte
			Comment string
			Rest    []byte `ssh:"rest"`
		}
		if err := ssh.Unmarshal(m, &key); err != nil {
			return nil, errMessage
		}
		if !isCertificate(key.Blob) {
			keys = append(keys, Public{key.Blob, key.Comment})
		}
		m = key.Rest
	}
	return keys, nil
}

// Fingerprint returns that of a public key.
func Fingerprint(blob []byte) string {
	sum := sha256.Sum256(blob)
	return "SHA256:" + base64.RawStdEncoding.EncodeToString(sum[:])
}

// ValidFingerprint reports whether a text is the fingerprint of a key.
func ValidFingerprint(text string) bool {
	const prefix = "SHA256:"
	if len(text) < len(prefix) || text[:len(prefix)] != prefix {
		return false
	}
	sum, err := base64.RawStdEncoding.Strict().DecodeString(text[len(prefix):])
	return err == nil && len(sum) == sha256.Size && "SHA256:"+base64.RawStdEncoding.EncodeToString(sum) == text
}
