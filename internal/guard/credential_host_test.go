package guard

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/llmdo/workshop/internal/dev/testnet"
	"github.com/llmdo/workshop/internal/guard/lease"
	"github.com/llmdo/workshop/internal/lib/fileowner"
)

// hear serves TLS at an address outside, and returns the first line of each connection.
func (w *world) hear(addr string, cert *tls.Certificate) <-chan string {
	heard := make(chan string, 10)
	l := tls.NewListener(w.listenOutside(addr), &tls.Config{Certificates: []tls.Certificate{*cert}})
	go testnet.Serve(l, func(c net.Conn) {
		line, _ := bufio.NewReader(c).ReadString('\n')
		heard <- line
	})
	return heard
}

// TestB33_CredentialVerifies are attacks 22 and 24: a value goes to its host alone, by a
// certificate that its own roots verify.
func TestB33_CredentialVerifies(t *testing.T) {
	p := keyPolicy(t)
	second := at(t, "second 601 second.example.org:8443", "*")
	second.Endpoint.Credential = "key"
	p.Rooms[0].Allow = append(p.Rooms[0].Allow, second)
	w := newWorld(t, p) // the policy has no roots
	b, _ := w.attach()
	b.lease(1, canary)
	if resp, _ := w.send(apiAddr, getRepos+"\r\n"); resp.StatusCode != 503 {
		t.Errorf("without roots: %s", resp.Status)
	}
	w.silent("without roots")
	trusting := func(l lease.Line, root []byte) {
		b.say(&lease.Lease{Line: l, Generation: 1, Header: "Authorization", Value: lease.Value(canary), Roots: [][]byte{root}})
	}
	trusting(keyLine, w.root())
	if resp, body := w.send(apiAddr, getRepos+"\r\n"); resp.StatusCode != 200 || !strings.Contains(body, canary) {
		t.Errorf("with roots of its own: %s %s", resp.Status, body)
	}
	foreign, err := testnet.Foreign("second.example.org")
	if err != nil {
		t.Fatal(err)
	}
	heard := w.hear("198.51.100.40:8443", foreign)
	w.in.Answer("second.example.org", testnet.A("198.51.100.40"))
	trusting(lease.Line{Room: "room", At: "second", Host: "second.example.org", Port: 8443, Credential: "key"}, w.root())
	p.Roots = [][]byte{foreign.Certificate[len(foreign.Certificate)-1]} // not for a line with roots of its own
	w.replace(p)
	resp, body := w.send("127.0.0.1:601", "GET /a HTTP/1.1\r\nHost: 127.0.0.1:601\r\n\r\n")
	if resp.StatusCode != 502 || !strings.Contains(body, "not signed by an authority") {
		t.Errorf("24: %s %s", resp.Status, body)
	}
	if text := <-heard; text != "" {
		t.Errorf("24: the host heard %q", text)
	}
}

// TestB33_CredentialRefused: the broker hears of a 401, once a minute, and the worker too.
func TestB33_CredentialRefused(t *testing.T) {
	w := apiWorld(t, keyPolicy(t))
	b, _ := w.attach()
	w.in.Site("allowed.example.org", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { rw.WriteHeader(401) }))
	b.lease(7, canary)
	for range 3 {
		if resp, _ := w.send(apiAddr, getRepos+"\r\n"); resp.StatusCode != 401 {
			t.Errorf("%s", resp.Status)
		}
	}
	if m, err := b.r.FromGuard(); err != nil || !cmp.Equal(m, &lease.Refused{Credential: "key", Generation: 7}) {
		t.Errorf("%+v %v", m, err)
	}
	p := keyPolicy(t)
	p.Roots = w.policy.Roots
	w.replace(p)
	b.lines() // and nothing before them
}

// TestB45_CredentialIsNowhere is attack 45: the value is in no event, state, variable or
// argument of the guard, whose memory no other process can read.
func TestB45_CredentialIsNowhere(t *testing.T) {
	w := apiWorld(t, keyPolicy(t))
	b, _ := w.attach()
	b.lease(1, canary)
	w.send(apiAddr, getRepos+"\r\n")
	w.send(apiAddr, getRepos+"Authorization: Bearer own\r\n\r\n")
	io.WriteString(b.c, `{"type":"lease","value":"`+canary+`","x":1}`+"\n")
	time.Sleep(100 * time.Millisecond)
	w.attach() // that one has ended
	state, _ := json.Marshal(w.state())
	pid := w.guard.cmd.Process.Pid
	read := func(name string) string {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
		if err != nil {
			t.Error(err)
		}
		return string(data)
	}
	w.guard.mu.Lock()
	log := fmt.Sprint(w.guard.lines)
	w.guard.mu.Unlock()
	for name, text := range map[string]string{"the log": log, "the state": string(state), "environ": read("environ"), "cmdline": read("cmdline")} {
		if strings.Contains(text, "canary") || strings.Contains(text, "Bearer own") {
			t.Errorf("%s has it: %s", name, text)
		}
	}
	info, err := os.Stat(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		t.Fatal(err)
	}
	if uid, _, ok := fileowner.Of(info); !ok || uid != 0 {
		t.Errorf("the guard's memory is for user %d to read", uid)
	}
	var fields []string
	for line := range strings.SplitSeq(read("limits"), "\n") {
		if rest, ok := strings.CutPrefix(line, "Max core file size"); ok {
			fields = strings.Fields(rest)
		}
	}
	if len(fields) < 2 || fields[0] != "0" || fields[1] != "0" {
		t.Errorf("files of cores: %v", fields)
	}
}

// TestB33_CredentialOfTwoHosts is attack 22: hosts of one address share neither a connection
// nor a value.
func TestB33_CredentialOfTwoHosts(t *testing.T) {
	p := keyPolicy(t)
	second := at(t, "second 601 second.example.org", "GET /**")
	second.Endpoint.Credential = "other"
	p.Rooms[0].Allow = append(p.Rooms[0].Allow, second)
	w := apiWorld(t, p)
	w.in.Answer("allowed.example.org", testnet.A(testnet.Allowed))
	w.in.Answer("second.example.org", testnet.A(testnet.Allowed))
	b, _ := w.attach()
	b.lease(1, canary)
	secondLine := lease.Line{Room: "room", At: "second", Host: "second.example.org", Port: 443, Credential: "other"}
	b.say(&lease.Lease{Line: secondLine, Generation: 1, Header: "Authorization", Value: lease.Value("Bearer second")})
	for _, x := range []struct{ port, host, value string }{{"600", "allowed.example.org", canary}, {"601", "second.example.org", "Bearer second"}, {"600", "allowed.example.org", canary}} {
		resp, body := w.send("127.0.0.1:"+x.port, "GET /repos/a HTTP/1.1\r\nHost: 127.0.0.1:"+x.port+"\r\nConnection: close\r\n\r\n")
		if resp.StatusCode != 200 || !strings.Contains(body, `"sni":"`+x.host+`"`) || !strings.Contains(body, `"host":"`+x.host+`"`) || !strings.Contains(body, x.value) {
			t.Errorf("%+v: %s %s", x, resp.Status, body)
		}
	}
	if n := w.in.Conns(testnet.Allowed, 443); n != 3 {
		t.Errorf("%d connections, want 3", n)
	}
}
