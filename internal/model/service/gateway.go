package service

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"
)

// maxConnections of clients to one server at a time; a session with a room has 64 calls.
const maxConnections = 32

// Gateway is what clients of this machine reach a server by. Whatever a request is for, it
// needs the key, and must not come from a page of a browser.
type Gateway struct {
	key   string
	proxy *httputil.ReverseProxy
}

// NewGateway returns one that reaches the server by dial.
func NewGateway(key string, dial func(context.Context) (net.Conn, error), logs *log.Logger) *Gateway {
	return &Gateway{key: key, proxy: &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: "localhost"}) },
		Transport: &http.Transport{
			DialContext:        func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
			DisableCompression: true, MaxConnsPerHost: maxConnections, MaxIdleConns: 4, IdleConnTimeout: time.Minute,
			MaxResponseHeaderBytes: 64 << 10,
		},
		FlushInterval: -1, // a model's words, as they come
		ErrorLog:      logs,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			logs.Printf("a request: %v", err)
			refuse(w, http.StatusBadGateway, "the model's server doesn't answer; see its log: `llmdo models ls`")
		},
	}}
}

// ServeHTTP carries a request to the server.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) { g.serve(g.proxy, w, r) }

// With is the gateway with another handler below a path.
func (g *Gateway) With(path string, own http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		to := http.Handler(g.proxy)
		if strings.HasPrefix(r.URL.Path, path) {
			to = own
		}
		g.serve(to, w, r)
	})
}

// serve hands a request over that is allowed.
func (g *Gateway) serve(to http.Handler, w http.ResponseWriter, r *http.Request) {
	given, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	switch {
	case r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != "":
		refuse(w, http.StatusForbidden, "pages of a browser can't use this model")
	case host != "localhost" && host != "127.0.0.1":
		refuse(w, http.StatusForbidden, "the Host must be localhost") // a name that was rebound (DNS)
	case !bearer || subtle.ConstantTimeCompare([]byte(given), []byte(g.key)) != 1:
		w.Header().Set("WWW-Authenticate", "Bearer")
		refuse(w, http.StatusUnauthorized, "the key is missing or another: `llmdo models url NAME` shows it")
	default:
		to.ServeHTTP(w, r)
	}
}

// refuse answers as servers of this protocol do.
func refuse(w http.ResponseWriter, code int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": message, "type": "workshop", "code": code}})
}

// Ask makes one request with the key on a connection of its own. The caller closes the
// answer's body.
func Ask(ctx context.Context, key string, dial func(context.Context) (net.Conn, error), method, path string) (*http.Response, error) {
	c := http.Client{Transport: &http.Transport{
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
		DisableKeepAlives: true,
	}}
	q, err := http.NewRequestWithContext(ctx, method, "http://localhost"+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	q.Header.Set("Authorization", "Bearer "+key)
	return c.Do(q)
}

// Healthy asks the server whether it is ready: the model is loaded.
func Healthy(ctx context.Context, key string, dial func(context.Context) (net.Conn, error)) bool {
	a, err := Ask(ctx, key, dial, http.MethodGet, "/health")
	if err != nil {
		return false
	}
	defer a.Body.Close()
	return a.StatusCode == http.StatusOK
}
