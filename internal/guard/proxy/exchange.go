package proxy

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/buffers"
	"github.com/llmdo/workshop/internal/guard/events"
	"github.com/llmdo/workshop/internal/guard/panics"
)

// exchange sends one request to the upstream and its response to the client.
// keep reports whether another request may follow; an error means that the
// client's connection can't be used any more.
func (s *httpSession) exchange(req *http.Request) (keep bool, err error) {
	upgrade := cleanHeaders(req.Header)
	req.Header.Del("Content-Length")
	s.at.clean(req.Header)
	s.at.gitHeaders(req.Header)
	if err := s.requests.writeHead(req, s.at); err != nil {
		return false, s.broken(err)
	}
	forget(req)
	s.large.free()
	body := s.send(req)
	cw := s.up.toClient()
	cw.Reset(s.up.size.Writer(s.c))
	keep, err = s.respond(cw, req, upgrade, body)
	s.stop(body)
	putWriter(cw)
	return keep, err
}

// sending is a request's body being sent.
type sending struct {
	side  *requestSide
	ended chan error // gets one error
	err   error      // received from ended
	over  bool       // err is set
}

// send begins to send what follows the head. Until that is done, s.requests is nil.
func (s *httpSession) send(req *http.Request) *sending {
	if bodyless(req) {
		return &sending{over: true, err: s.requests.ubw.Flush()}
	}
	x, up, to := &sending{side: s.requests, ended: make(chan error, 1)}, s.up, s.upTo.host
	s.requests = nil
	go func() {
		err := panics.Try(func() error { return x.side.sendBody(req) })
		if err != nil {
			// The upstream must neither wait for the rest nor take the next request for it.
			up.reset()
			if errors.As(err, new(*badRequest)) {
				s.report(firewall.Decision{Reason: events.ReasonMalformed}, to)
			}
		}
		x.ended <- err
	}()
	return x
}

// wait waits until sending has ended, or until limit, and reports whether the
// whole request was sent.
func (s *httpSession) wait(x *sending, limit <-chan time.Time) bool {
	if !x.over {
		select {
		case x.err = <-x.ended:
			panics.Again(x.err)
			x.over, s.requests = true, x.side
		case <-limit:
			return false
		}
	}
	return x.err == nil
}

// stop aborts a request still being sent, by ending both sides.
func (s *httpSession) stop(x *sending) {
	if x.over {
		return
	}
	s.up.reset()
	_ = s.c.SetReadDeadline(time.Unix(1, 0))
	s.wait(x, nil)
	_ = s.c.SetReadDeadline(time.Time{})
}

// respond reads the response and sends it to the client; the request's body may
// still be being sent.
func (s *httpSession) respond(cw *bufio.Writer, req *http.Request, upgrade string, body *sending) (keep bool, err error) {
	// Reads from the upstream first flush what is buffered for the client.
	h := &heads{from: s.up.reader(cw), large: &s.largeUp}
	s.ubr.Reset(h)
	var resp *http.Response
	for informational := 0; ; informational++ {
		if informational > maxInformational {
			return false, errInformational
		}
		h.head()
		if resp, err = http.ReadResponse(s.ubr, req); err != nil {
			return false, s.broken(err)
		}
		h.inHead = false
		s.answered(resp)
		if len(resp.Header) > smallLines && !s.largeUp.take() {
			return false, errBusy
		}
		if resp.StatusCode == http.StatusSwitchingProtocols {
			return false, s.switchProtocols(cw, resp, upgrade)
		}
		if resp.StatusCode/100 != 1 {
			break
		}
		if req.ProtoAtLeast(1, 1) { // RFC 9110 §15.2
			if err := writeResponse(cw, resp, req, true, &s.largeUp, s.up.size); err != nil {
				return false, err
			}
		}
	}
	if why := s.gitAnswered(resp); why != "" {
		return false, answer(s.c, http.StatusBadGateway, nil, "workshop: "+why+"\n", false)
	}
	// A response may arrive before the request's end; the connection can't be
	// reused after that.
	whole := s.wait(body, time.After(bodyGrace))
	wantClose := req.Close || !req.ProtoAtLeast(1, 1)
	untilEnd := resp.ContentLength < 0 && !req.ProtoAtLeast(1, 1)
	keep = whole && !wantClose && !resp.Close && !untilEnd
	if err := writeResponse(cw, resp, req, keep, s.headPlace(), s.up.size); err != nil {
		return false, err
	}
	return keep, nil
}

// maxInformational bounds the informational responses to a request (RFC 9110 §15.2):
// a server that sends them without end would occupy the CPU of all rooms (B60).
const maxInformational = 16

var errInformational = errors.New("too many informational responses")

// forget frees the large parts of a request's head once it is sent: the body may
// take long.
func forget(req *http.Request) {
	*req = http.Request{
		Method: strings.Clone(req.Method), ProtoMajor: req.ProtoMajor, ProtoMinor: req.ProtoMinor,
		ContentLength: req.ContentLength, TransferEncoding: req.TransferEncoding, Close: req.Close,
	}
}

// broken answers the client if its budget is why the upstream sent no response;
// otherwise it returns err.
func (s *httpSession) broken(err error) error {
	if !s.up.over.Load() {
		return err
	}
	return s.room.denied(s.c, s.upTo.host, firewall.Decision{Rule: s.up.rule, Reason: events.ReasonUpload}, false)
}

// bodyGrace is how long after the head of the response a request's body may end.
const bodyGrace = 20 * time.Millisecond

// bodyless reports whether a request has no body.
func bodyless(req *http.Request) bool {
	return req.ContentLength == 0 && len(req.TransferEncoding) == 0
}

// requestSide reads requests from the client and writes them to the upstream. One
// goroutine at a time owns all of it: the session's, or while a body is sent, the
// one that sends it.
type requestSide struct {
	cr  *clientReader
	br  *bufio.Reader // reads from cr
	ubw *bufio.Writer // nil without an upstream
	// begun, if set, is the body in place of what is left in br: its beginning was read.
	begun io.Reader
	size  buffers.Size // of the upstream
}

func newRequestSide(c net.Conn) *requestSide {
	cr := &clientReader{c: c}
	br := readers.Get().(*bufio.Reader)
	br.Reset(cr)
	return &requestSide{cr: cr, br: br}
}

// clientReader reads from the client; while a body is carried, it flushes the
// upstream's buffer before it waits.
type clientReader struct {
	c  net.Conn
	to *bufio.Writer // nil between bodies
	// failed: a connection ended, so that an error isn't the body's fault.
	failed bool
	turn   buffers.Turn
}

func (r *clientReader) Read(b []byte) (n int, err error) {
	defer func() { r.failed = r.failed || err != nil }()
	if r.to != nil {
		if err := r.to.Flush(); err != nil {
			return 0, err
		}
	}
	n, err = r.c.Read(b)
	r.turn.Took(n)
	return n, err
}

// chunks reads a chunked body from the client; a malformed chunk is a
// badRequest.
type chunks struct {
	r    io.Reader
	side *requestSide
}

func (c chunks) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	if err != nil && err != io.EOF && !c.side.cr.failed {
		err = bad("malformed chunk: %v", err)
	}
	return n, err
}

// writeHead serializes the request's head again, in origin-form, so that none of
// the client's bytes reach the upstream as written, except the target of a request to an
// endpoint, at, that was checked by it.
func (s *requestSide) writeHead(req *http.Request, at *endpoint) error {
	w := s.ubw
	if _, err := io.WriteString(w, req.Method+" "+at.target(req)+" HTTP/1.1\r\nHost: "+req.Host+"\r\n"); err != nil {
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
	return at.endHead(w)
}

// sendBody sends the body by the framing that the head declares; http.ReadRequest
// saw the head alone.
func (s *requestSide) sendBody(req *http.Request) error {
	s.cr.to = s.ubw
	defer func() { s.cr.to = nil }()
	body := s.body(req)
	if len(req.TransferEncoding) == 0 {
		n, err := s.size.Copy(s.ubw, body)
		if err == nil && n < req.ContentLength {
			err = io.ErrUnexpectedEOF
		}
		if err == nil {
			err = s.ubw.Flush()
		}
		return err
	}
	cw := httputil.NewChunkedWriter(s.ubw)
	_, err := s.size.Copy(cw, body)
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
	return err
}

// body returns a request's body, to be read once.
func (s *requestSide) body(req *http.Request) io.Reader {
	begun := s.begun
	s.begun = nil
	switch {
	case begun != nil:
		return begun
	case len(req.TransferEncoding) == 0:
		return io.LimitReader(s.br, req.ContentLength)
	}
	// The chunk parser reads from s.br itself, so that it consumes nothing of the
	// next request.
	return chunks{httputil.NewChunkedReader(s.br), s}
}

// trailers reads the client's trailers, which aren't passed on.
func (s *requestSide) trailers() error {
	for size := 0; size < maxHead; {
		line, err := s.br.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			return bad("a trailer is too long")
		}
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
	return bad("the trailers are too long")
}

var errSwitch = errors.New("the upstream switches protocols without an upgrade request")

// switchProtocols carries a WebSocket after its handshake. The request had no
// body, so this goroutine owns the whole session.
func (s *httpSession) switchProtocols(cw *bufio.Writer, resp *http.Response, requested string) error {
	if requested == "" || cleanHeaders(resp.Header) != requested {
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
	// Buffered bytes of either side are sent before the bare connections are
	// joined.
	if _, err := io.CopyN(cw, s.ubr, int64(s.ubr.Buffered())); err != nil {
		return err
	}
	if err := cw.Flush(); err != nil {
		return err
	}
	br := s.requests.br
	if _, err := io.CopyN(s.up, br, int64(br.Buffered())); err != nil {
		return err
	}
	s.room.splice(s.c, s.up)
	return nil
}
