package guard

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/control"
)

// FuzzControl sends lines to the guard's control: each gets one answer, nothing
// crashes or hangs, and whatever was changed, a deny line of the file, the
// never-list, and rooms without a network stay as they are (B26, B60).
func FuzzControl(f *testing.F) {
	base := func(t testing.TB) firewall.Policy {
		p := threeRooms(t)
		p.Version = firewall.PolicyVersion
		return p
	}
	p := base(f)
	policy, _ := json.Marshal(json.RawMessage(firewall.EncodePolicy(&p)))
	for _, s := range []string{
		`{"op":"state"}`, `{"op":"reopen"}` + "\n" + `{"op":"reopen","rooms":["room"]}`, `{"op":"policy","policy":` + string(policy) + `,"reset":true}`,
		`{"op":"change","for":"1h","changes":[{"rule":{"host":"x.example","ports":["443"]}},{"room":"room","deny":true,"rule":{"cidr":"198.51.100.0/24","ports":["1-65535"]}}]}`,
		`{"op":"change","reset":true}` + "\n" + `{"op":"change","changes":[{"rule":{"host":"**.evil.example","ports":["443"],"any_tenant":true}}]}`,
		`{"op":"learn","rooms":["room"],"for":"30m"}` + "\n" + `{"op":"learn"}`,
		`{"op":"explain","room":"room","host":"allowed.example.org","port":443}` + "\n" + `{"op":"explain","room":"wide","host":"::1","port":80}`,
		"\n\n{}\nnull\n[]\n", `{"op":"change","changes":[{"rule":{"cidr":"0.0.0.0/0","ports":["1-52","54-65535"],"private":true}}]}`,
	} {
		f.Add([]byte(s))
	}
	evil, _ := firewall.ParseName("a.evil.example")
	other, _ := firewall.ParseName("x.example")
	f.Fuzz(func(t *testing.T, lines []byte) {
		if bytes.Contains(lines, []byte(`"policy"`)) && bytes.Contains(lines, []byte("rooms")) && len(lines) > 4<<10 {
			return
		}
		g := newGuard(t, base(t))
		s := control.NewServer(g.Do)
		host, guard := net.Pipe()
		done := make(chan struct{})
		go func() { defer close(done); s.Serve(t.Context(), guard) }()
		_ = host.SetDeadline(time.Now().Add(10 * time.Second))
		lines = append(lines, '\n')
		go func() { _, _ = host.Write(lines) }()
		r := bufio.NewReader(host)
		for range bytes.Count(lines, []byte{'\n'}) {
			b, err := r.ReadBytes('\n')
			var a control.Answer
			if err != nil || json.Unmarshal(b, &a) != nil || (a.Error == "") == (a.Result == nil) {
				t.Fatalf("%q answers %q, %v", lines, b, err)
			}
		}
		host.Close()
		<-done
		st := g.state()
		replaced := st.Digest != firewall.Digest(g.config.Policy)
		if len(st.Live) > maxLive || st.Generation == 0 {
			t.Fatalf("%+v", st)
		}
		for _, name := range []string{"room", "closed", "wide"} {
			m := g.store.Room(name).Matcher
			for _, a := range []string{"169.254.169.254", "127.0.0.1", "::1", "fe80::1", "0.0.0.0"} {
				for _, port := range []uint16{80, 443, 9000} {
					if m.Addr(netip.MustParseAddr(a), port).Allowed || m.Dial(m.Name(other, port), netip.MustParseAddr(a), port).Allowed {
						t.Fatalf("%q opens %s port %d in %s", lines, a, port, name)
					}
				}
			}
			if !replaced && name == "room" && m.Name(evil, 443).Allowed {
				t.Fatalf("%q opens what the file denies", lines)
			}
			if name == "closed" && (m.Name(other, 443).Allowed || m.Resolvable(other).Allowed) {
				t.Fatalf("%q opens a room without a network", lines)
			}
		}
	})
}
