//go:build linux

package probe

import (
	"testing"

	"github.com/miekg/dns"

	"github.com/llmdo/workshop/internal/dev/testutil"
)

// A server of another library is asked, by both transports.
func TestDNS(t *testing.T) {
	handler := dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		m := new(dns.Msg).SetReply(q)
		m.SetEdns0(1232, false)
		switch q.Question[0].Name {
		case "a.example.org.":
			if q.Question[0].Qtype == dns.TypeA {
				rr, _ := dns.NewRR("a.example.org. 60 A 198.51.100.1")
				m.Answer = append(m.Answer, rr)
			}
		case "text.example.org.":
			rr, _ := dns.NewRR(`text.example.org. 60 TXT "a b"`)
			m.Answer = append(m.Answer, rr)
		case "odd.example.org.":
			m.Rcode = dns.RcodeBadVers
		default:
			m.Rcode = dns.RcodeNameError
			o := m.IsEdns0()
			o.Option = append(o.Option, &dns.EDNS0_EDE{InfoCode: dns.ExtendedErrorCodeBlocked, ExtraText: "no"})
		}
		_ = w.WriteMsg(m)
	})
	l, pc := testutil.ListenTwice(t)
	for _, s := range []*dns.Server{{PacketConn: pc, Handler: handler}, {Listener: l, Handler: handler}} {
		go s.ActivateAndServe()
		t.Cleanup(func() { s.Shutdown() })
	}
	for _, network := range []string{"udp", "tcp"} {
		for question, want := range map[string]string{
			"a.example.org":        "198.51.100.1",
			"a.example.org AAAA":   "NODATA",
			"a.example.org 65":     "NODATA",
			"text.example.org TXT": "NODATA",
			"b.example.org":        "NXDOMAIN",
			"odd.example.org":      "RCODE16",
			"a.example.org X":      "ERROR",
		} {
			r, _ := run(t, "dns "+pc.LocalAddr().String()+" "+question+" net="+network)
			if len(r) != 1 || r[0].Seen != want {
				t.Errorf("%s by %s: %+v, want %s", question, network, r, want)
			}
			if want == "NXDOMAIN" && r[0].Detail != "Blocked: no" {
				t.Errorf("detail %q", r[0].Detail)
			}
		}
	}
}
