package docker

import (
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/engine"
)

// slowListener writes a byte a second.
type slowListener struct{ net.Listener }

func (l slowListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return slowConn{c}, err
}

type slowConn struct{ net.Conn }

func (c slowConn) Write(p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		time.Sleep(time.Second)
		_, err = c.Conn.Write(p[n : n+1])
		n++
	}
	return n, err
}

// An engine that answers slowly works, or is one error that says so in a bounded time.
func TestSlowAnswers(t *testing.T) {
	for _, tc := range []struct {
		recording string
		asked     engine.Flavour
	}{{"docker-20.10.24", ""}, {"podman-4.3.1", ""}, {"podman-4.3.1-rootless", engine.FlavourPodman}} {
		for name, slow := range map[string]struct {
			late  time.Duration
			drips bool
			works bool
		}{
			"each answer late by 2s": {late: 2 * time.Second, works: true},
			"each answer late by 6s": {late: 6 * time.Second},
			"a byte a second":        {drips: true},
		} {
			t.Run(tc.recording+", "+name, func(t *testing.T) {
				t.Parallel()
				a := recordedAnswers(t, tc.recording)
				socket := filepath.Join(t.TempDir(), "engine.sock")
				l, err := net.Listen("unix", socket)
				if err != nil {
					t.Fatal(err)
				}
				if slow.drips {
					l = slowListener{l}
				}
				s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					time.Sleep(slow.late)
					a.ServeHTTP(w, r)
				})}
				go func() { _ = s.Serve(l) }()
				t.Cleanup(func() { s.Close() })
				e, err := New(t.Context(), Options{Host: "unix://" + socket, Flavour: tc.asked})
				if err != nil {
					t.Fatal(err)
				}
				defer e.Close()
				began := time.Now()
				i, err := e.Info(t.Context())
				if took := time.Since(began); took > 2*answerTime+3*time.Second {
					t.Errorf("it took %v", took)
				}
				switch {
				case slow.works && (err != nil || i.Version == ""):
					t.Errorf("got %+v, %v", i, err)
				case !slow.works && (err == nil || !strings.Contains(err.Error(), " answers at unix://"+socket+": no answer within 10s: restart what listens there")):
					t.Errorf("got %v", err)
				}
			})
		}
	}
}
