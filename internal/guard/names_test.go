package guard

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/llmdo/workshop/internal/dev/testnet"
	"github.com/llmdo/workshop/internal/dev/testutil"
)

// under counts the names under one that reached a resolver, but for those that
// have a line of their own.
func under(w *world, base string) int {
	names := map[string]bool{}
	for _, q := range w.in.Queries() {
		if n := dns.CanonicalName(q.Name); strings.HasSuffix(n, "."+base+".") && !strings.HasPrefix(n, "exact.") {
			names[n] = true
		}
	}
	return len(names)
}

// TestWildcardBudget is D5: a worker that speaks in labels under a wildcard is
// heard for as many as the budget has, by DNS and by every proxy together, with
// an event for each one more; known names, other lines and other rooms go on.
func TestWildcardBudget(t *testing.T) {
	p := restricted(t, "*.wild.example.org", "**.other.example.org", "exact.wild.example.org", "allowed.example.org")
	second := p.Rooms[0]
	second.Room, second.Workers = "second", []string{"carol"}
	p.Rooms = append(p.Rooms, second)
	w := newWorld(t, p)
	w.in.Answer("known.wild.example.org", testnet.A(testnet.Allowed))
	w.in.Answer("exact.wild.example.org", testnet.A(testnet.Allowed))
	ask := func(room, name string) *dns.Msg { return w.ask(room, "udp", "10.0.0.1:53", name, dns.TypeA) }
	start := time.Now()
	if got := addrs(ask("room", "known.wild.example.org")); len(got) != 1 {
		t.Fatalf("a name under the wildcard: %v", got)
	}
	c := &dns.Conn{Conn: w.mustDial("room", "udp", "10.0.0.1:53"), UDPSize: 4096}
	refused := 0
	var label [15]byte
	for range 1000 {
		rand.Read(label[:])
		q := new(dns.Msg).SetQuestion(hex.EncodeToString(label[:])+".wild.example.org.", dns.TypeA)
		q.SetEdns0(1232, false)
		if err := c.WriteMsg(q); err != nil {
			t.Fatal(err)
		}
		r, err := c.ReadMsg()
		if err != nil || r.Rcode != dns.RcodeNameError {
			t.Fatalf("%v %v", r, err)
		}
		if e := extended(r); e != nil {
			refused++
			if e.InfoCode != dns.ExtendedErrorCodeBlocked || !strings.Contains(e.ExtraText, "wildcard-budget") || strings.Contains(e.ExtraText, "workshop.yaml") { // a worker is told no line
				t.Fatalf("%v", e)
			}
		}
	}
	most := func() int { return 60 + 1 + int(time.Since(start)/time.Second) }
	if n := under(w, "wild.example.org"); n > most() || n < 50 || n != 1001-refused {
		t.Errorf("%d names reached a resolver, at most %d should; %d were refused", n, most(), refused)
	}
	w.guard.eventually(refused, "labels that were too many", func(e event) bool {
		return e.Reason == "wildcard-budget" && e.Kind == "dns" && e.Verdict == "deny" && e.Room == "room" &&
			e.Rule == "workshop.yaml:10" && e.Suggest == e.Name && strings.HasSuffix(e.Name, ".wild.example.org")
	})

	// What isn't new, what a line names, and what is another's goes on.
	for _, x := range []struct{ room, name string }{
		{"room", "known.wild.example.org"}, {"room", "exact.wild.example.org"}, {"second", "known.wild.example.org"},
	} {
		if got := addrs(ask(x.room, x.name)); len(got) != 1 {
			t.Errorf("%s in %s: %v", x.name, x.room, got)
		}
		if _, err := w.tls(x.room, testnet.Allowed+":443", x.name); err != nil {
			t.Errorf("TLS to %s in %s: %v", x.name, x.room, err)
		}
	}
	if r := ask("room", "a.other.example.org"); extended(r) != nil {
		t.Errorf("another wildcard: %v", r)
	}

	// The proxies count the same names. Some may pass, one each second.
	before, through := under(w, "wild.example.org"), 0
	for i := range 8 {
		name := fmt.Sprintf("proxied-%d.wild.example.org", i)
		w.in.Answer(name, testnet.A(testnet.Allowed))
		var err error
		switch i % 3 {
		case 0:
			_, err = w.tls("room", testnet.Allowed+":443", name)
		case 1:
			err = w.http(testnet.Allowed+":80", "GET / HTTP/1.1\r\nHost: "+name+"\r\n\r\n")
		case 2:
			err = w.http(explicitAddr, "CONNECT "+name+":443 HTTP/1.1\r\nHost: "+name+":443\r\n\r\n")
		}
		if err == nil {
			through++
		}
	}
	if n := under(w, "wild.example.org"); n > most() || through > 4 {
		t.Errorf("%d connections passed, %d names reached a resolver, %d more than before", through, n, n-before)
	}
	for _, kind := range []string{"tls", "http", "proxy"} {
		if w.guard.count(func(e event) bool { return e.Reason == "wildcard-budget" && e.Kind == kind }) == 0 {
			t.Errorf("no event of %s", kind)
		}
	}

	// Long labels carry more in fewer names.
	long := strings.Repeat("a", 41) + ".other.example.org"
	if r := ask("room", long); extended(r) == nil || w.in.Asked(long) != 0 {
		t.Errorf("a label of 41 octets: %v", r)
	}
}

// http sends a request and returns an error unless it is answered 200.
func (w *world) http(addr, request string) error {
	w.Helper()
	c := w.mustDial("room", "tcp", addr)
	io.WriteString(c, request)
	head := make([]byte, 12)
	if _, err := io.ReadFull(c, head); err != nil {
		return err
	}
	if string(head) != "HTTP/1.1 200" {
		return errors.New(http.StatusText(int(head[9]-'0')*100 + int(head[10]-'0')*10 + int(head[11]-'0')))
	}
	return nil
}

// TestResolversStayClosed is D8: a resolver over HTTPS isn't reached under a
// wildcard, by no way; browsers hear that they shall not look for one.
func TestResolversStayClosed(t *testing.T) {
	w := newWorld(t, restricted(t, "**.cloudflare-dns.com", "**.nextdns.io", "abc.dns.nextdns.io"))
	for _, n := range []string{"mozilla.cloudflare-dns.com", "x.dns.nextdns.io", "abc.dns.nextdns.io", "www.nextdns.io"} {
		w.in.Answer(n, testnet.A(testnet.Allowed))
	}
	for _, n := range []string{"mozilla.cloudflare-dns.com", "x.dns.nextdns.io", "use-application-dns.net"} {
		if r := w.ask("room", "udp", "10.0.0.1:53", n, dns.TypeA); r.Rcode != dns.RcodeNameError || extended(r) == nil {
			t.Errorf("%s: %v", n, r)
		}
		if _, err := w.tls("room", testnet.Allowed+":443", n); err == nil {
			t.Errorf("TLS to %s passed", n)
		}
		if err := w.http(explicitAddr, "CONNECT "+n+":443 HTTP/1.1\r\nHost: "+n+":443\r\n\r\n"); err == nil || err.Error() != "Forbidden" {
			t.Errorf("CONNECT %s: %v", n, err)
		}
		if q := w.in.Asked(n); q != 0 {
			t.Errorf("%d queries for %s", q, n)
		}
	}
	for _, n := range []string{"abc.dns.nextdns.io", "www.nextdns.io"} {
		if _, err := w.tls("room", testnet.Allowed+":443", n); err != nil {
			t.Errorf("TLS to %s: %v", n, err)
		}
	}
	w.guard.eventually(3, "denials of one name, by DNS, TLS and CONNECT", func(e event) bool {
		return e.Name == "mozilla.cloudflare-dns.com" && e.Reason == "doh" && e.Rule == "workshop.yaml:10" && e.Suggest == e.Name
	})
}

// TestDNSFloodOfARoom: a room that asks for more than a silent resolver answers
// takes no other room's answers (S6).
func TestDNSFloodOfARoom(t *testing.T) {
	p := restricted(t, "allowed.example.org")
	for i := range 1500 {
		name := fmt.Sprintf("slow%d.example.org", i)
		p.Rooms[0].Allow = append(p.Rooms[0].Allow, allow(t, name)...)
	}
	second := p.Rooms[0]
	second.Room, second.Workers = "second", []string{"carol"}
	p.Rooms = append(p.Rooms, second)
	w := newWorld(t, p)
	for i := range 1500 {
		w.in.Answer(fmt.Sprintf("slow%d.example.org", i), testnet.Silent)
	}
	c := &dns.Conn{Conn: w.mustDial("room", "udp", "10.0.0.1:53")}
	for i := range 1500 {
		c.WriteMsg(new(dns.Msg).SetQuestion(fmt.Sprintf("slow%d.example.org.", i), dns.TypeA))
	}
	start := testutil.Now()
	if got := addrs(w.ask("second", "udp", "10.0.0.1:53", "allowed.example.org", dns.TypeA)); len(got) != 1 {
		t.Errorf("another room: %v", got)
	}
	if d := testutil.Since(start); d > time.Second {
		t.Errorf("after %s", d)
	}
	// In the room itself a question may be lost in its own flood, as UDP may: a
	// client asks again.
	var got []string
	for range 3 {
		if r, err := w.exchange("room", "udp", "10.0.0.1:53", new(dns.Msg).SetQuestion("allowed.example.org.", dns.TypeA)); err == nil {
			got = addrs(r)
			break
		}
	}
	if len(got) != 1 {
		t.Errorf("a known name in the room itself: %v", got)
	}
	var timeout net.Error
	c.SetReadDeadline(time.Now().Add(3 * time.Second))
	answered := 0
	for {
		r, err := c.ReadMsg()
		if errors.As(err, &timeout) && timeout.Timeout() {
			break
		}
		if err != nil || r.Rcode != dns.RcodeServerFailure {
			t.Fatalf("%v %v", r, err)
		}
		answered++
	}
	if answered == 0 {
		t.Error("nobody was told")
	}
}
