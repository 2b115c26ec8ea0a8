//go:build linux

package probe

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/lib/clip"
)

// seenOf turns an error into the reported word: "ok" for nil, the name of a wrapped
// errno, else a word for the few errors without one.
func seenOf(err error) (seen, detail string) {
	if err == nil {
		return "ok", ""
	}
	detail = err.Error()
	var errno syscall.Errno
	var netErr net.Error
	var dnsErr *net.DNSError
	var opErr *net.OpError
	var record tls.RecordHeaderError
	var unknown x509.UnknownAuthorityError
	var hostname x509.HostnameError
	switch {
	case errors.As(err, &dnsErr) && dnsErr.IsNotFound:
		return "NXDOMAIN", detail
	case errors.As(err, &dnsErr) && strings.Contains(dnsErr.Err, "connection refused"): // the resolver keeps the text alone
		return "ECONNREFUSED", detail
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded),
		errors.As(err, &netErr) && netErr.Timeout() && !errors.As(err, &errno):
		return "TIMEOUT", detail
	case errors.As(err, &errno):
		if name := unix.ErrnoName(errno); name != "" {
			return name, detail
		}
		return "ERRNO" + errno.Error(), detail
	case errors.Is(err, fs.ErrNotExist):
		return "ENOENT", detail
	case errors.As(err, &opErr) && opErr.Op == "remote error": // how crypto/tls wraps the other side's alert
		return "TLSALERT", detail
	case errors.As(err, &record):
		return "NOTTLS", detail
	case errors.As(err, &unknown), errors.As(err, &hostname):
		return "BADCERT", detail
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "EOF", detail
	}
	return "ERROR", detail
}

// text shortens received text to fit a line.
func text(b []byte) string { return clip.Bytes(string(b), 400) }
