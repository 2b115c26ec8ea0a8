package proxy

import (
	"bufio"
	"bytes"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/llmdo/workshop/internal/guard/buffers"
)

// hopHeaders belong to one hop (RFC 9110 §7.6.1); other headers are passed on.
var hopHeaders = []string{
	"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization",
	"Te", "Trailer", "Transfer-Encoding", "Upgrade", "Http2-Settings",
	// A worker's claims about the client are not passed on in the guard's name.
	"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip",
}

// cleanHeaders drops hop-by-hop headers and returns the protocol that the
// client wants to switch to, if it is one that is carried.
func cleanHeaders(h http.Header) (upgrade string) {
	upgrade = upgradeOf(h)
	for _, v := range h["Connection"] {
		for _, name := range strings.Split(v, ",") {
			if name = textproto.TrimString(name); name != "" {
				h.Del(name)
			}
		}
	}
	for _, name := range hopHeaders {
		h.Del(name)
	}
	if upgrade != "" {
		h.Set("Connection", "Upgrade")
		h.Set("Upgrade", upgrade)
	}
	return upgrade
}

// checkUpgrade refuses an upgrade with a body: the upstream could switch while the
// body is still being read. A WebSocket begins with a GET (RFC 6455 §4.1). An
// Upgrade in HTTP/1.0 is ignored (RFC 9110 §7.8).
func checkUpgrade(req *http.Request) error {
	if !req.ProtoAtLeast(1, 1) {
		req.Header.Del("Upgrade")
	}
	if upgradeOf(req.Header) != "" && (req.Method != http.MethodGet || !bodyless(req)) {
		return bad("an upgrade to %s must be a GET without a body", upgradeOf(req.Header))
	}
	return nil
}

// upgradeOf is the protocol that a message switches to, if it is one that is
// carried.
func upgradeOf(h http.Header) string {
	if httpguts.HeaderValuesContainsToken(h["Connection"], "Upgrade") && strings.EqualFold(h.Get("Upgrade"), "websocket") {
		return "websocket"
	}
	return ""
}

// lastHop decrements Max-Forwards and reports whether it was 0: such a request is
// answered here (RFC 9110 §7.6.2).
func lastHop(req *http.Request) (bool, error) {
	values := req.Header.Values("Max-Forwards")
	if len(values) == 0 || req.Method != http.MethodTrace && req.Method != http.MethodOptions {
		return false, nil
	}
	n, err := strconv.ParseUint(values[0], 10, 32)
	if err != nil || len(values) > 1 {
		return false, bad("malformed Max-Forwards")
	}
	if n == 0 {
		return true, nil
	}
	req.Header.Set("Max-Forwards", strconv.FormatUint(n-1, 10))
	return false, nil
}

// flusher reads from one side and, before it blocks, flushes the buffer of the
// other: streams flow without a write per line.
type flusher struct {
	from io.Reader
	to   *bufio.Writer // nil: nothing to flush
	turn buffers.Turn
}

func (f *flusher) Read(b []byte) (int, error) {
	if f.to != nil {
		if err := f.to.Flush(); err != nil {
			return 0, err
		}
	}
	n, err := f.from.Read(b)
	f.turn.Took(n)
	return n, err
}

// heads reads responses, and counts while it reads the head of one: net/http accepts heads of
// any length (B60).
type heads struct {
	from         io.Reader
	inHead       bool
	bytes, lines int
	large        *place
}

// head begins to count.
func (h *heads) head() { h.inHead, h.bytes, h.lines = true, 0, 0 }

func (h *heads) Read(b []byte) (int, error) {
	if !h.inHead {
		return h.from.Read(b)
	}
	// Bytes buffered before belong to the head if more is requested.
	switch {
	case h.bytes > maxHead, h.lines > maxLines:
		return 0, errHeadTooLarge
	case h.bytes >= smallHead && !h.large.take():
		return 0, errBusy
	}
	n, err := h.from.Read(b)
	h.bytes += n
	h.lines += bytes.Count(b[:n], []byte("\n"))
	return n, err
}

// writeResponse sends a response to the client unchanged except for hop-by-hop
// headers and framing. large is freed once the head is sent.
func writeResponse(w *bufio.Writer, resp *http.Response, req *http.Request, keep bool, large *place, size buffers.Size) error {
	cleanHeaders(resp.Header)
	bodyless := req.Method == http.MethodHead || resp.StatusCode/100 == 1 || resp.StatusCode == 204 || resp.StatusCode == 304
	chunked := !bodyless && resp.ContentLength < 0 && req.ProtoAtLeast(1, 1)
	if !bodyless && resp.ContentLength >= 0 || req.Method == http.MethodHead && resp.ContentLength > 0 {
		resp.Header.Set("Content-Length", itoa(resp.ContentLength))
	}
	if chunked {
		resp.Header.Set("Transfer-Encoding", "chunked")
		var trailers []string
		for k := range resp.Trailer {
			trailers = append(trailers, k)
		}
		if len(trailers) > 0 {
			resp.Header.Set("Trailer", strings.Join(trailers, ", "))
		}
	}
	if !keep && resp.StatusCode/100 != 1 {
		resp.Header.Set("Connection", "close")
	}
	status := resp.Status // "200 OK"
	if _, err := io.WriteString(w, "HTTP/1.1 "+status+"\r\n"); err != nil {
		return err
	}
	if err := resp.Header.Write(w); err != nil {
		return err
	}
	resp.Header, resp.Status = nil, "" // sent, and may be large
	if len(resp.Trailer) == 0 {
		large.free()
	}
	if _, err := io.WriteString(w, "\r\n"); err != nil {
		return err
	}
	if bodyless {
		return w.Flush()
	}
	if !chunked {
		// Not w.ReadFrom, which reads into its buffer: the flusher concurrently
		// flushes that one.
		if _, err := size.Copy(w, resp.Body); err != nil {
			return err
		}
		return w.Flush()
	}
	cw := httputil.NewChunkedWriter(w)
	if _, err := size.Copy(cw, resp.Body); err != nil {
		return err
	}
	if err := cw.Close(); err != nil {
		return err
	}
	if err := resp.Trailer.Write(w); err != nil {
		return err
	}
	if _, err := io.WriteString(w, "\r\n"); err != nil {
		return err
	}
	return w.Flush()
}

// answer sends a response of the guard's own, with a plain-text body where headers don't say otherwise.
func answer(c net.Conn, status int, headers map[string]string, body string, keep bool) error {
	return respond(c, status, http.StatusText(status), headers, body, keep)
}

// respond is answer with a reason phrase of its own: one line of text.
func respond(c net.Conn, status int, phrase string, headers map[string]string, body string, keep bool) error {
	var b strings.Builder
	b.WriteString("HTTP/1.1 " + itoa(int64(status)) + " " + phrase + "\r\n")
	if headers["Content-Type"] == "" {
		b.WriteString("Content-Type: text/plain; charset=utf-8\r\n")
	}
	b.WriteString("Content-Length: " + itoa(int64(len(body))) + "\r\n")
	for _, k := range slices.Sorted(maps.Keys(headers)) {
		b.WriteString(k + ": " + headers[k] + "\r\n")
	}
	if !keep {
		b.WriteString("Connection: close\r\n")
	}
	b.WriteString("\r\n" + body)
	_ = c.SetWriteDeadline(time.Now().Add(helloTimeout))
	_, err := io.WriteString(c, b.String())
	_ = c.SetWriteDeadline(time.Time{})
	return err
}
