package facts

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestAuthorities: SSL_CERT_FILE and SSL_CERT_DIR take the place of the system's, which is
// one of several files; the same certificates are the same bytes, and none is an error.
func TestAuthorities(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, parts ...[]byte) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, bytes.Join(parts, nil), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	a, b := root(t), root(t)
	bundle := write("system/bundle.crt", a, []byte("# a comment\n"), b, a)
	one := write("one.pem", a)
	write("dir/one.pem", b)
	write("dir/README", []byte("no certificate"))
	if err := os.Symlink("one.pem", filepath.Join(dir, "dir/1234.0")); err != nil {
		t.Fatal(err)
	}
	other := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("no certificate")})
	nothing := write("nothing.pem", other, []byte("-----BEGIN CERTIFICATE-----\n"))
	files, dirs := authorityFiles, authorityDirs
	t.Cleanup(func() { authorityFiles, authorityDirs = files, dirs })

	for _, tt := range []struct {
		name   string
		env    map[string]string
		system []string
		dirs   []string
		want   [][]byte
		wrong  string
	}{
		{name: "the system's", system: []string{filepath.Join(dir, "absent"), bundle}, want: [][]byte{a, b}},
		{name: "the system's directories", system: []string{filepath.Join(dir, "absent")}, dirs: []string{filepath.Join(dir, "dir"), filepath.Join(dir, "absent")}, want: [][]byte{b}},
		{name: "a file of the user", env: map[string]string{"SSL_CERT_FILE": one}, system: []string{bundle}, want: [][]byte{a}},
		{name: "directories of the user", env: map[string]string{"SSL_CERT_DIR": filepath.Join(dir, "dir") + ":" + filepath.Join(dir, "system")}, system: []string{one}, want: [][]byte{a, b}},
		{name: "an absent file of the user", env: map[string]string{"SSL_CERT_FILE": filepath.Join(dir, "absent")}, system: []string{bundle}, wrong: "absent: no such file"},
		{name: "a directory as the file", env: map[string]string{"SSL_CERT_FILE": dir}, system: []string{bundle}, wrong: dir},
		{name: "no certificate", env: map[string]string{"SSL_CERT_FILE": nothing}, wrong: "no certificate in " + nothing},
		{name: "a broken bundle of the system", system: []string{nothing, bundle}, wrong: "no certificate in " + nothing},
		{name: "nothing", dirs: []string{filepath.Join(dir, "absent")}, wrong: "no certificate in " + filepath.Join(dir, "absent")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			authorityFiles, authorityDirs = tt.system, tt.dirs
			got, err := Authorities(func(name string) (string, bool) { v, ok := tt.env[name]; return v, ok })
			if tt.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wrong) {
					t.Errorf("got %d certificates and %v, want an error with %q", len(got), err, tt.wrong)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var want [][]byte
			for _, p := range tt.want {
				block, _ := pem.Decode(p)
				want = append(want, block.Bytes)
			}
			slices.SortFunc(want, bytes.Compare)
			if !slices.EqualFunc(got, want, bytes.Equal) {
				t.Errorf("got %d certificates, want %d others", len(got), len(want))
			}
		})
	}
}

// root returns a certificate of its own, in PEM.
func root(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
