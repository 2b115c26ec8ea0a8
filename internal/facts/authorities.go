package facts

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/lib/boundedfile"
	"github.com/llmdo/workshop/internal/lib/sortfunc"
)

// Where this machine's bundle of certificate authorities is, and directories with one file
// for each where there is no bundle: those of crypto/x509 (root_linux.go, root_bsd.go).
// macOS has the first of its key chain in /etc/ssl/cert.pem.
var (
	authorityFiles = []string{
		"/etc/ssl/certs/ca-certificates.crt",                // Debian, Arch
		"/etc/pki/tls/certs/ca-bundle.crt",                  // Fedora
		"/etc/ssl/ca-bundle.pem",                            // openSUSE
		"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", // RHEL
		"/etc/ssl/cert.pem",                                 // Alpine, macOS
	}
	authorityDirs = []string{"/etc/ssl/certs", "/etc/pki/tls/certs"}
)

// maxBundle bounds a file of certificates; a distribution's has 250 KiB.
const maxBundle = 4 << 20

// Authorities returns the certificates, in DER and sorted, that hosts are verified by on
// this machine: those of SSL_CERT_FILE and SSL_CERT_DIR, which programs of OpenSSL and Go
// read, or else the system's. None at all is an error.
func Authorities(lookup func(string) (string, bool)) ([][]byte, error) {
	switch file, dirs := AuthorityPlaces(lookup); {
	case file != "":
		return ReadAuthorities(file)
	case len(dirs) > 0:
		return authoritiesIn(dirs)
	}
	for _, name := range authorityFiles {
		found, err := ReadAuthorities(name)
		if !errors.Is(err, fs.ErrNotExist) {
			return found, err
		}
	}
	return authoritiesIn(authorityDirs)
}

// AuthorityPlaces returns what SSL_CERT_FILE and SSL_CERT_DIR name in place of the system's
// authorities; empty: nothing.
func AuthorityPlaces(lookup func(string) (string, bool)) (file string, dirs []string) {
	file, _ = lookup("SSL_CERT_FILE")
	list, _ := lookup("SSL_CERT_DIR")
	return file, filepath.SplitList(list)
}

// ReadAuthorities reads one bundle of certificates; none is an error.
func ReadAuthorities(name string) ([][]byte, error) {
	data, err := boundedfile.Read(name, maxBundle)
	if err != nil {
		return nil, err
	}
	return sortedAuthorities(parseAuthorities(data), name)
}

// authoritiesIn reads all files of the directories that are there.
func authoritiesIn(dirs []string) ([][]byte, error) {
	var out [][]byte
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, e := range entries {
			if data, err := boundedfile.Read(filepath.Join(dir, e.Name()), maxBundle); err == nil {
				if out = append(out, parseAuthorities(data)...); len(out) > 2*firewall.MaxRoots { // links name each twice
					return nil, tooMany(dir)
				}
			}
		}
	}
	return sortedAuthorities(out, strings.Join(dirs, ", "))
}

// parseAuthorities returns the certificates of PEM; what can't be read signs nothing.
func parseAuthorities(data []byte) (out [][]byte) {
	for {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			return out
		}
		if block.Type != "CERTIFICATE" || len(block.Headers) > 0 {
			continue
		}
		if _, err := x509.ParseCertificate(block.Bytes); err == nil && len(block.Bytes) <= firewall.MaxRoot {
			out = append(out, block.Bytes)
		}
	}
}

func sortedAuthorities(all [][]byte, where string) ([][]byte, error) {
	sortfunc.Stable(all, bytes.Compare)
	all = slices.CompactFunc(all, bytes.Equal)
	switch {
	case len(all) == 0:
		return nil, fmt.Errorf("there is no certificate in %s", where)
	case len(all) > firewall.MaxRoots:
		return nil, tooMany(where)
	}
	return all, nil
}

func tooMany(where string) error {
	return fmt.Errorf("there are more than %d certificates in %s", firewall.MaxRoots, where)
}
