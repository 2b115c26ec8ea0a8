package sshagent

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"net"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// KnownKeys returns the keys of a host by the text of a known_hosts file (sshd(8)), without
// those that it revokes. Lines that can't be read are skipped, as OpenSSH does it, and so
// are authorities of certificates.
func KnownKeys(text []byte, host string, port uint16) (out [][]byte) {
	name := KnownName(host, port)
	var revoked [][]byte
	for line := range bytes.Lines(text) {
		marker, hosts, key, _, _, err := ssh.ParseKnownHosts(line)
		switch {
		case err != nil:
		case marker == "revoked":
			revoked = append(revoked, key.Marshal())
		case marker == "" && matches(hosts, name) && !contains(out, key.Marshal()):
			out = append(out, key.Marshal())
		}
	}
	kept := out[:0]
	for _, key := range out {
		if !contains(revoked, key) {
			kept = append(kept, key)
		}
	}
	return kept
}

// KnownName is how a known_hosts file has a host: with another port than 22 as [host]:port.
func KnownName(host string, port uint16) string {
	return knownhosts.Normalize(net.JoinHostPort(strings.ToLower(host), strconv.Itoa(int(port))))
}

// KnownHosts returns the text of a known_hosts file with the hosts of keys.
func KnownHosts(keys []Key) (text []byte) {
	for _, k := range keys {
		for _, h := range k.Hosts {
			for _, blob := range h.Keys {
				if key, err := ssh.ParsePublicKey(blob); err == nil {
					text = append(append(text, KnownName(h.Name, h.Port)+" "...), ssh.MarshalAuthorizedKey(key)...)
				}
			}
		}
	}
	return text
}

// PublicKey returns the text of a file with a public key.
func (k *Key) PublicKey() []byte {
	key, err := ssh.ParsePublicKey(k.Blob)
	if err != nil {
		return nil
	}
	return ssh.MarshalAuthorizedKey(key)
}

func contains(all [][]byte, key []byte) bool {
	for _, x := range all {
		if bytes.Equal(x, key) {
			return true
		}
	}
	return false
}

// matches reports whether the patterns of a line are for a name.
func matches(patterns []string, name string) (is bool) {
	for _, p := range patterns {
		if hash, hashed := strings.CutPrefix(p, "|1|"); hashed {
			is = is || hashes(hash, name)
			continue
		}
		rest, not := strings.CutPrefix(strings.ToLower(p), "!")
		if !wildcard(rest, name) {
			continue
		}
		if not {
			return false
		}
		is = true
	}
	return is
}

// hashes reports whether "SALT|HASH" is of a name.
func hashes(text, name string) bool {
	salt, sum, _ := strings.Cut(text, "|")
	key, err := base64.StdEncoding.DecodeString(salt)
	if err != nil {
		return false
	}
	want, err := base64.StdEncoding.DecodeString(sum)
	if err != nil {
		return false
	}
	h := hmac.New(sha1.New, key) // the file's form; it hides names and proves nothing
	h.Write([]byte(name))
	return hmac.Equal(h.Sum(nil), want)
}

// wildcard matches * and ?, each over any character.
func wildcard(pattern, name string) bool {
	// at is where the last * began, and what it has taken of the name ends at back.
	i, at, back := 0, -1, 0
	for j := 0; j < len(name); {
		switch {
		case i < len(pattern) && pattern[i] == '*':
			at, back = i, j
			i++
		case i < len(pattern) && (pattern[i] == '?' || pattern[i] == name[j]):
			i, j = i+1, j+1
		case at >= 0:
			back++
			i, j = at+1, back
		default:
			return false
		}
	}
	return strings.Trim(pattern[i:], "*") == ""
}
