package proxy

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/events"
)

// exchange sends one request to the upstream and its response to the client.
// keep tells whether another request may follow; an error means that the
// client's connection can't be used any more.
func (s *httpSession) exchange(req *http.Request) (keep bool, err error) {
	wantClose := req.Close || !req.ProtoAtLeast(1, 1)
	upgrade := cleanHeaders(req.Header)
	if req.Header.Get("Content-Length") != "" {
		req.Header.Del("Content-Length")
	}

	// The request's body is what follows its head, by the framing that the
	// head declares; http.ReadRequest saw the head alone.
	body := s.body(req)
	if err := s.writeHead(req); err != nil {
		return false, s.broken(err)
	}
	req.Header = nil // may be large, and is sent
	s.large.free()
	sent, finished := make(chan error, 1), false
	defer func() {
		if !finished { // the body is still being read: both sides end with it
			s.up.reset()
			_ = s.c.SetReadDeadline(time.Unix(1, 0))
			<-sent
			_ = s.c.SetReadDeadline(time.Time{})
		}
	}()
	if body == nil {
		sent <- s.ubw.Flush()
	} else {
		go func() { sent <- s.sendBody(req, body) }()
	}

	cw := writers.Get().(*bufio.Writer)
	cw.Reset(s.c)
	defer func() { cw.Reset(nil); writers.Put(cw) }()
	// Reads from the upstream first send what the client has to get.
	fl := &flusher{from: s.up, to: cw, large: &s.largeUp}
	s.ubr.Reset(fl)
	var resp *http.Response
	for {
		fl.head()
		if resp, err = http.ReadResponse(s.ubr, req); err != nil {
			return false, s.broken(err)
		}
		fl.inHead = false
		if len(resp.Header) > smallLines && !s.largeUp.take() {
			return false, errBusy
		}
		if resp.StatusCode == http.StatusSwitchingProtocols {
			return false, s.switchProtocols(cw, resp, req, upgrade)
		}
		if resp.StatusCode/100 != 1 {
			break
		}
		if req.ProtoAtLeast(1, 1) { // RFC 9110 §15.2
			if err := writeResponse(cw, resp, req, true, &s.largeUp); err != nil {
				return false, err
			}
		}
	}
	// A response may come before the request's end; then the connection can't
	// go on after it.
	whole := false
	select {
	case err := <-sent:
		finished, whole = true, err == nil
	case <-time.After(bodyGrace):
	}
	untilEnd := resp.ContentLength < 0 && !req.ProtoAtLeast(1, 1)
	keep = whole && !wantClose && !resp.Close && !untilEnd
	err = writeResponse(cw, resp, req, keep, &s.largeUp)
	resp.Body.Close()
	if err != nil {
		return false, err
	}
	return keep, nil
}

// broken says why the upstream gave no response, if that was the budget.
func (s *httpSession) broken(err error) error {
	if !s.up.over.Load() {
		return err
	}
	p := s.room.Policy()
	return s.room.denied(s.c, p, s.upTo, firewall.Decision{Rule: s.up.rule, Reason: events.ReasonUpload}, false)
}

// bodyGrace is how long the end of a request's body may come behind the head of
// the response.
const bodyGrace = 20 * time.Millisecond

// body returns the reader of the request's body, nil if it has none.
func (s *httpSession) body(req *http.Request) io.Reader {
	if len(req.TransferEncoding) > 0 {
		// The chunk parser reads from s.br itself, so that it takes nothing of
		// the next request.
		return httputil.NewChunkedReader(s.br)
	}
	if req.ContentLength > 0 {
		return io.LimitReader(s.br, req.ContentLength)
	}
	return nil
}

// clientReader reads from the client; while a body is carried, it sends what is
// buffered for the upstream before it waits.
type clientReader struct {
	c  net.Conn
	to *bufio.Writer // nil between bodies
}

func (r *clientReader) Read(b []byte) (int, error) {
	if r.to != nil {
		if err := r.to.Flush(); err != nil {
			return 0, err
		}
	}
	return r.c.Read(b)
}

// writeHead writes the request's head anew, in origin-form, so that nothing of
// the client's way of writing it reaches the upstream.
func (s *httpSession) writeHead(req *http.Request) error {
	target := req.URL.RequestURI()
	if req.Method == http.MethodOptions && req.RequestURI == "*" {
		target = "*"
	}
	w := s.ubw
	if _, err := io.WriteString(w, req.Method+" "+target+" HTTP/1.1\r\nHost: "+req.Host+"\r\n"); err != nil {
		return err
	}
	if err := req.Header.Write(w); err != nil {
		return err
	}
	switch {
	case len(req.TransferEncoding) > 0:
		io.WriteString(w, "Transfer-Encoding: chunked\r\n")
	case req.ContentLength > 0, req.Method == http.MethodPost, req.Method == http.MethodPut, req.Method == http.MethodPatch:
		io.WriteString(w, "Content-Length: "+itoa(req.ContentLength)+"\r\n")
	}
	_, err := io.WriteString(w, "\r\n")
	return err
}

func (s *httpSession) sendBody(req *http.Request, body io.Reader) error {
	s.cr.to = s.ubw
	defer func() { s.cr.to = nil }()
	if len(req.TransferEncoding) == 0 {
		n, err := io.Copy(struct{ io.Writer }{s.ubw}, body)
		if err == nil && n < req.ContentLength {
			err = io.ErrUnexpectedEOF
		}
		if err == nil {
			err = s.ubw.Flush()
		}
		return s.bodyFailed(err)
	}
	cw := httputil.NewChunkedWriter(s.ubw)
	_, err := io.Copy(struct{ io.Writer }{cw}, body)
	if err == nil {
		err = cw.Close()
	}
	if err == nil {
		err = s.trailers()
	}
	if err == nil {
		_, err = io.WriteString(s.ubw, "\r\n")
	}
	if err == nil {
		err = s.ubw.Flush()
	}
	return s.bodyFailed(err)
}

// trailers reads the client's trailers, which aren't passed on.
func (s *httpSession) trailers() error {
	for size := 0; size < maxHead; {
		line, err := s.br.ReadSlice('\n')
		if err != nil {
			return err
		}
		if len(line) == 2 && line[0] == '\r' {
			return nil
		}
		if name, _, ok := bytes.Cut(line, []byte(":")); !ok || !isToken(string(name)) || !bytes.HasSuffix(line, []byte("\r\n")) {
			return bad("malformed trailer")
		}
		size += len(line)
	}
	return errHeadTooLarge
}

// bodyFailed ends the upstream connection when the client's body broke off, so
// that the upstream doesn't wait for the rest or take the next request for it.
func (s *httpSession) bodyFailed(err error) error {
	if err != nil {
		s.up.reset()
	}
	return err
}

var errSwitch = errors.New("the upstream switches protocols unasked")

// switchProtocols carries a WebSocket after its handshake.
func (s *httpSession) switchProtocols(cw *bufio.Writer, resp *http.Response, req *http.Request, asked string) error {
	if asked == "" || cleanHeaders(resp.Header) != asked {
		return errSwitch
	}
	if _, err := io.WriteString(cw, "HTTP/1.1 "+resp.Status+"\r\n"); err != nil {
		return err
	}
	if err := resp.Header.Write(cw); err != nil {
		return err
	}
	if _, err := io.WriteString(cw, "\r\n"); err != nil {
		return err
	}
	// What either side has said already is sent before the connections are
	// joined bare.
	if _, err := io.CopyN(cw, s.ubr, int64(s.ubr.Buffered())); err != nil {
		return err
	}
	if err := cw.Flush(); err != nil {
		return err
	}
	if _, err := io.CopyN(s.up, s.br, int64(s.br.Buffered())); err != nil {
		return err
	}
	s.room.splice(s.c, s.up)
	return nil
}
