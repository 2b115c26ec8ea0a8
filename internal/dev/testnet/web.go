package testnet

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// Echo is the body of every HTTP answer: who answered, and what was asked.
type Echo struct {
	Server string `json:"server"` // the address that was dialled
	Port   uint16 `json:"port"`
	SNI    string `json:"sni,omitempty"`
	Host   string `json:"host"`
	Path   string `json:"path"`
	From   string `json:"from"` // the client's address as the server sees it
	// Header are the request's headers, as "Name: value" lines would show them.
	Header http.Header `json:"header,omitempty"`
}

type localKey struct{}

func (in *Internet) startWeb() error {
	plain, err := in.listen(in.any() + ":80")
	if err != nil {
		return err
	}
	secure, err := in.listen(in.any() + ":443")
	if err != nil {
		return err
	}
	conf := &tls.Config{
		GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
			local := addrPort(h.Conn.LocalAddr())
			in.count.hello(local, h.ServerName)
			if h.ServerName == "" {
				return in.ca.certificate(local.Addr().String())
			}
			return in.authority(h.ServerName).certificate(h.ServerName)
		},
	}
	srv := &http.Server{
		Handler:           http.HandlerFunc(in.web),
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          log.New(io.Discard, "", 0),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, localKey{}, addrPort(c.LocalAddr()))
		},
	}
	in.onClose(func() { srv.Close() })
	go srv.Serve(plain)
	go srv.Serve(tls.NewListener(secure, conf))
	return nil
}

// web answers: /bytes/N sends N bytes, /upgrade switches to an echo of bytes
// (as a WebSocket server would switch), hosts with packages give those,
// everything else gets an [Echo].
func (in *Internet) web(w http.ResponseWriter, r *http.Request) {
	local, _ := r.Context().Value(localKey{}).(netip.AddrPort)
	e := Echo{Server: local.Addr().String(), Port: local.Port(), Host: r.Host, Path: r.URL.RequestURI(), From: r.RemoteAddr, Header: r.Header}
	if r.TLS != nil {
		e.SNI = r.TLS.ServerName
	}
	in.count.request(Request{Server: local.String(), SNI: e.SNI, Host: r.Host, Method: r.Method, Path: e.Path})
	if n, ok := strings.CutPrefix(r.URL.Path, "/bytes/"); ok {
		sendBytes(w, n)
		return
	}
	if s := in.Served(r.Host); s != nil {
		s.ServeHTTP(w, r)
		return
	}
	if r.URL.Path == "/upgrade" && r.Header.Get("Upgrade") != "" {
		upgrade(w, r)
		return
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, 64<<20))
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(e)
}

func sendBytes(w http.ResponseWriter, count string) {
	n, err := strconv.ParseInt(count, 10, 64)
	if err != nil {
		http.Error(w, "not a number", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Length", count)
	chunk := make([]byte, 64<<10)
	for n > 0 {
		m, err := w.Write(chunk[:min(n, int64(len(chunk)))])
		if err != nil {
			return
		}
		n -= int64(m)
	}
}

func upgrade(w http.ResponseWriter, r *http.Request) {
	c, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer c.Close()
	_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + r.Header.Get("Upgrade") + "\r\n\r\n")
	_ = rw.Flush()
	_, _ = io.Copy(c, rw)
}
