package testnet

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"sync"
	"testing"
	"time"
)

// authority makes certificates for every name that is asked for.
type authority struct {
	pem  []byte
	cert *x509.Certificate
	key  *ecdsa.PrivateKey

	mu     sync.Mutex
	serial int64
	leaf   map[string]*tls.Certificate
}

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	tmpl := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "workshop test internet"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(48 * time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &authority{
		pem:  pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		cert: cert, key: key, serial: 1, leaf: map[string]*tls.Certificate{},
	}, nil
}

// certificate returns the certificate of a name or address.
func (a *authority) certificate(name string) (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.leaf[name]; c != nil {
		return c, nil
	}
	c, err := a.sign(name, a.cert.NotBefore, a.cert.NotAfter)
	if err == nil && len(a.leaf) < 10_000 {
		a.leaf[name] = c
	}
	return c, err
}

// Certificate is one for a name, as the servers have it.
func (in *Internet) Certificate(name string) (*tls.Certificate, error) {
	return in.ca.certificate(name)
}

// Authority gives a host an authority of its own, until the test ends, and returns its
// certificate as PEM.
func (in *Internet) Authority(t testing.TB, host string) []byte {
	t.Helper()
	a, err := newAuthority()
	if err != nil {
		t.Fatal(err)
	}
	set := func(a *authority) {
		in.mu.Lock()
		defer in.mu.Unlock()
		if in.own == nil {
			in.own = map[string]*authority{}
		}
		in.own[host] = a
	}
	set(a)
	t.Cleanup(func() { set(nil) })
	return a.pem
}

// authority is the one that vouches for a host.
func (in *Internet) authority(host string) *authority {
	in.mu.Lock()
	defer in.mu.Unlock()
	if a := in.own[host]; a != nil {
		return a
	}
	return in.ca
}

// Expired is a certificate for a name that was valid until an hour ago.
func (in *Internet) Expired(name string) (*tls.Certificate, error) {
	in.ca.mu.Lock()
	defer in.ca.mu.Unlock()
	return in.ca.sign(name, time.Now().Add(-48*time.Hour), time.Now().Add(-time.Hour))
}

// Foreign is a certificate for a name by an authority that nobody knows.
func Foreign(name string) (*tls.Certificate, error) {
	a, err := newAuthority()
	if err != nil {
		return nil, err
	}
	return a.certificate(name)
}

// sign makes a certificate.
func (a *authority) sign(name string, from, until time.Time) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	a.serial++
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(a.serial),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    from,
		NotAfter:     until,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if ip := net.ParseIP(name); ip != nil {
		tmpl.IPAddresses = []net.IP{ip}
	} else {
		tmpl.DNSNames = []string{name}
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, a.cert, key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
