package fetch

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/http/httpproxy"

	"github.com/llmdo/workshop/tool"
)

var all = &tool.Grant{Worker: "w", Tools: []tool.Offer{{Name: tool.FetchURL}}}

// direct keeps a proxy of this machine out of the tests, and lets them name
// their own.
func direct(t testing.TB) {
	proxyFor = func(r *http.Request) (*url.URL, error) { return httpproxy.FromEnvironment().ProxyFunc()(r.URL) }
	t.Cleanup(func() { proxyFor = http.ProxyFromEnvironment })
	for _, v := range []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"} {
		if os.Getenv(v) != "" {
			t.Setenv(v, "")
		}
	}
}

func wantErr(t *testing.T, err error, want string) bool {
	t.Helper()
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("error %v, want %q", err, want)
		return false
	}
	return true
}

func zipped(s string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.WriteString(z, s)
	z.Close()
	return b.Bytes()
}

func server(t *testing.T) *httptest.Server {
	mux := http.NewServeMux()
	text := func(path, kind, body string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", kind)
			io.WriteString(w, body)
		})
	}
	text("/text", "text/plain; charset=utf-8", "héllo")
	text("/binary", "image/png", "\x89PNG\x00")
	text("/latin", "text/plain; charset=iso-8859-1", "caf\xe9")
	text("/empty", "text/html", "")
	mux.HandleFunc("/asked", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s %s %d cookies", r.Method, r.UserAgent(), r.Header.Get("Accept-Encoding"), len(r.Cookies()))
	})
	mux.HandleFunc("/gzip", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Write(zipped("unpacked"))
	})
	mux.HandleFunc("/bomb", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Write(zipped(strings.Repeat("0", 64<<20)))
	})
	mux.HandleFunc("/nogzip", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		io.WriteString(w, "plain")
	})
	mux.HandleFunc("/endless", func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write(bytes.Repeat([]byte("x"), 1<<16)); err != nil {
				return
			}
		}
	})
	mux.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.HandleFunc("/short", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "100")
		io.WriteString(w, "only this")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	mux.HandleFunc("/close", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	mux.HandleFunc("/to/{n}", func(w http.ResponseWriter, r *http.Request) {
		var n int
		fmt.Sscan(r.PathValue("n"), &n)
		http.SetCookie(w, &http.Cookie{Name: "a", Value: "b"})
		if n == 0 {
			http.Redirect(w, r, "/asked", http.StatusFound)
		} else {
			http.Redirect(w, r, fmt.Sprintf("/to/%d", n-1), http.StatusPermanentRedirect)
		}
	})
	mux.HandleFunc("/away", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", r.URL.Query().Get("to"))
		w.WriteHeader(http.StatusSeeOther)
	})
	mux.HandleFunc("/304", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusNotModified) })
	mux.HandleFunc("/hints", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusTeapot)
	})
	mux.HandleFunc("/denied", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Workshop-Deny", "name")
		w.WriteHeader(http.StatusForbidden)
		io.WriteString(w, "workshop: x:80 is not allowed in this workshop: do not retry, tell the person\n")
	})
	s := httptest.NewUnstartedServer(mux)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Start()
	t.Cleanup(s.Close)
	return s
}

func TestGet(t *testing.T) {
	direct(t)
	s := server(t)
	for _, c := range []struct {
		path string
		most int
		want tool.FetchURLResult
		err  string
	}{
		{path: "/text", want: tool.FetchURLResult{Status: 200, ContentType: "text/plain; charset=utf-8", Body: "héllo"}},
		{path: "/text#part", want: tool.FetchURLResult{Status: 200, ContentType: "text/plain; charset=utf-8", Body: "héllo"}},
		{path: "/text", most: 2, want: tool.FetchURLResult{Status: 200, ContentType: "text/plain; charset=utf-8", Body: "h", Truncated: true}},
		{path: "/text", most: 6, want: tool.FetchURLResult{Status: 200, ContentType: "text/plain; charset=utf-8", Body: "héllo"}},
		{path: "/binary", want: tool.FetchURLResult{Status: 200, ContentType: "image/png", Body: base64.StdEncoding.EncodeToString([]byte("\x89PNG\x00")), Binary: true}},
		{path: "/latin", want: tool.FetchURLResult{Status: 200, ContentType: "text/plain; charset=iso-8859-1", Body: "Y2Fm6Q==", Binary: true}},
		{path: "/empty", want: tool.FetchURLResult{Status: 200, ContentType: "text/html"}},
		{path: "/asked", want: tool.FetchURLResult{Status: 200, ContentType: "text/plain; charset=utf-8", Body: "GET workshop/1 gzip 0 cookies"}},
		{path: "/gzip", want: tool.FetchURLResult{Status: 200, Body: "unpacked"}},
		{path: "/bomb", most: 5, want: tool.FetchURLResult{Status: 200, Body: "00000", Truncated: true}},
		{path: "/nogzip", err: "declared as gzip"},
		{path: "/endless", most: 4, want: tool.FetchURLResult{Status: 200, ContentType: "text/plain; charset=utf-8", Body: "xxxx", Truncated: true}},
		{path: "/short", err: "broke off after 9 bytes"},
		{path: "/close", err: "closed without a response"},
		{path: "/none", want: tool.FetchURLResult{Status: 404, ContentType: "text/plain; charset=utf-8", Body: "404 page not found\n"}},
		{path: "/304", want: tool.FetchURLResult{Status: 304}},
		{path: "/hints", want: tool.FetchURLResult{Status: 418}},
		{path: "/to/4", want: tool.FetchURLResult{URL: "/asked", Status: 200, ContentType: "text/plain; charset=utf-8", Body: "GET workshop/1 gzip 0 cookies", Redirects: 5}},
		{path: "/to/5", err: "more than 5 redirects"},
		{path: "/away?to=file:///etc/passwd", err: "doesn't begin with http"},
		{path: "/away?to=http://u:p@127.0.0.1/", err: "user or password"},
		{path: "/away?to=text", want: tool.FetchURLResult{URL: "/text", Status: 200, ContentType: "text/plain; charset=utf-8", Body: "héllo", Redirects: 1}},
		{path: "/away", want: tool.FetchURLResult{Status: 303}},
		{path: "/denied", err: "refused it: x:80 is not allowed in this workshop"},
		{path: "/text", most: tool.MaxFetchBytes + 1, err: "1 to 4194304"},
	} {
		r, err := Get(context.Background(), nil, all, tool.FetchURLArgs{URL: s.URL + c.path, MaxBytes: c.most})
		if !wantErr(t, err, c.err) || err != nil {
			continue
		}
		if c.want.URL == "" {
			c.want.URL, _, _ = strings.Cut(c.path, "#")
		}
		c.want.URL = s.URL + c.want.URL
		if diff := cmp.Diff(&c.want, r); diff != "" {
			t.Errorf("%s (-want +got)\n%s", c.path, diff)
		}
	}
}

func TestBadURL(t *testing.T) {
	for text, want := range map[string]string{
		"": "doesn't begin", "example.org": "doesn't begin", "ftp://example.org": "doesn't begin", "http://": "no host", "http://:80/": "no host", "http://a:0/": `port "0"`, "http://a:65536/": `port "65536"`,
		"http://u@a/": "user or password", "http://a b/": "is not valid", "http://[::1/": "is not valid", "http://\x7f/": "is not valid", "http://xn--a\u00fc.example/": "not a valid name", "http://a/" + strings.Repeat("x", maxURL): "at most 8192", "JavaScript:alert(1)": "doesn't begin",
	} {
		_, err := Get(context.Background(), nil, all, tool.FetchURLArgs{URL: text})
		wantErr(t, err, want)
	}
}

// TestGrant: each hop must be offered (B41), and nothing is asked before.
func TestGrant(t *testing.T) {
	direct(t)
	s := server(t)
	u, _ := url.Parse(s.URL)
	g := &tool.Grant{Worker: "w", Tools: []tool.Offer{{Name: tool.FetchURL, Limit: "domain:localhost"}}}
	local := "http://localhost:" + u.Port()
	r, err := Get(context.Background(), nil, g, tool.FetchURLArgs{URL: local + "/away?to=/text"})
	if err != nil || r.Body != "héllo" {
		t.Errorf("%+v, %v", r, err)
	}
	for _, text := range []string{s.URL + "/text", local + "/away?to=" + s.URL + "/text"} {
		_, err := Get(context.Background(), nil, g, tool.FetchURLArgs{URL: text})
		var no *tool.NotOfferedError
		if !errors.As(err, &no) {
			t.Errorf("%s: %v", text, err)
		}
	}
	var no *tool.NotOfferedError
	if _, err := Get(context.Background(), nil, &tool.Grant{}, tool.FetchURLArgs{URL: s.URL}); !errors.As(err, &no) {
		t.Error(err)
	}
}

func TestTimeout(t *testing.T) {
	direct(t)
	s := server(t)
	g := &tool.Grant{Tools: all.Tools, TimeoutMS: 50}
	for _, path := range []string{"/slow", "/away?to=/slow"} {
		if _, err := Get(context.Background(), nil, g, tool.FetchURLArgs{URL: s.URL + path}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", path, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := Get(ctx, nil, all, tool.FetchURLArgs{URL: s.URL + "/slow"}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// answer serves bytes to whoever connects.
func answer(t testing.TB, b []byte, more func(net.Conn)) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				c.Read(make([]byte, 4096))
				c.Write(b)
				if more != nil {
					more(c)
				}
			}()
		}
	}()
	return "http://" + l.Addr().String()
}

func TestBadServer(t *testing.T) {
	direct(t)
	flood := func(s string) func(net.Conn) {
		return func(c net.Conn) {
			for {
				if _, err := io.WriteString(c, s); err != nil {
					return
				}
			}
		}
	}
	for _, c := range []struct {
		bytes string
		more  func(net.Conn)
		want  string
	}{
		{"", nil, "without a response"},
		{"SSH-2.0-x\r\n", nil, "not a valid HTTP response"},
		{"HTTP/1.1 200 OK\r\nX: ", flood("xxxxxxxxxxxxxxxx"), "the header of the response is longer than"},
		{"HTTP/1.1 200 OK\r\n", flood("A: b\r\n"), "the header of the response is longer than"},
		{"", flood("HTTP/1.1 100 Continue\r\n\r\n"), "1xx responses only"},
		{"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", nil, "switched protocols"},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", nil, "broke off"},
	} {
		_, err := Get(context.Background(), nil, all, tool.FetchURLArgs{URL: answer(t, []byte(c.bytes), c.more)})
		wantErr(t, err, c.want)
	}
}

// TestProxy: what the environment names is asked, by CONNECT for https, and its
// refusal is told with its hint.
func TestProxy(t *testing.T) {
	direct(t)
	s := server(t)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.Host, "denied."):
			w.Header().Set("X-Workshop-Deny", "name")
			w.WriteHeader(http.StatusForbidden)
			io.WriteString(w, "workshop: denied.example is not allowed\n")
		case r.Method == http.MethodConnect:
			w.WriteHeader(http.StatusBadGateway)
		default:
			resp, err := http.Get(s.URL + r.URL.Path)
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			fmt.Fprint(w, r.URL.String(), " ")
			io.Copy(w, resp.Body)
		}
	}))
	defer proxy.Close()
	t.Setenv("HTTP_PROXY", proxy.URL)
	t.Setenv("HTTPS_PROXY", proxy.URL)
	r, err := Get(context.Background(), nil, all, tool.FetchURLArgs{URL: "http://b\u00fccher.example/text"})
	if err != nil || r.Body != "http://xn--bcher-kva.example/text héllo" || r.URL != "http://xn--bcher-kva.example/text" {
		t.Errorf("%+v, %v", r, err)
	}
	for _, scheme := range []string{"http", "https"} {
		_, err = Get(context.Background(), nil, all, tool.FetchURLArgs{URL: scheme + "://denied.example/"})
		wantErr(t, err, "refused it: denied.example is not allowed")
	}
	_, err = Get(context.Background(), nil, all, tool.FetchURLArgs{URL: "https://other.example/"})
	wantErr(t, err, `the proxy responded "502 Bad Gateway"`)
	t.Setenv("HTTP_PROXY", "socks5://127.0.0.1:1")
	_, err = Get(context.Background(), nil, all, tool.FetchURLArgs{URL: "http://other.example/"})
	wantErr(t, err, "is not an HTTP proxy")
}

// TestTLSHelper is a worker with the certificates that TestTLS gives it: Go
// reads them once in a process.
func TestTLSHelper(t *testing.T) {
	at := os.Getenv("TLS_HELPER")
	if at == "" {
		return // not a test by itself
	}
	r, err := Get(context.Background(), nil, all, tool.FetchURLArgs{URL: at})
	fmt.Printf("got %+v %v\n", r, err)
}

func TestTLS(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Proto, " ", r.TLS.ServerName) }))
	s.EnableHTTP2 = true
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS = &tls.Config{}
	s.StartTLS()
	defer s.Close()
	dir := t.TempDir()
	ca := filepath.Join(dir, "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o644); err != nil {
		t.Fatal(err)
	}
	address := strings.TrimPrefix(s.URL, "https://")
	_, port, _ := net.SplitHostPort(address)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		up, err := net.Dial("tcp", address)
		if err != nil || r.Method != http.MethodConnect || r.RequestURI != "example.com:443" {
			t.Errorf("%s %s, %v", r.Method, r.RequestURI, err)
			return
		}
		defer up.Close()
		down, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer down.Close()
		io.WriteString(down, "HTTP/1.1 200 OK\r\n\r\n")
		go io.Copy(up, down)
		io.Copy(down, up)
	}))
	defer proxy.Close()
	for _, c := range []struct{ at, roots, want string }{
		{"127.0.0.1:" + port, ca, "Body:HTTP/1.1"},
		{"127.0.0.1:" + port, filepath.Join(dir, "none"), "has no CA certificates"},
		{"localhost:" + port, ca, "not localhost"},
		{"example.com", ca, "Body:HTTP/1.1 example.com"},
	} {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestTLSHelper$")
		cmd.Env = append(os.Environ(), "TLS_HELPER=https://"+c.at+"/", "HTTPS_PROXY="+proxy.URL, "https_proxy=", "SSL_CERT_FILE="+c.roots, "SSL_CERT_DIR="+filepath.Join(dir, "nowhere"))
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), c.want) {
			t.Errorf("%s: %v\n%s", c.want, err, out)
		}
	}
}

// FuzzAnswer: whatever a server says, the result is bounded and fits into JSON.
func FuzzAnswer(f *testing.F) {
	direct(f)
	var now atomic.Pointer[[]byte]
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Read(make([]byte, 4096))
			c.Write(*now.Load())
			c.Close()
		}
	}()
	u := "http://" + l.Addr().String()
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Type: a\xff\r\n\r\nbody"), 3)
	f.Add([]byte("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n\r\n"), 0)
	f.Add(append([]byte("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n"), zipped("zipped")...), 2)
	f.Fuzz(func(t *testing.T, b []byte, most int) {
		if bytes.Contains(bytes.ToLower(b), []byte("location")) {
			return // leads elsewhere
		}
		now.Store(&b)
		r, err := Get(context.Background(), nil, all, tool.FetchURLArgs{URL: u, MaxBytes: most})
		if err != nil {
			return
		}
		if most > 0 && !r.Binary && len(r.Body) > most || !utf8.ValidString(r.Body) || !utf8.ValidString(r.ContentType) {
			t.Errorf("%q: %+v", b, r)
		}
	})
}

// TestDial: where there is no guard, each hop of a redirect is asked for, and no
// proxy of the environment comes between.
func TestDial(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host == "one.example.org" {
			http.Redirect(w, r, "http://two.example.org:81/x", http.StatusFound)
		}
	}))
	defer s.Close()
	t.Setenv("http_proxy", "http://198.51.100.9:1")
	var asked []string
	dial := func(refuse string) Dial {
		asked = nil
		return func(ctx context.Context, host string, port uint16) (net.Conn, error) {
			asked = append(asked, fmt.Sprint(host, " ", port))
			if host == refuse {
				return nil, errors.New("refused by a test")
			}
			return net.Dial("tcp", s.Listener.Addr().String())
		}
	}
	g := &tool.Grant{Tools: []tool.Offer{{Name: tool.FetchURL}}}
	r, err := Get(t.Context(), dial(""), g, tool.FetchURLArgs{URL: "http://one.example.org/"})
	if err != nil || r.Redirects != 1 || strings.Join(asked, ", ") != "one.example.org 80, two.example.org 81" {
		t.Errorf("%+v, %v, %q", r, err, asked)
	}
	if _, err := Get(t.Context(), dial("two.example.org"), g, tool.FetchURLArgs{URL: "http://one.example.org/"}); err == nil || !strings.Contains(err.Error(), "refused by a test") {
		t.Errorf("%v", err)
	}
}
