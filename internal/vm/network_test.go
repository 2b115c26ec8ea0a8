//go:build linux && amd64

package vm_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/carrier/outlet"
	"github.com/llmdo/workshop/internal/dev/testnet"
	internalroom "github.com/llmdo/workshop/internal/room"
	"github.com/llmdo/workshop/internal/vm/guest"
	"github.com/llmdo/workshop/internal/vm/monitor"
)

// asOutlet in the environment makes this program the outlet of a machine.
const asOutlet = "WORKSHOP_TEST_OUTLET"

// networkGuest is the kind of a guest that uses its carrier as a worker does: ours, with a
// program that dials.
const networkGuest = "network"

func init() {
	switch {
	case os.Getenv(asOutlet) != "":
		os.Exit(outlet.Main(os.Args[1:], os.Stdout, os.Stderr))
	case os.Getpid() == 1 && kindOf() == networkGuest:
		go useNetwork()
		go func() {
			if l, err := net.Listen("tcp4", "127.0.0.1:"+inboundPort); err == nil {
				testnet.Serve(l, func(c net.Conn) { _, _ = io.Copy(c, c) })
			}
		}()
		guest.Main(nil, os.Stderr, internalroom.LocalAddresses)
	}
}

// inboundPort is published by the worker, which echoes there.
const inboundPort = "8080"

// large is what the server in the room sends.
var large = bytes.Repeat([]byte("0123456789abcdef"), 1<<16)

// results is where a guest tells what it found.
const results = "198.51.100.7:22"

// dialled is what a guest found at a place: what it read, how that ended, and when.
type dialled struct {
	Text, Error string
	Same        bool // the text is large
	Took        time.Duration
}

// answer takes what a server sends, and keeps little of it: the machine is small.
type answer struct {
	begin   []byte // 100 bytes at most
	n       int
	differs bool // from large
}

func (a *answer) Write(p []byte) (int, error) {
	a.begin = append(a.begin, p[:min(len(p), 100-len(a.begin))]...)
	a.differs = a.differs || !bytes.HasPrefix(large[min(a.n, len(large)):], p)
	a.n += len(p)
	return len(p), nil
}

func try(network, to, say string) (d dialled) {
	began := time.Now()
	c, err := net.DialTimeout(network, to, 20*time.Second)
	if err == nil {
		defer c.Close()
		c.SetDeadline(time.Now().Add(30 * time.Second))
		_, sent := io.WriteString(c, say)
		var got answer
		if network == "udp4" {
			text := make([]byte, 512)
			var n int
			n, err = c.Read(text)
			_, _ = got.Write(text[:n])
		} else {
			_ = c.(*net.TCPConn).CloseWrite()
			_, err = io.Copy(&got, c)
		}
		if err == nil { // a reset is told once, to whoever asks first
			err = sent
		}
		if d.Same = !got.differs && got.n == len(large); !d.Same {
			d.Text = string(got.begin)
		}
	}
	if errno := unix.Errno(0); errors.As(err, &errno) {
		d.Error = unix.ErrnoName(errno)
		if errno == unix.EPIPE {
			d.Error = "ECONNRESET"
		}
	} else if err != nil {
		d.Error = err.Error()
	}
	d.Took = time.Since(began)
	return d
}

// useNetwork is the guest's worker. Each round begins when the server of results answers.
func useNetwork() {
	for {
		round := try("tcp4", results, "begin")
		if round.Text == "" {
			time.Sleep(100 * time.Millisecond)
			continue
		}
		found := map[string]dialled{}
		switch round.Text {
		case "places":
			for _, to := range []string{"198.51.100.7:80", "198.51.100.8:443", "198.51.100.9:12345", "127.0.0.1:80", "127.0.0.1:536", "127.9.9.9:443", "0.0.0.0:443", "[2001:db8::1]:443"} {
				found[to] = try("tcp", to, "GET /large")
			}
			found["dns"] = try("udp4", "198.51.100.53:53", "query")
		case "many":
			var all sync.WaitGroup
			var mu sync.Mutex
			for i := range 64 {
				all.Go(func() {
					to := fmt.Sprintf("198.51.100.%d:80", i+1)
					d := try("tcp4", to, "GET /large")
					mu.Lock()
					defer mu.Unlock()
					found[to] = d
				})
			}
			all.Wait()
		}
		said, _ := json.Marshal(found)
		try("tcp4", results, string(said))
	}
}

// B10 B13 B20 B22 B29: what a guest dials is dialled in its worker's room, whose outlet may end
// without the guest.
func TestNetwork(t *testing.T) {
	r := newRoom(t)
	s := spec(t, mark(t, networkGuest), nil)
	r.startOutlet()
	s.Relay, s.Console = monitor.Outlet(r.socket()), true
	var said bytes.Buffer
	m, err := r.boot(s, func(cmd *exec.Cmd) { cmd.Stdout, cmd.Stderr = &said, &said })
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		m.Stop()
		if t.Failed() {
			t.Logf("%v; the console:\n%s", m.Err(), &said)
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := m.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	places := func() {
		t.Helper()
		found := r.round("places")
		for to, want := range map[string]dialled{
			"198.51.100.7:80":    {Same: true},
			"198.51.100.8:443":   {Error: "ECONNRESET"},   // nobody's in the room
			"198.51.100.9:12345": {Error: "ECONNREFUSED"}, // no port of the policy
			"127.0.0.1:80":       {Error: "ECONNRESET"},
			"127.0.0.1:536":      {Text: "the guard's proxy"},
			"127.9.9.9:443":      {Error: "ECONNRESET"},
			"0.0.0.0:443":        {Error: "ECONNRESET"},
			"[2001:db8::1]:443":  {Error: "ENETUNREACH"},
			"dns":                {Text: "answer to query"},
		} {
			got := found[to]
			if took := got.Took; want.Error != "" && took > 5*time.Second {
				t.Errorf("%s: the end took %v", to, took)
			}
			t.Logf("%s: %+v", to, got)
			if got.Took = 0; got != want {
				t.Errorf("%s: %+v, want %+v", to, got, want)
			}
		}
	}
	many := func() {
		t.Helper()
		began := time.Now()
		found := r.round("many")
		t.Logf("64 streams, each of %d bytes: %v", len(large), time.Since(began))
		if len(found) != 64 {
			t.Errorf("%d of 64", len(found))
		}
		for to, d := range found {
			if !d.Same || d.Error != "" {
				t.Errorf("%s: %+v", to, d)
			}
		}
	}
	inbound := func() {
		t.Helper()
		var c net.Conn
		if err := r.ns.Do(func() (err error) { c, err = net.Dial("tcp4", "127.0.0.1:"+inboundPort); return err }); err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		go func() { _, _ = c.Write(large); _ = c.(*net.TCPConn).CloseWrite() }()
		if got, err := io.ReadAll(c); err != nil || !bytes.Equal(got, large) {
			t.Errorf("a published port: %d bytes, %v", len(got), err)
		}
	}
	places()
	many()
	inbound()
	r.newOutlet()
	places()
	inbound()
	select {
	case <-m.Done():
		t.Errorf("the machine ended: %v", m.Err())
	default:
	}
	if strings.Contains(said.String(), "relay: ") {
		t.Errorf("the guest's relay says: %s", &said)
	}
}
