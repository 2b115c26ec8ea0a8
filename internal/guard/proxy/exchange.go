package proxy

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"runtime"
	"strings"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/buffers"
	"github.com/llmdo/workshop/internal/guard/events"
	"github.com/llmdo/workshop/internal/guard/panics"
)

// exchange sends one request to the upstream and its response to the client.
// keep tells whether another request may follow; an error means that the
// client's connection can't be used any more.
func (s *httpSession) exchange(req *http.Request) (keep bool, err error) {
	upgrade := cleanHeaders(req.Header)
	req.Header.Del("Content-Length")
	if err := s.requests.writeHead(req); err != nil {
		return false, s.broken(err)
	}
	forget(req)
	s.large.free()
	body := s.send(req)
	cw := writers.Get().(*bufio.Writer)
	cw.Reset(s.up.size.Writer(s.c))
	keep, err = s.respond(cw, req, upgrade, body)
	s.stop(body)
	putWriter(cw)
	return keep, err
}

// sending is the rest of a request on its way.
type sending struct {
	side  *requestSide
	ended chan error // has one
	err   error      // what it had
	over  bool       // err is there
}

// send begins to send what follows the head. Until it has ended, s.requests is nil.
func (s *httpSession) send(req *http.Request) *sending {
	if bodyless(req) {
		return &sending{over: true, err: s.requests.ubw.Flush()}
	}
	x, up, to := &sending{side: s.requests, ended: make(chan error, 1)}, s.up, s.upTo.host
	s.requests = nil
	go func() {
		err := panics.Try(func() error { return x.side.sendBody(req) })
		if err != nil {
			// The upstream doesn't wait for the rest, or take the next request for it.
			up.reset()
			if errors.As(err, new(*badRequest)) {
				s.report(firewall.Decision{Reason: events.ReasonMalformed}, to)
			}
		}
		x.ended <- err
	}()
	return x
}

// wait waits until nothing is sent any more, or until limit, and reports whether
// the request was sent as a whole.
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

// stop ends what is still being sent: both sides end with it.
func (s *httpSession) stop(x *sending) {
	if x.over {
		return
	}
	s.up.reset()
	_ = s.c.SetReadDeadline(time.Unix(1, 0))
	s.wait(x, nil)
	_ = s.c.SetReadDeadline(time.Time{})
}

// respond reads the response and sends it to the client, while the request's body
// may still be under way.
func (s *httpSession) respond(cw *bufio.Writer, req *http.Request, upgrade string, body *sending) (keep bool, err error) {
	// Reads from the upstream first send what the client has to get.
	fl := &flusher{from: s.up, to: cw, large: &s.largeUp}
	s.ubr.Reset(fl)
	var resp *http.Response
	for informational := 0; ; informational++ {
		if informational > maxInformational {
			return false, errInformational
		}
		fl.head()
		if resp, err = http.ReadResponse(s.ubr, req); err != nil {
			return false, s.broken(err)
		}
		fl.inHead = false
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
	// A response may come before the request's end; then the connection can't
	// go on after it.
	whole := s.wait(body, time.After(bodyGrace))
	wantClose := req.Close || !req.ProtoAtLeast(1, 1)
	untilEnd := resp.ContentLength < 0 && !req.ProtoAtLeast(1, 1)
	keep = whole && !wantClose && !resp.Close && !untilEnd
	if err := writeResponse(cw, resp, req, keep, &s.largeUp, s.up.size); err != nil {
		return false, err
	}
	return keep, nil
}

// maxInformational bounds the responses before the one that counts (RFC 9110 §15.2):
// a server that sends them without end would have the processor of all rooms (B60).
const maxInformational = 16

var errInformational = errors.New("too many informational responses")

// forget drops what a request's head may have much of, once it is sent: the body
// may take long.
func forget(req *http.Request) {
	*req = http.Request{
		Method: strings.Clone(req.Method), ProtoMajor: req.ProtoMajor, ProtoMinor: req.ProtoMinor,
		ContentLength: req.ContentLength, TransferEncoding: req.TransferEncoding, Close: req.Close,
	}
}

// broken says why the upstream gave no response, if that was the budget.
func (s *httpSession) broken(err error) error {
	if !s.up.over.Load() {
		return err
	}
	p := s.room.Policy()
	return s.room.denied(s.c, p, s.upTo.host, firewall.Decision{Rule: s.up.rule, Reason: events.ReasonUpload}, false)
}

// bodyGrace is how long the end of a request's body may come behind the head of
// the response.
const bodyGrace = 20 * time.Millisecond

// bodyless tells whether nothing follows a request's head.
func bodyless(req *http.Request) bool {
	return req.ContentLength == 0 && len(req.TransferEncoding) == 0
}

// requestSide is what requests go through: it reads from the client and writes to
// the upstream. One goroutine at a time has it, and whoever has it may use all of
// it: the session's, but while a body is sent, the one that sends it.
type requestSide struct {
	cr   *clientReader
	br   *bufio.Reader // reads from cr
	ubw  *bufio.Writer // nil without an upstream
	size buffers.Size  // of the upstream
}

func newRequestSide(c net.Conn) *requestSide {
	cr := &clientReader{c: c}
	br := readers.Get().(*bufio.Reader)
	br.Reset(cr)
	return &requestSide{cr: cr, br: br}
}

// clientReader reads from the client; while a body is carried, it sends what is
// buffered for the upstream before it waits.
type clientReader struct {
	c  net.Conn
	to *bufio.Writer // nil between bodies
	// failed says that a connection ended, so that no error is the body's own.
	failed bool
}

func (r *clientReader) Read(b []byte) (n int, err error) {
	defer func() { r.failed = r.failed || err != nil }()
	if r.to != nil {
		if err := r.to.Flush(); err != nil {
			return 0, err
		}
	}
	runtime.Gosched()
	return r.c.Read(b)
}

// chunks reads the body that the client sends in chunks; what isn't one is a
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

// writeHead writes the request's head anew, in origin-form, so that nothing of
// the client's way of writing it reaches the upstream.
func (s *requestSide) writeHead(req *http.Request) error {
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

// sendBody sends what follows the head, by the framing that the head declares;
// http.ReadRequest saw the head alone.
func (s *requestSide) sendBody(req *http.Request) error {
	s.cr.to = s.ubw
	defer func() { s.cr.to = nil }()
	if len(req.TransferEncoding) == 0 {
		n, err := s.size.Copy(s.ubw, io.LimitReader(s.br, req.ContentLength))
		if err == nil && n < req.ContentLength {
			err = io.ErrUnexpectedEOF
		}
		if err == nil {
			err = s.ubw.Flush()
		}
		return err
	}
	// The chunk parser reads from s.br itself, so that it takes nothing of the next
	// request.
	cw := httputil.NewChunkedWriter(s.ubw)
	_, err := s.size.Copy(cw, chunks{httputil.NewChunkedReader(s.br), s})
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

var errSwitch = errors.New("the upstream switches protocols unasked")

// switchProtocols carries a WebSocket after its handshake. The request had no
// body: everything of the session is its goroutine's.
func (s *httpSession) switchProtocols(cw *bufio.Writer, resp *http.Response, asked string) error {
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
	br := s.requests.br
	if _, err := io.CopyN(s.up, br, int64(br.Buffered())); err != nil {
		return err
	}
	s.room.splice(s.c, s.up)
	return nil
}
