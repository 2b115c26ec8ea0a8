package source

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/llmdo/workshop/internal/dev/testutil"
)

// signed are tags that git and ssh-keygen made, and the public keys.
type signed struct {
	t   *testing.T
	dir string
}

func newSigned(t *testing.T) *signed {
	t.Helper()
	_, err := exec.LookPath("ssh-keygen")
	testutil.Require(t, err == nil, "there is no ssh-keygen")
	s := &signed{t, t.TempDir()}
	t.Setenv("HOME", s.dir)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	s.run("git", "init", "-q", "-b", "main")
	s.run("git", "-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-qm", "x", "--allow-empty")
	return s
}

func (s *signed) run(name string, args ...string) []byte {
	s.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = s.dir
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		s.t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, &said)
	}
	return out
}

// key makes a key and returns its public half.
func (s *signed) key(name, kind string) string {
	s.t.Helper()
	s.run("ssh-keygen", "-q", "-t", kind, "-N", "", "-C", name, "-f", name)
	text, err := os.ReadFile(filepath.Join(s.dir, name+".pub"))
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// tag makes a signed tag and returns the object.
func (s *signed) tag(name, key string) []byte {
	s.t.Helper()
	s.run("git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "gpg.format=ssh", "-c", "user.signingkey="+filepath.Join(s.dir, key), "tag", "-s", "-m", "release "+name, name)
	return s.run("git", "cat-file", "tag", name)
}

func signers(t *testing.T, lines ...string) Signers {
	t.Helper()
	s, err := ParseSigners([]byte(strings.Join(lines, "\n") + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// B46: a tag counts as signed only by a key of the list, for git, at its time, over exactly
// what the tag says.
func TestVerifyTag(t *testing.T) {
	s := newSigned(t)
	now := time.Now()
	for _, kind := range []string{"ed25519", "ecdsa", "rsa"} {
		public := s.key(kind, kind)
		tag := s.tag("v-"+kind, kind)
		got, err := signers(t, "# releases", "acme-release,other "+public).VerifyTag(tag, now)
		if err != nil || got.By != "acme-release" || !strings.HasPrefix(got.Key, "SHA256:") {
			t.Errorf("%s: %+v, %v", kind, got, err)
		}
	}
	public, tag, other := s.key("main-key", "ed25519"), []byte(nil), s.key("other-key", "ed25519")
	tag = s.tag("v1.0.0", "main-key")
	s.run("git", "-c", "user.name=t", "-c", "user.email=t@example.org", "tag", "-a", "-m", "x", "unsigned")
	for _, c := range []struct {
		name string
		all  Signers
		tag  []byte
		want string
	}{
		{"another key", signers(t, "x "+other), tag, "is not one of the signers"},
		{"nobody", nil, tag, "is not one of the signers"},
		{"for files alone", signers(t, `x namespaces="file" `+public), tag, "doesn't sign for git"},
		{"expired", signers(t, `x valid-before="20200101Z" `+public), tag, "is not valid at this time"},
		{"not yet", signers(t, `x valid-after="21000101Z" `+public), tag, "is not valid at this time"},
		{"another text", signers(t, "x "+public), bytes.Replace(tag, []byte("release"), []byte("Release"), 1), "doesn't fit"},
		{"another commit", signers(t, "x "+public), append([]byte("object "+strings.Repeat("0", 40)), tag[len("object ")+40:]...), "doesn't fit"},
		{"unsigned", signers(t, "x "+public), s.run("git", "cat-file", "tag", "unsigned"), ErrUnsigned.Error()},
		{"OpenPGP", signers(t, "x "+public), append(bytes.Clone(tag[:bytes.Index(tag, []byte("-----BEGIN"))]), "-----BEGIN PGP SIGNATURE-----\nx\n-----END PGP SIGNATURE-----\n"...), "not one of SSH"},
		{"cut", signers(t, "x "+public), tag[:len(tag)-40], "not one of SSH"},
		{"damaged", signers(t, "x "+public), bytes.Replace(tag, []byte(armorBegin+"\nU1"), []byte(armorBegin+"\nAA"), 1), "damaged"},
		{"text behind", signers(t, "x "+public), append(bytes.Clone(tag), "more\n"...), "not one of SSH"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, err := c.all.VerifyTag(c.tag, now); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%+v, %v; want %s", got, err, c.want)
			}
		})
	}
	if got, err := signers(t, `x namespaces="file,git",valid-after="20200101",valid-before="21000101" `+public).VerifyTag(tag, now); err != nil || got.By != "x" {
		t.Errorf("%+v, %v", got, err)
	}
	// A signature of the same bytes for another purpose (namespace) is none for git.
	i := bytes.Index(tag, []byte("-----BEGIN"))
	if err := os.WriteFile(filepath.Join(s.dir, "message"), tag[:i], 0o600); err != nil {
		t.Fatal(err)
	}
	s.run("ssh-keygen", "-q", "-Y", "sign", "-n", "file", "-f", "main-key", "message")
	sig, err := os.ReadFile(filepath.Join(s.dir, "message.sig"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := signers(t, "x "+public).VerifyTag(append(bytes.Clone(tag[:i]), sig...), now); err == nil || !strings.Contains(err.Error(), `is for "file"`) {
		t.Errorf("%+v, %v", got, err)
	}
}

// B46: a pinned key is that one, whatever it signs, and no other.
func TestPinnedSigner(t *testing.T) {
	s := newSigned(t)
	s.key("pinned", "ed25519")
	s.key("other", "ed25519")
	fields := strings.Fields(string(s.run("ssh-keygen", "-l", "-f", "pinned.pub")))
	pinned, err := PinnedSigner(fields[1])
	if err != nil {
		t.Fatal(err)
	}
	if got, err := pinned.VerifyTag(s.tag("v1", "pinned"), time.Now()); err != nil || got.Key != fields[1] || got.By != fields[1] {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := pinned.VerifyTag(s.tag("v2", "other"), time.Now()); err == nil || !strings.Contains(err.Error(), "is not one of the signers") {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range []string{"", "SHA256:", "MD5:aa:bb", strings.TrimPrefix(fields[1], "SHA256:"), fields[1] + "=", fields[1][:20], fields[1] + "\n", "sha256" + fields[1][6:]} {
		if got, err := PinnedSigner(bad); err == nil {
			t.Errorf("%q is taken: %v", bad, got)
		}
	}
}

// B47: a key for one kind of source isn't one for the other.
func TestHas(t *testing.T) {
	public := newSigned(t).key("k", "ed25519")
	git, err := ParseID("git+https://git.example.org/acme/w")
	if err != nil {
		t.Fatal(err)
	}
	oci, err := ParseID("oci://registry.example.org/acme/w")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		line     string
		git, oci bool
	}{{"x " + public, true, true}, {`x namespaces="git" ` + public, true, false}, {`x namespaces="workshop" ` + public, false, true}, {`x valid-before="20200101" ` + public, false, false}} {
		all := signers(t, c.line)
		_, noGit := all.Has(git, all[0].key, time.Now())
		_, noOCI := all.Has(oci, all[0].key, time.Now())
		if (noGit == nil) != c.git || (noOCI == nil) != c.oci {
			t.Errorf("%s: %v, %v", c.line, noGit, noOCI)
		}
	}
}

func TestParseSigners(t *testing.T) {
	public := newSigned(t).key("k", "ed25519")
	for _, bad := range []string{"x", "x ssh-ed25519", "x cert-authority " + public, `x valid-before="yesterday" ` + public, "x something=1 " + public, public} {
		if s, err := ParseSigners([]byte(bad)); err == nil {
			t.Errorf("%q is taken: %v", bad, s)
		}
	}
	if s, err := ParseSigners([]byte("\n  # a\n\nx " + public + "\n")); err != nil || len(s) != 1 {
		t.Errorf("%v, %v", s, err)
	}
}

func FuzzVerify(f *testing.F) {
	f.Add([]byte("object x\n\n"+armorBegin+"\nU1NIU0lHAAAAAQ==\n"+armorEnd+"\n"), []byte("x ssh-ed25519 AAAA"))
	f.Fuzz(func(t *testing.T, tag, list []byte) {
		all, err := ParseSigners(list)
		if err != nil {
			return
		}
		if got, err := all.VerifyTag(tag, time.Unix(0, 0)); err == nil && len(all) == 0 || errors.Is(err, ErrUnsigned) && got != (Signer{}) {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

// B46: what anybody could have made, or a program without its owner, is no signature.
func TestWeakSignatures(t *testing.T) {
	const namespace = "git"
	message := []byte("release")
	sum := sha512.Sum512(message)
	signed := append([]byte(magic), ssh.Marshal(struct{ Namespace, Reserved, Hash, Sum string }{namespace, "", "sha512", string(sum[:])})...)
	armor := func(key ssh.PublicKey, signature *ssh.Signature) []byte {
		blob := ssh.Marshal(struct {
			Version                                   uint32
			Key, Namespace, Reserved, Hash, Signature string
		}{1, string(key.Marshal()), namespace, "", "sha512", string(ssh.Marshal(signature))})
		return []byte(armorBegin + "\n" + base64.StdEncoding.EncodeToString(append([]byte(magic), blob...)) + "\n" + armorEnd)
	}
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	byRSA, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	for algorithm, want := range map[string]string{ssh.KeyAlgoRSASHA512: "", ssh.KeyAlgoRSA: "RSA with SHA-1"} {
		signature, err := byRSA.(ssh.AlgorithmSigner).SignWithAlgorithm(rand.Reader, signed, algorithm)
		if err != nil {
			t.Fatal(err)
		}
		if key, err := signedBy(message, armor(byRSA.PublicKey(), signature), namespace); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v", algorithm, key, err)
		}
	}
	// A key of a device (OpenSSH, PROTOCOL.u2f), which says by a flag whether somebody
	// touched it.
	public, device, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.ParsePublicKey(ssh.Marshal(struct{ Type, Key, Application string }{ssh.KeyAlgoSKED25519, string(public), "ssh:"}))
	if err != nil {
		t.Fatal(err)
	}
	for flags, want := range map[byte]string{1: "", 5: "", 0: "nobody touched", 4: "nobody touched"} {
		application, text, rest := sha256.Sum256([]byte("ssh:")), sha256.Sum256(signed), []byte{flags, 0, 0, 0, 1}
		signature := &ssh.Signature{Format: ssh.KeyAlgoSKED25519, Blob: ed25519.Sign(device, slices.Concat(application[:], rest, text[:])), Rest: rest}
		if key, err := signedBy(message, armor(key, signature), namespace); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("flags %d: %v, %v", flags, key, err)
		}
	}
}
