package proxy

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// Heads that two parsers could read differently are refused (RFC 9112 §5, §6,
// §11.2): whatever stands behind, nothing of them is sent.
func TestHeadsThatSmuggle(t *testing.T) {
	const host = "Host: a.example.org\r\n"
	for name, head := range map[string]string{
		"length and coding":        "POST / HTTP/1.1\r\n" + host + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n",
		"coding and length":        "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n",
		"two lengths":              "POST / HTTP/1.1\r\n" + host + "Content-Length: 4\r\nContent-Length: 5\r\n\r\n",
		"the same length twice":    "POST / HTTP/1.1\r\n" + host + "Content-Length: 4\r\nContent-Length: 4\r\n\r\n",
		"a list of lengths":        "POST / HTTP/1.1\r\n" + host + "Content-Length: 4, 4\r\n\r\n",
		"a signed length":          "POST / HTTP/1.1\r\n" + host + "Content-Length: +4\r\n\r\n",
		"a hexadecimal length":     "POST / HTTP/1.1\r\n" + host + "Content-Length: 0x4\r\n\r\n",
		"a padded length":          "POST / HTTP/1.1\r\n" + host + "Content-Length: 04\r\n\r\n",
		"a negative length":        "POST / HTTP/1.1\r\n" + host + "Content-Length: -1\r\n\r\n",
		"a length too large":       "POST / HTTP/1.1\r\n" + host + "Content-Length: 99999999999999999999\r\n\r\n",
		"an empty length":          "POST / HTTP/1.1\r\n" + host + "Content-Length:\r\n\r\n",
		"chunked twice":            "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked, chunked\r\n\r\n",
		"two codings":              "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: gzip, chunked\r\n\r\n",
		"identity":                 "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: identity\r\n\r\n",
		"coding twice":             "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
		"vertical tab in coding":   "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: \x0bchunked\r\n\r\n",
		"quoted coding":            "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: \"chunked\"\r\n\r\n",
		"coding in 1.0":            "POST / HTTP/1.0\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n",
		"space before the colon":   "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding : chunked\r\n\r\n",
		"space before the name":    "POST / HTTP/1.1\r\n" + host + " Transfer-Encoding: chunked\r\n\r\n",
		"folded":                   "POST / HTTP/1.1\r\n" + host + "X: a\r\n\tTransfer-Encoding: chunked\r\n\r\n",
		"folded first line":        "GET / HTTP/1.1\r\n X: y\r\n" + host + "\r\n",
		"no colon":                 "GET / HTTP/1.1\r\n" + host + "X\r\n\r\n",
		"no name":                  "GET / HTTP/1.1\r\n" + host + ": x\r\n\r\n",
		"bare LF":                  "GET / HTTP/1.1\nHost: a.example.org\n\r\n\r\n",
		"bare LF between headers":  "GET / HTTP/1.1\r\n" + host + "X: y\nContent-Length: 4\r\n\r\n",
		"bare CR":                  "GET / HTTP/1.1\r\n" + host + "X: y\rContent-Length: 4\r\n\r\n",
		"NUL":                      "GET / HTTP/1.1\r\n" + host + "X: \x00\r\n\r\n",
		"NUL in the host":          "GET / HTTP/1.1\r\nHost: a.example.org\x00.evil.net\r\n\r\n",
		"two hosts":                "GET / HTTP/1.1\r\n" + host + "Host: evil.example.net\r\n\r\n",
		"the same host twice":      "GET / HTTP/1.1\r\n" + host + host + "\r\n",
		"no host":                  "GET / HTTP/1.1\r\n\r\n",
		"another absolute host":    "GET http://evil.example.net/ HTTP/1.1\r\n" + host + "\r\n",
		"another absolute port":    "GET http://a.example.org:81/ HTTP/1.1\r\n" + host + "\r\n",
		"user info before the @":   "GET http://a.example.org@evil.example.net/ HTTP/1.1\r\n" + host + "\r\n",
		"a target of no form":      "GET a.example.org HTTP/1.1\r\n" + host + "\r\n",
		"a scheme and no host":     "GET http:a HTTP/1.1\r\n" + host + "\r\n",
		"a scheme within one":      "GET x:http://a.example.org/ HTTP/1.1\r\n" + host + "\r\n",
		"a star for GET":           "GET * HTTP/1.1\r\n" + host + "\r\n",
		"HTTP/2":                   "GET / HTTP/2.0\r\n" + host + "\r\n",
		"HTTP/2's preface":         "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"HTTP/0.9":                 "GET /\r\n\r\n",
		"HTTP/1.2":                 "GET / HTTP/1.2\r\n" + host + "\r\n",
		"lower-case version":       "GET / http/1.1\r\n" + host + "\r\n",
		"two spaces":               "GET  / HTTP/1.1\r\n" + host + "\r\n",
		"space in the target":      "GET /a b HTTP/1.1\r\n" + host + "\r\n",
		"tab for a space":          "GET\t/ HTTP/1.1\r\n" + host + "\r\n",
		"a method that isn't one":  "GE(T / HTTP/1.1\r\n" + host + "\r\n",
		"bytes above ASCII in uri": "GET /\xff HTTP/1.1\r\n" + host + "\r\n",
	} {
		if req, err := readHead(bufio.NewReader(strings.NewReader(head)), anyLarge); err == nil {
			t.Errorf("%s: %+v", name, req)
		}
	}
}

// What ends a chunked body is an empty line, not something like it.
func TestTrailers(t *testing.T) {
	for in, ok := range map[string]bool{
		"\r\n": true, "X: y\r\n\r\n": true, "Content-Length: 4\r\n\r\n": true,
		"\n": false, "a\n": false, "X: y\n\r\n": false, "X y\r\n\r\n": false, " X: y\r\n\r\n": false, "": false, "X: y": false,
	} {
		s := &requestSide{br: bufio.NewReader(strings.NewReader(in))}
		if err := s.trailers(); (err == nil) != ok {
			t.Errorf("%q: %v", in, err)
		}
	}
	s := &requestSide{br: bufio.NewReader(repeat("X: y\r\n"))}
	if err := s.trailers(); !errors.As(err, new(*badRequest)) {
		t.Errorf("endless: %v", err)
	}
}

func TestMaxForwards(t *testing.T) {
	for _, c := range []struct {
		method, value, sent string
		last, bad           bool
	}{
		{"TRACE", "0", "", true, false}, {"OPTIONS", "0", "", true, false}, {"TRACE", "3", "2", false, false},
		{"OPTIONS", "-1", "", false, true}, {"TRACE", "x", "", false, true}, {"GET", "0", "0", false, false},
	} {
		req := &http.Request{Method: c.method, Header: http.Header{"Max-Forwards": {c.value}}}
		last, err := lastHop(req)
		if last != c.last || (err != nil) != c.bad || !c.last && !c.bad && req.Header.Get("Max-Forwards") != c.sent {
			t.Errorf("%+v: %v %v %v", c, last, err, req.Header)
		}
	}
}

// FuzzForward: what is sent upstream of a head that is accepted is one head, of
// the same host, target and framing, whoever parses it; the host that is decided
// on is the host that it names.
func FuzzForward(f *testing.F) {
	for _, s := range []string{
		"GET / HTTP/1.1\r\nHost: a.example.org\r\n\r\n", "POST /x?y HTTP/1.1\r\nHost: a.example.org:80\r\nContent-Length: 3\r\nConnection: content-length, host\r\n\r\n",
		"GET http://a.example.org/ HTTP/1.1\r\nHost: a.example.org\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n", "OPTIONS * HTTP/1.1\r\nHost: [2001:db8::1]\r\n\r\n",
		"POST //b HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: x\r\n\r\n", "GET http://a/ HTTP/1.0\r\n\r\n", "POST / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: x, upgrade\r\nTransfer-Encoding: chunked\r\n\r\n", "GET / HTTP/1.0\r\nHost: a\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n", "GET http:a HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET http://a?b@c HTTP/1.1\r\nHost: a\r\n\r\n", "HEAD /%0d%0aHost:%20b HTTP/1.1\r\nHost: a.example.org\r\n\r\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		req, err := readHead(bufio.NewReader(bytes.NewReader(in)), anyLarge)
		if err != nil || req.Method == http.MethodConnect {
			return
		}
		to, err := parseAuthority(req.Host, 80)
		if err != nil || req.URL.User != nil || req.URL.IsAbs() && req.URL.Scheme != "http" {
			return
		}
		host, method, uri, length, chunked := req.Host, req.Method, req.URL.RequestURI(), req.ContentLength, len(req.TransferEncoding) > 0
		if req.Method == http.MethodOptions && req.RequestURI == "*" {
			uri = "*"
		}
		if checkUpgrade(req) != nil {
			return
		}
		if upgrade := cleanHeaders(req.Header); upgrade != "" && (method != http.MethodGet || !bodyless(req) || !req.ProtoAtLeast(1, 1)) {
			t.Fatalf("%q may switch to %s", in, upgrade)
		}
		req.Header.Del("Content-Length")
		var out bytes.Buffer
		s := &requestSide{ubw: bufio.NewWriter(&out)}
		if err := s.writeHead(req, nil); err != nil {
			t.Fatal(err)
		}
		s.ubw.Flush()
		if n := bytes.Count(out.Bytes(), []byte("\r\n\r\n")); n != 1 || !bytes.HasSuffix(out.Bytes(), []byte("\r\n\r\n")) {
			t.Fatalf("%q became %q", in, out.Bytes())
		}
		sent := out.String()
		again, err := http.ReadRequest(bufio.NewReader(strings.NewReader(sent)))
		if err != nil {
			// What we send must be what we would take.
			t.Fatalf("%q became %q: %v", in, sent, err)
		}
		if err := checkHead([]byte(sent)); err != nil {
			t.Fatalf("%q became %q: %v", in, sent, err)
		}
		if again.Host != host || again.Method != method || again.URL.RequestURI() != uri && uri != "*" || (len(again.TransferEncoding) > 0) != chunked || !chunked && again.ContentLength != length {
			t.Fatalf("%q became %q", in, sent)
		}
		lower := strings.ToLower(sent)
		if strings.Count(lower, "\r\nhost:") != 1 || strings.Count(lower, "\r\ncontent-length:")+strings.Count(lower, "\r\ntransfer-encoding:") > 1 {
			t.Fatalf("%q became %q", in, sent)
		}
		// The dialler's way of reading it.
		u, err := url.Parse("http://" + host + "/")
		if err != nil || !strings.EqualFold(u.Hostname(), to.host()) && !sameAddr(u.Hostname(), to) {
			t.Fatalf("%q: decided on %s, net/url says %v %v", in, to.host(), u, err)
		}
		if _, err := io.ReadAll(again.Body); length == 0 && !chunked && err != nil {
			t.Fatal(err)
		}
	})
}
