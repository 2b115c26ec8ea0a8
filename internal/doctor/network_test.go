package doctor

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

func TestResolvers(t *testing.T) {
	got := Resolvers("# x\nnameserver 198.51.100.1\noptions y\nnameserver 2001:db8::1\nnameserver bad\nnameserver\nnameserver 198.51.100.2\nnameserver 198.51.100.3\n")
	if len(got) != 3 || got[1].String() != "[2001:db8::1]:53" {
		t.Errorf("got %v", got)
	}
}

// resolver answers each question as answer says; nil: not at all.
func resolver(t *testing.T, answer func(q dnsmessage.Message) []byte) netip.AddrPort {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	go func() {
		b := make([]byte, 512)
		for {
			n, from, err := c.ReadFrom(b)
			if err != nil {
				return
			}
			var q dnsmessage.Message
			if q.Unpack(b[:n]) == nil && answer != nil {
				_, _ = c.WriteTo(answer(q), from)
			}
		}
	}()
	return c.LocalAddr().(*net.UDPAddr).AddrPort()
}

func TestAskResolver(t *testing.T) {
	asked := make(chan string, 1)
	refuses := func(q dnsmessage.Message) []byte {
		asked <- q.Questions[0].Name.String()
		q.Response, q.RCode = true, dnsmessage.RCodeRefused
		b, _ := q.Pack()
		return b
	}
	if err := askResolver(t.Context(), resolver(t, refuses)); err != nil {
		t.Errorf("a refusal is an answer: %v", err)
	}
	if name := <-asked; name != "localhost." {
		t.Errorf("it was asked for %q", name)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := askResolver(ctx, resolver(t, nil)); err == nil || err.Error() != "no answer" {
		t.Errorf("got %v, want no answer", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := askResolver(ctx, resolver(t, func(dnsmessage.Message) []byte { return []byte("garbage") })); err == nil {
		t.Error("garbage is an answer")
	}
}

func TestResolversFinding(t *testing.T) {
	list := []netip.AddrPort{netip.MustParseAddrPort("198.51.100.1:53"), netip.MustParseAddrPort("198.51.100.2:53")}
	no := errors.New("no answer")
	for _, tt := range []struct {
		servers []netip.AddrPort
		failed  []error
		level   Level
		says    string
	}{
		{list, []error{nil, nil}, OK, "the resolver answers: 198.51.100.1, 198.51.100.2"},
		{list, []error{nil, no}, Warning, "198.51.100.1 answers, but not 198.51.100.2 (no answer)"},
		{list, []error{no, no}, Warning, "no resolver answers: 198.51.100.1 (no answer)"},
		{nil, nil, Warning, "/x has no nameserver"},
	} {
		if f := resolversFinding("/x", tt.servers, tt.failed); f.Level != tt.level || !strings.Contains(f.Text, tt.says) || (f.Do == "") != (f.Level == OK) {
			t.Errorf("got %+v, want %s: %s", f, tt.level, tt.says)
		}
	}
	if f := DNS(t.Context(), "/does/not/exist"); len(f) != 1 || f[0].Level != Warning {
		t.Errorf("got %+v", f)
	}
}

// A proxy is named by host and port; what is secret in its URL is never said.
func TestProxies(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	look := func(vars map[string]string) []Finding {
		return Proxies(t.Context(), func(name string) (string, bool) { v, ok := vars[name]; return v, ok })
	}
	check := func(name string, got []Finding, n int, level Level, says string) {
		t.Helper()
		if len(got) != n || got[0].Level != level || !strings.Contains(got[0].Text, says) || strings.Contains(got[0].Text+got[0].Do, "s3cret") {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	check("none", look(nil), 1, OK, "no proxy")
	both := map[string]string{"HTTPS_PROXY": "http://u:s3cret@" + at, "http_proxy": at}
	check("answers, asked once", look(both), 1, OK, "the proxy of HTTPS_PROXY, "+at+", can be reached")
	check("not a URL", look(map[string]string{"HTTP_PROXY": "http://u:s3cret@[::"}), 1, Warning, "HTTP_PROXY is not the URL of a proxy")
	check("unknown scheme", look(map[string]string{"ALL_PROXY": "x://u:s3cret@h"}), 1, Warning, "is not the URL")
	l.Close()
	check("refused", look(both), 1, Warning, "can't be reached: connection refused")
}

func TestProxyAddress(t *testing.T) {
	for value, want := range map[string]string{
		"http://h": "h:80", "https://h/": "h:443", "h:3128": "h:3128", "socks5://h": "h:1080", "http://[2001:db8::1]:8080": "[2001:db8::1]:8080", "": "", "x://h": "",
	} {
		if got, err := proxyAddress(value); got != want || (err != nil) != (want == "") {
			t.Errorf("%q: got %q, %v, want %q", value, got, err, want)
		}
	}
}

func TestCertificates(t *testing.T) {
	root, none := t.TempDir(), func(string) (string, bool) { return "", false }
	if f := Certificates(root, none); f[0].Level != Warning || f[0].Do == "" {
		t.Errorf("got %+v", f)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	cert := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(root, "etc/ssl/certs/ca-certificates.crt")
	data := append([]byte("garbage\n-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, data, 0o644)); err != nil {
		t.Fatal(err)
	}
	if f := Certificates(root, none); f[0].Level != OK || !strings.HasPrefix(f[0].Text, "1 authorities in /etc/ssl") {
		t.Errorf("got %+v", f)
	}
	gone := func(string) (string, bool) { return filepath.Join(root, "gone"), true }
	if f := Certificates(root, gone); f[0].Level != Warning || !strings.Contains(f[0].Do, "unset SSL_CERT_FILE") {
		t.Errorf("got %+v", f)
	}
}
