package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/llmdo/workshop/internal/guard/egress"
	"github.com/llmdo/workshop/internal/guard/events"
	"github.com/llmdo/workshop/internal/guard/share"
)

// roots are what the host's certificate is verified by: those that came with the credential,
// or the room's; nil: nothing.
func (e *endpoint) roots(r *Room) *x509.CertPool {
	switch {
	case e.held != nil && e.held.Roots != nil:
		return e.held.Roots
	case r.Roots == nil:
		return nil
	}
	return r.Roots()
}

// value is the number of the credential's value; 0: none.
func (e *endpoint) value() uint64 {
	if e == nil || e.held == nil {
		return 0
	}
	return e.held.ID
}

// secure begins TLS with the host of an endpoint, whose certificate must be valid for its
// name (B33). Errors are a [certificateError] or of the connection.
func (e *endpoint) secure(ctx context.Context, w *way, host string) error {
	if e == nil {
		return nil
	}
	roots := e.roots(w.room)
	if roots == nil {
		return &certificateError{"there is nothing to verify the host's certificate by"} // crypto/tls would take the system's
	}
	place, ok := w.room.Secure.Try()
	if !ok {
		return errBusy
	}
	t := &secured{from: flusher{from: w}, place: place}
	below := rawWay{w, &t.from}
	if w.size.Splice {
		t.wide = wideReaders.Get().(*bufio.Reader)
		t.wide.Reset(&t.from)
		below.from = t.wide
	}
	w.tls = t // what ends the way frees the place
	t.Conn = tls.Client(below, &tls.Config{ServerName: host, RootCAs: roots, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}})
	ctx, cancel := context.WithTimeout(ctx, egress.Timeout)
	defer cancel()
	if err := t.HandshakeContext(ctx); err != nil {
		if bad := new(tls.CertificateVerificationError); errors.As(err, &bad) {
			e, why := w.event, whyUnverified(bad.Err)
			e.Verdict, e.Reason, e.Why = events.Note, events.ReasonCertificate, "allowed, but "+why
			w.room.Report(e)
			return &certificateError{why}
		}
		return fmt.Errorf("tls: %w", err)
	}
	return nil
}

// secured is TLS with the host of an endpoint.
type secured struct {
	*tls.Conn
	from  flusher // what TLS reads from
	place share.Place
	// wide, if set, is between both: all records that it has are few writes to the client,
	// each of which wakes it.
	wide *bufio.Reader
}

// certificateError is why a host's certificate isn't accepted, in fixed words.
type certificateError struct{ why string }

func (e *certificateError) Error() string { return e.why }

// whyUnverified describes an error of crypto/x509 without text of the certificate.
func whyUnverified(err error) string {
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, new(x509.HostnameError)):
		return "the host's certificate is for another name"
	case errors.As(err, new(x509.UnknownAuthorityError)):
		return "the host's certificate is not signed by an authority that the host machine trusts"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "the host's certificate has expired or is not valid yet"
	}
	return "the host's certificate can't be verified"
}

// rawWay is a way as the connection below TLS: its bytes are counted, and bounded by the
// line's budget.
type rawWay struct {
	*way
	from io.Reader
}

func (w rawWay) Read(b []byte) (int, error) { return w.from.Read(b) }

func (w rawWay) Close() error                       { return w.conn.Close() }
func (w rawWay) LocalAddr() net.Addr                { return w.conn.LocalAddr() }
func (w rawWay) RemoteAddr() net.Addr               { return w.conn.RemoteAddr() }
func (w rawWay) SetDeadline(t time.Time) error      { return w.conn.SetDeadline(t) }
func (w rawWay) SetReadDeadline(t time.Time) error  { return w.conn.SetReadDeadline(t) }
func (w rawWay) SetWriteDeadline(t time.Time) error { return w.conn.SetWriteDeadline(t) }
