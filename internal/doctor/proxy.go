package doctor

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/llmdo/workshop/internal/lib/boundedfile"
)

// proxyTime is how long a connection to a proxy may take.
const proxyTime = 3 * time.Second

// proxyVariables name the upstream proxy of this machine's programs, and often that of a
// workshop's file. The small ones are curl's.
var proxyVariables = []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"}

// Proxies connects to the proxies that the environment names.
func Proxies(ctx context.Context, lookup func(string) (string, bool)) []Finding {
	var out []Finding
	seen := map[string]bool{}
	for _, name := range proxyVariables {
		value, _ := lookup(name)
		if value == "" {
			continue
		}
		at, err := proxyAddress(value)
		if err != nil {
			// Not the value: it may have a password.
			out = append(out, Finding{Network, "proxy", Warning, name + " is not the URL of a proxy", "correct it: `export " + name + "=http://HOST:PORT`"})
			continue
		}
		if seen[at] {
			continue
		}
		seen[at] = true
		out = append(out, connectProxy(ctx, name, at))
	}
	if len(out) == 0 {
		out = append(out, Finding{Network, "proxy", OK, "no proxy in the environment (HTTPS_PROXY, HTTP_PROXY)", ""})
	}
	return out
}

func connectProxy(ctx context.Context, name, at string) Finding {
	conn, err := (&net.Dialer{Timeout: proxyTime}).DialContext(ctx, "tcp", at)
	if err != nil {
		return Finding{Network, "proxy", Warning, fmt.Sprintf("the proxy of %s, %s, can't be reached: %v", name, at, cause(err)),
			"start it, or do without: `unset " + name + "`"}
	}
	conn.Close()
	return Finding{Network, "proxy", OK, fmt.Sprintf("the proxy of %s, %s, can be reached", name, at), ""}
}

// proxyAddress is host and port of a proxy's URL, whose scheme may be left out.
func proxyAddress(value string) (string, error) {
	if !strings.Contains(value, "://") {
		value = "http://" + value
	}
	u, err := url.Parse(value)
	if err != nil || u.Hostname() == "" {
		return "", fmt.Errorf("not a URL")
	}
	port := map[string]string{"http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}[u.Scheme]
	if u.Port() != "" {
		port = u.Port()
	}
	if port == "" {
		return "", fmt.Errorf("unknown scheme")
	}
	return net.JoinHostPort(u.Hostname(), port), nil
}

// bundles are where distributions have the certificates of authorities, as Go's own
// crypto/x509 looks for them.
var bundles = []string{
	"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
	"/etc/pki/tls/cacert.pem", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/cert.pem",
}

const maxBundle = 16 << 20 // bytes

// Certificates looks for those of authorities below root, which is "/" but in tests.
func Certificates(root string, lookup func(string) (string, bool)) []Finding {
	if file, _ := lookup("SSL_CERT_FILE"); file != "" {
		n, err := countCertificates(file)
		if err != nil || n == 0 {
			return []Finding{{Network, "certificates", Warning, fmt.Sprintf("SSL_CERT_FILE names %s, which has no certificates of authorities", file), "correct it, or do without: `unset SSL_CERT_FILE`"}}
		}
		return []Finding{{Network, "certificates", OK, fmt.Sprintf("%d authorities in %s (SSL_CERT_FILE)", n, file), ""}}
	}
	for _, file := range bundles {
		if n, err := countCertificates(filepath.Join(root, file)); err == nil && n > 0 {
			return []Finding{{Network, "certificates", OK, fmt.Sprintf("%d authorities in %s", n, file), ""}}
		}
	}
	return []Finding{{Network, "certificates", Warning, "no certificates of authorities: images can't be pulled, and with `image: host` workers verify no server", installCertificates(root)}}
}

func installCertificates(root string) string {
	for _, manager := range []struct{ path, command string }{{"usr/bin/apt-get", "apt-get install"}, {"usr/bin/dnf", "dnf install"}, {"sbin/apk", "apk add"}} {
		if _, err := os.Stat(filepath.Join(root, manager.path)); err == nil {
			return "install them: `sudo " + manager.command + " ca-certificates`"
		}
	}
	return "install your distribution's package ca-certificates"
}

func countCertificates(file string) (n int, err error) {
	data, err := boundedfile.Read(file, maxBundle)
	for err == nil {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			break
		}
		if block.Type == "CERTIFICATE" {
			if _, err := x509.ParseCertificate(block.Bytes); err == nil {
				n++
			}
		}
	}
	return n, err
}
