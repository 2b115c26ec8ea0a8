package proxy

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/llmdo/workshop/internal/guard/share"
)

func TestReadHeadTakesNoMoreThanTheHead(t *testing.T) {
	br := bufio.NewReader(strings.NewReader("POST /a HTTP/1.1\r\nHost: x.example.org\r\nContent-Length: 4\r\n\r\nbodyGET /b HTTP/1.1\r\nHost: y.example.org\r\n\r\n"))
	req, err := readHead(br, anyLarge)
	if err != nil || req.Host != "x.example.org" || req.ContentLength != 4 {
		t.Fatalf("%+v %v", req, err)
	}
	body := make([]byte, 4)
	if _, err := io.ReadFull(br, body); err != nil || string(body) != "body" {
		t.Fatalf("%q %v", body, err)
	}
	if req, err = readHead(br, anyLarge); err != nil || req.Host != "y.example.org" {
		t.Fatalf("%+v %v", req, err)
	}
}

func TestReadHeadIsBounded(t *testing.T) {
	endless := io.MultiReader(strings.NewReader("GET / HTTP/1.1\r\n"), repeat("X: y\r\n"))
	if _, err := readHead(bufio.NewReader(endless), anyLarge); err != errHeadTooLarge {
		t.Error(err)
	}
	if _, err := readHead(bufio.NewReader(repeat("a")), anyLarge); err != errHeadTooLarge {
		t.Error(err)
	}
}

// TestReadHeadRefusesAtOnce: what can't become a request isn't waited for; the
// reader fails the test if it is asked for more.
func TestReadHeadRefusesAtOnce(t *testing.T) {
	for _, in := range []string{"\x05\x01\x00", "\x16\x03\x01", "\n", " GET", "GET / HTTP/1.1\nHost: a\n", "GET / HTTP/1.1\r\nHost: a\n"} {
		r := io.MultiReader(strings.NewReader(in), more{t, in})
		var refused *badRequest
		if _, err := readHead(bufio.NewReader(r), anyLarge); !errors.As(err, &refused) {
			t.Errorf("%q: %v", in, err)
		}
	}
}

type more struct {
	*testing.T
	in string
}

func (m more) Read([]byte) (int, error) {
	m.Errorf("%q: more was waited for", m.in)
	return 0, io.EOF
}

type repeat string

func (r repeat) Read(b []byte) (int, error) {
	return copy(b, strings.Repeat(string(r), len(b)/len(r)+1)), nil
}

func TestParseAuthority(t *testing.T) {
	for in, want := range map[string]string{
		"API.example.org": "api.example.org:80", "a.example.org:8080": "a.example.org:8080",
		"198.51.100.1": "198.51.100.1:80", "[2001:db8::1]:81": "[2001:db8::1]:81", "[2001:db8::1]": "[2001:db8::1]:80",
	} {
		if a, err := parseAuthority(in, 80); err != nil || joined(a) != want {
			t.Errorf("%q = %v, %v; want %s", in, a, err, want)
		}
	}
	for _, in := range []string{"", ":80", "a.example.org:", "a.example.org:0", "a.example.org:080", "a.example.org:65536", "a.example.org:80:80",
		"user@a.example.org", "a.example.org.", "2001:db8::1", "[198.51.100.1]", "[::ffff:127.0.0.1]", "[fe80::1%lo]", "0x7f.1", "2130706433", "a b", "a/b", "a\x00b", "[a.example.org]"} {
		if a, err := parseAuthority(in, 80); err == nil {
			t.Errorf("%q = %v, want an error", in, a)
		}
	}
}

func joined(a authority) string {
	if a.addr.Is6() {
		return "[" + a.host() + "]:" + itoa(int64(a.port))
	}
	return a.host() + ":" + itoa(int64(a.port))
}

// FuzzReadHead: no panic, nothing of the body is taken, and what is accepted
// has one host and one framing.
func FuzzReadHead(f *testing.F) {
	for _, s := range []string{
		"GET / HTTP/1.1\r\nHost: a.example.org\r\n\r\n", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc",
		"GET http://a.example.org/ HTTP/1.1\r\nHost: a.example.org\r\n\r\n", "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		br := bufio.NewReader(bytes.NewReader(in))
		req, err := readHead(br, anyLarge)
		if err != nil {
			return
		}
		rest, _ := io.ReadAll(br)
		head := in[:len(in)-len(rest)]
		if !bytes.HasSuffix(head, []byte("\r\n\r\n")) || bytes.HasSuffix(head, []byte("\r\n\r\n\r\n")) && bytes.Count(head, []byte("\r\n\r\n")) > 1 {
			t.Fatalf("head %q", head)
		}
		if len(req.TransferEncoding) > 0 && req.ContentLength > 0 {
			t.Fatalf("two framings: %+v", req)
		}
		lower := strings.ToLower(string(head))
		if strings.Count(lower, "\nhost:") > 1 {
			t.Fatalf("two hosts in %q", head)
		}
		_, _ = parseAuthority(req.Host, 80)
	})
}

// A path may have a URL in its query; that is no absolute-form.
func TestURLInQuery(t *testing.T) {
	req, err := readHead(bufio.NewReader(strings.NewReader("GET /go?to=http://other.example.org/ HTTP/1.1\r\nHost: x.example.org\r\n\r\n")), anyLarge)
	if err != nil || req.Host != "x.example.org" || req.URL.RequestURI() != "/go?to=http://other.example.org/" {
		t.Errorf("%v, %v", req, err)
	}
}

// B60: a parsed line costs much more than its bytes, and large heads are
// limited in number.
func TestReadHeadCounts(t *testing.T) {
	many := "GET / HTTP/1.1\r\n" + strings.Repeat("a:\r\n", maxLines) + "\r\n"
	if _, err := readHead(bufio.NewReader(strings.NewReader(many)), anyLarge); err != errHeadTooLarge {
		t.Errorf("many lines: %v", err)
	}
	long := "GET / HTTP/1.1\r\nHost: x.example.org\r\nCookie: " + strings.Repeat("a", smallHead) + "\r\n\r\n"
	if _, err := readHead(bufio.NewReader(strings.NewReader(long)), anyLarge); err != nil {
		t.Errorf("large head: %v", err)
	}
	if _, err := readHead(bufio.NewReader(strings.NewReader(long)), func() bool { return false }); err != errBusy {
		t.Errorf("large head without a place: %v", err)
	}
}

// B60: the head of a response is bounded too.
func TestResponseHeadIsBounded(t *testing.T) {
	for name, c := range map[string]struct {
		line   string
		places int
		want   error
	}{
		"endless line":    {"a", 1, errHeadTooLarge},
		"endless lines":   {"a:\r\n", 1, errHeadTooLarge},
		"without a place": {"a", 0, errBusy},
	} {
		t.Run(name, func(t *testing.T) {
			room := share.NewPool(c.places, 1).Room()
			p := &place{large: room}
			h := &heads{from: strings.NewReader("HTTP/1.1 200 OK\r\nx: " + strings.Repeat(c.line, 1<<20)), large: p}
			h.head()
			if _, err := http.ReadResponse(bufio.NewReader(h), nil); !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
			if h.bytes > maxHead+smallHead {
				t.Errorf("%d bytes were read", h.bytes)
			}
			p.free()
			for range c.places {
				if _, ok := room.Try(); !ok {
					t.Error("the place is still taken")
				}
			}
		})
	}
}

func anyLarge() bool { return true }
