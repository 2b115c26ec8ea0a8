package source

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/llmdo/workshop/internal/lib/clip"
)

// ErrUnsigned means that a tag has no signature, or isn't an annotated one.
var ErrUnsigned = errors.New("the tag is not signed")

// Signer is who signed.
type Signer struct {
	By  string // the principal that the user's list has for the key
	Key string // its fingerprint, "SHA256:…"
}

// String is "acme (SHA256:…)".
func (s Signer) String() string {
	if s.By == s.Key { // pinned
		return s.Key
	}
	return s.By + " (" + s.Key + ")"
}

// Signers are the keys whose signatures count, as ssh-keygen(1) reads them from a file of
// allowed signers.
type Signers []signer

type signer struct {
	by            string
	key           string   // its fingerprint
	namespaces    []string // nil: all
	after, before time.Time
}

// SignatureError is a signature that doesn't count.
type SignatureError struct{ Why error }

// Error implements [error].
func (e *SignatureError) Error() string { return e.Why.Error() }

// Unwrap returns Why.
func (e *SignatureError) Unwrap() error { return e.Why }

// ParseSigners reads lines `PRINCIPAL[,PRINCIPAL…] [OPTIONS] KEYTYPE KEY [COMMENT]`. The
// options namespaces, valid-after and valid-before are known; a line with others, such as
// cert-authority, is an error, as what it restricts isn't known.
func ParseSigners(text []byte) (Signers, error) {
	var out Signers
	for i, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		principals, rest, _ := strings.Cut(line, " ")
		// The rest is a line of authorized_keys: options, type, key, comment.
		key, _, options, more, err := ssh.ParseAuthorizedKey([]byte(rest))
		if err != nil || len(bytes.TrimSpace(more)) > 0 {
			return nil, fmt.Errorf("line %d: not PRINCIPAL [OPTIONS] KEYTYPE KEY", i+1)
		}
		by, _, _ := strings.Cut(strings.Trim(principals, `"`), ",")
		s := signer{by: by, key: ssh.FingerprintSHA256(key)}
		for _, o := range options {
			name, value, _ := strings.Cut(o, "=")
			value = strings.Trim(value, `"`)
			switch strings.ToLower(name) {
			case "namespaces":
				s.namespaces = strings.Split(value, ",")
			case "valid-after":
				s.after, err = signTime(value)
			case "valid-before":
				s.before, err = signTime(value)
			default:
				err = fmt.Errorf("the option %q is not known", clip.Bytes(name, 40))
			}
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", i+1, err)
			}
		}
		out = append(out, s)
	}
	return out, nil
}

// PinnedSigner is the one key of a fingerprint, "SHA256:…" as ssh-keygen -l prints it. It
// has no name but that.
func PinnedSigner(fingerprint string) (Signers, error) {
	sum, ok := strings.CutPrefix(fingerprint, "SHA256:")
	if data, err := base64.RawStdEncoding.Strict().DecodeString(sum); !ok || err != nil || len(data) != sha256.Size || strings.ContainsAny(sum, "\r\n") {
		return nil, fmt.Errorf("%q is not the fingerprint of a key: want SHA256:…, as `ssh-keygen -l -f KEY.pub` prints it", clip.Bytes(fingerprint, 80))
	}
	return Signers{{by: fingerprint, key: fingerprint}}, nil
}

// signTime reads YYYYMMDD[HHMM[SS]][Z]; without Z it is a local time.
func signTime(text string) (time.Time, error) {
	digits, zone := strings.CutSuffix(text, "Z")
	location := time.Local
	if zone {
		location = time.UTC
	}
	for _, layout := range []string{"20060102", "200601021504", "20060102150405"} {
		if t, err := time.ParseInLocation(layout, digits, location); err == nil && len(digits) == len(layout) {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a time: want YYYYMMDD or YYYYMMDDHHMMSS, with Z for UTC", clip.Bytes(text, 40))
}

const (
	armorBegin = "-----BEGIN SSH SIGNATURE-----"
	armorEnd   = "-----END SSH SIGNATURE-----"
	magic      = "SSHSIG" // OpenSSH, PROTOCOL.sshsig
	// namespaceGit is what git signs for.
	namespaceGit = "git"
)

// VerifyTag returns who signed an annotated tag, as git hashes it. A signature that isn't
// by one of the signers, for git, and valid at a time, is an error, and so is one of
// OpenPGP or X.509, which can't be checked.
func (all Signers) VerifyTag(tag []byte, at time.Time) (Signer, error) {
	i := bytes.Index(tag, []byte("\n-----BEGIN "))
	if i < 0 {
		return Signer{}, ErrUnsigned
	}
	return all.verify(tag[:i+1], tag[i+1:], namespaceGit, at)
}

func (all Signers) verify(message, armored []byte, namespace string, at time.Time) (Signer, error) {
	key, err := signedBy(message, armored, namespace)
	if err != nil {
		return Signer{}, err
	}
	return all.find(ssh.FingerprintSHA256(key), namespace, at)
}

// signedBy returns the key that signed a message for a purpose, whoever has it.
func signedBy(message, armored []byte, namespace string) (ssh.PublicKey, error) {
	text := strings.TrimSpace(string(armored))
	body, isSSH := strings.CutPrefix(text, armorBegin)
	body, whole := strings.CutSuffix(body, armorEnd)
	if !isSSH || !whole {
		return nil, errors.New("the signature is not one of SSH (git-config(1), gpg.format)")
	}
	data, err := base64.StdEncoding.DecodeString(strings.NewReplacer("\n", "", "\r", "").Replace(body))
	if err != nil || !bytes.HasPrefix(data, []byte(magic)) {
		return nil, errors.New("the signature is damaged")
	}
	var blob struct {
		Version                              uint32
		Key                                  []byte
		Namespace, Reserved, Hash, Signature string
	}
	if err := ssh.Unmarshal(data[len(magic):], &blob); err != nil || blob.Version != 1 {
		return nil, errors.New("the signature is damaged, or of an unknown version")
	}
	var sum []byte
	switch blob.Hash {
	case "sha256":
		s := sha256.Sum256(message)
		sum = s[:]
	case "sha512":
		s := sha512.Sum512(message)
		sum = s[:]
	default:
		return nil, fmt.Errorf("the signature uses the hash %q", clip.Bytes(blob.Hash, 40))
	}
	if blob.Namespace != namespace {
		return nil, fmt.Errorf("the signature is for %q, want %q", clip.Bytes(blob.Namespace, 40), namespace)
	}
	key, err := ssh.ParsePublicKey(blob.Key)
	if err != nil {
		return nil, fmt.Errorf("the signature's key: %w", err)
	}
	var signature ssh.Signature
	if err := ssh.Unmarshal([]byte(blob.Signature), &signature); err != nil {
		return nil, errors.New("the signature is damaged")
	}
	if signature.Format == ssh.KeyAlgoRSA { // SHA-1
		return nil, errors.New("the signature is by RSA with SHA-1")
	}
	if strings.HasPrefix(key.Type(), "sk-") && (len(signature.Rest) == 0 || signature.Rest[0]&1 == 0) {
		return nil, errors.New("nobody touched the security key of the signature")
	}
	signed := append([]byte(magic), ssh.Marshal(struct{ Namespace, Reserved, Hash, Sum string }{blob.Namespace, blob.Reserved, blob.Hash, string(sum)})...)
	if err := key.Verify(signed, &signature); err != nil {
		return nil, fmt.Errorf("the signature doesn't fit: %w", err)
	}
	return key, nil
}

// Has returns whose key signs releases of a source at a time; the error says why it
// doesn't.
func (all Signers) Has(id ID, key string, at time.Time) (Signer, error) {
	if id.scheme == ociScheme {
		return all.find(key, signNamespace, at)
	}
	return all.find(key, namespaceGit, at)
}

// find returns whose key it is.
func (all Signers) find(key, namespace string, at time.Time) (Signer, error) {
	why := "is not one of the signers"
	for _, s := range all {
		switch {
		case s.key != key:
			continue
		case s.namespaces != nil && !slices.Contains(s.namespaces, namespace):
			why = "doesn't sign for " + namespace
		case !s.after.IsZero() && at.Before(s.after), !s.before.IsZero() && !at.Before(s.before):
			why = "is not valid at this time"
		default:
			return Signer{By: s.by, Key: key}, nil
		}
	}
	return Signer{}, fmt.Errorf("the key %s %s", clip.Bytes(key, 60), why)
}
