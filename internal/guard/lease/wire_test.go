package lease

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/firewall/request"
)

const canary = "canary-b6a1f0"

var github = Line{"room", "github", "github.com", 443, "github", "0123456789abcdef"}

var (
	oldID, newID = strings.Repeat("0", 40), strings.Repeat("4b", 20)
	ask          = &Ask{github, 7, "acme/app", []Pushed{{"refs/heads/agent/x", oldID, newID}}}
)

// proxyLease is what an upstream proxy is sent, and proxyText as it is written.
var (
	ofProxy    = Line{"", "", "proxy.example", 3128, "corp", "0123456789abcdef"}
	proxyLease = &Lease{Line: ofProxy, Generation: 2, Header: "Proxy-Authorization", Value: Value("Basic dTpw")}
)

const proxyText = `{"type":"lease","room":"","at":"","host":"proxy.example","port":3128,"credential":"corp","rule":"0123456789abcdef","generation":2,"header":"Proxy-Authorization","value":"Basic dTpw"}`

// The upstream proxy's line has one form, and its lease one header: no room's line is taken
// for it, nor it for a room's.
func TestProxyLease(t *testing.T) {
	read := func(line string) error {
		_, err := NewReader(strings.NewReader(line + "\n")).FromBroker()
		return err
	}
	if err := read(proxyText); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, old, text string }{
		{"another header", "Proxy-Authorization", "Authorization"}, {"in another spelling", "Proxy-Authorization", "proxy-authorization"}, {"no header", "Proxy-Authorization", ""},
		{"a room alone", `"room":""`, `"room":"room"`}, {"an endpoint alone", `"at":""`, `"at":"a"`}, {"a room and an endpoint", `"room":"","at":""`, `"room":"room","at":"a"`},
		{"a bearer token", "Basic dTpw", "Bearer dTpw"}, {"no scheme", "Basic dTpw", "dTpw"}, {"a line's end", "dTpw", `dTpw\r\nX: y`}, {"no value", "Basic dTpw", ""},
		{"roots", `"value"`, `"roots":["AQI="],"value"`}, {"a push", `"value"`, `"ask_push":true,"value"`},
		{"no port", "3128", "0"}, {"no host", "proxy.example", ""}, {"a zone", "proxy.example", "fe80::1%eth0"}, {"a URL", "proxy.example", "http://proxy.example"},
		{"not its one text", "proxy.example", "Proxy.example"}, {"no credential", `"corp"`, `""`}, {"no rule", "0123456789abcdef", ""},
	} {
		line := strings.Replace(proxyText, c.old, c.text, 1)
		if line == proxyText || read(line) == nil {
			t.Errorf("%s is taken: %s", c.name, line)
		}
	}
	for _, host := range []string{"198.51.100.80", "2001:db8::1"} {
		if err := read(strings.Replace(proxyText, "proxy.example", host, 1)); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
	asked := *ask
	asked.Line = ofProxy
	if asked.Check() == nil {
		t.Error("a push to a proxy is asked about")
	}
}

// The proxy's line is what a policy says of it: another proxy, credential or resolver is
// another line, and without a network there is none.
func TestProxyLine(t *testing.T) {
	policy := func(change func(*firewall.Policy)) *firewall.Policy {
		p := &firewall.Policy{Proxy: "http://Proxy.example:3128/", ProxyCredential: "corp", Resolvers: []string{"198.51.100.53"}, Rooms: []firewall.RoomPolicy{{Room: "none"}, {Room: "room", Mode: firewall.Open}}}
		change(p)
		return p
	}
	before := LinesOf(policy(func(*firewall.Policy) {}))
	if len(before) != 1 || !before[0].OfProxy() || before[0].Host != "proxy.example" || before[0].Port != 3128 || before[0].Credential != "corp" || before[0].check() != nil {
		t.Fatalf("%+v", before)
	}
	if same := LinesOf(policy(func(p *firewall.Policy) {
		p.Proxy, p.Resolvers = "http://proxy.example:3128", []string{"198.51.100.53:53"}
	})); !slices.Equal(same, before) {
		t.Errorf("the same in other words: %+v", same)
	}
	for i, change := range []func(*firewall.Policy){
		func(p *firewall.Policy) { p.Proxy = "http://proxy.example:3129" }, func(p *firewall.Policy) { p.Proxy = "http://other.example:3128" }, func(p *firewall.Policy) { p.Proxy = "http://198.51.100.80:3128" },
		func(p *firewall.Policy) { p.ProxyCredential = "other" }, func(p *firewall.Policy) { p.Resolvers = nil }, func(p *firewall.Policy) { p.Resolvers = []string{"198.51.100.54"} },
	} {
		if got := LinesOf(policy(change)); len(got) != 1 || got[0] == before[0] {
			t.Errorf("change %d: %+v", i, got)
		}
	}
	for i, change := range []func(*firewall.Policy){
		func(p *firewall.Policy) { p.Proxy = "" }, func(p *firewall.Policy) { p.ProxyCredential = "" }, func(p *firewall.Policy) { p.Proxy = "http://u:p@proxy.example:3128" }, func(p *firewall.Policy) { p.Proxy = "${WORKSHOP_PROXY:-}" },
		func(p *firewall.Policy) { p.Proxy = "http://a_b..c:3128" }, func(p *firewall.Policy) { p.Proxy = "http://[fe80::1%25eth0]:3128" }, func(p *firewall.Policy) { p.Rooms = p.Rooms[:1] },
	} {
		if got := LinesOf(policy(change)); len(got) != 0 {
			t.Errorf("none %d: %+v", i, got)
		}
	}
}

func leaseOf(l Line, generation uint64, value string) *Lease {
	return &Lease{Line: l, Generation: generation, Header: "Authorization", Value: Value(value)}
}

// The messages of both sides are read as they were written, and as the design has them.
func TestMessages(t *testing.T) {
	withRoots := leaseOf(github, 4, `Basic "\/<&>`)
	withRoots.Roots = [][]byte{{1, 2}, {3}}
	asking := leaseOf(github, 3, "x")
	asking.AskPush = true
	for _, c := range []struct {
		name, text string
		message    any
	}{
		{"lease", `{"type":"lease","room":"room","at":"github","host":"github.com","port":443,"credential":"github","rule":"0123456789abcdef","generation":3,"header":"Authorization","value":"Bearer x"}`, leaseOf(github, 3, "Bearer x")},
		{"roots and escapes", `{"type":"lease","room":"room","at":"github","host":"github.com","port":443,"credential":"github","rule":"0123456789abcdef","generation":4,"header":"Authorization","value":"Basic \"\\/<&>","roots":["AQI=","Aw=="]}`, withRoots},
		{"revoke", `{"type":"revoke","credential":"github"}`, &Revoke{"github"}},
		{"refused", `{"type":"refused","credential":"github","generation":3}`, &Refused{"github", 3}},
		{"lines", `{"type":"lines","lines":[{"room":"room","at":"github","host":"github.com","port":443,"credential":"github","rule":"0123456789abcdef"}]}`, &Lines{Lines: []Line{github}}},
		{"a lease that asks", `{"type":"lease","room":"room","at":"github","host":"github.com","port":443,"credential":"github","rule":"0123456789abcdef","generation":3,"header":"Authorization","value":"x","ask_push":true}`, asking},
		{"answer", `{"type":"answer","id":7,"answer":"yes"}`, &Answer{7, Yes}},
		{"ask", `{"type":"ask","room":"room","at":"github","host":"github.com","port":443,"credential":"github","rule":"0123456789abcdef","id":7,"repository":"acme/app","refs":[{"ref":"refs/heads/agent/x","old":"` + oldID + `","new":"` + newID + `"}]}`, ask},
		{"ask-ended", `{"type":"ask-ended","id":7}`, &AskEnded{7}},
		{"no lines", `{"type":"lines","lines":[]}`, &Lines{}},
		{"a proxy's lease", proxyText, proxyLease},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b bytes.Buffer
			if err := Write(&b, c.message); err != nil || b.String() != c.text+"\n" {
				t.Errorf("written: %v %s\nwant %s", err, b.String(), c.text)
			}
			for name, in := range map[string]io.Reader{"at once": &b, "by bytes": iotest.OneByteReader(strings.NewReader(c.text + "\n"))} {
				r := NewReader(in)
				read := r.FromBroker
				if c.name == "refused" || strings.HasPrefix(c.name, "ask") || strings.HasSuffix(c.name, "lines") {
					read = r.FromGuard
				}
				m, err := read()
				if diff := cmp.Diff(c.message, m); diff != "" || err != nil {
					t.Errorf("%s: %v %s", name, err, diff)
				}
				if _, err := read(); err != io.EOF {
					t.Errorf("%s: after it: %v", name, err)
				}
				if bytes.ContainsFunc(r.buf, func(r rune) bool { return r != 0 }) {
					t.Errorf("%s: the reader keeps what it read", name)
				}
			}
		})
	}
}

// Values are read with every escape that JSON has for their characters.
func TestValueEscapes(t *testing.T) {
	line := `{"\u0074ype":"lease","room":"room","at":"github","host":"github.com","port":443,"credential":"github","rule":"0123456789abcdef","generation":4,"header":"x-api-key","value":"\u0061\u003c\u003E\"\/\\"}` + "\n"
	m, err := NewReader(strings.NewReader(line)).FromBroker()
	if err != nil || string(m.(*Lease).Value) != `a<>"/\` {
		t.Errorf("%v, %v", m, err)
	}
}

// More lines than a message has are one message again.
func TestManyLines(t *testing.T) {
	all := &Lines{}
	for i := range 1000 {
		all.Lines = append(all.Lines, Line{strings.Repeat("r", 128), strings.Repeat("a", 40), strings.Repeat("h.", 126), uint16(i), strings.Repeat("c", 40), strings.Repeat("0", 16)})
	}
	var b bytes.Buffer
	if err := errors.Join(Write(&b, all), Write(&b, &Refused{"github", 1})); err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(b.String(), "\n") {
		if len(line) >= MaxLine {
			t.Errorf("a line of %d bytes", len(line))
		}
	}
	r := NewReader(&b)
	m, err := r.FromGuard()
	if diff := cmp.Diff(all, m); diff != "" || err != nil {
		t.Errorf("%v %.300s", err, diff)
	}
	if m, err := r.FromGuard(); err != nil || *m.(*Refused) != (Refused{"github", 1}) {
		t.Errorf("%v, %v", m, err)
	}
}

// What isn't known is refused, and no error has any of a value (attack 45).
func TestMessagesRefused(t *testing.T) {
	good := `{"type":"lease","room":"room","at":"github","host":"github.com","port":443,"credential":"github","rule":"0123456789abcdef","generation":3,"header":"Authorization","value":"` + canary + `"}`
	if _, err := NewReader(strings.NewReader(good + "\n")).FromBroker(); err != nil {
		t.Fatal(err)
	}
	with := func(old, text string) string {
		if !strings.Contains(good, old) {
			t.Fatal(old)
		}
		return strings.Replace(good, old, text, 1)
	}
	for _, c := range []struct{ name, line string }{
		{"empty", ""}, {"null", "null"}, {"a list", "[]"}, {"no type", "{}"}, {"a number", `{"type":1}`},
		{"another type", with(`"lease"`, `"grant"`)}, {"of the guard", `{"type":"lines","lines":[]}`},
		{"another field", with(`"port":443`, `"port":443,"x":"`+canary+`"`)}, {"revoke with a value", `{"type":"revoke","credential":"github","value":"` + canary + `"}`},
		{"no value", with(`,"value":"`+canary+`"`, ``)}, {"a value in another spelling", with(`"value"`, `"Value"`)}, {"both", with(`"value"`, `"Value":"x","value"`)},
		{"an empty value", with(canary, "")}, {"a number for a value", with(`"`+canary+`"`, "1")}, {"null for a value", with(`"`+canary+`"`, "null")},
		{"16: CRLF", with(canary, canary+`\r\nHost: evil.example.net`)}, {"16: LF by number", with(canary, canary+`\u000aX: y`)}, {"NUL", with(canary, canary+`\u0000`)},
		{"not ASCII", with(canary, canary+`\u00e4`)}, {"not ASCII, bare", with(canary, canary+"ä")}, {"a high number", with(canary, canary+`\ufffd`)}, {"a tab", with(canary, canary+`\tx`)},
		{"a blank at the end", with(canary, canary+" ")}, {"a blank at the beginning", with(canary, " "+canary)},
		{"a value without end", with(canary, strings.Repeat("x", MaxValue+1))},
		{"a header that frames", with("Authorization", "Transfer-Encoding")}, {"the host's header", with("Authorization", "hOST")}, {"of the proxy", with("Authorization", "Proxy-Authorization")},
		{"16: a header of two lines", with("Authorization", `A: b\r\nX`)}, {"no header", with("Authorization", "")},
		{"no generation", with(`"generation":3`, `"generation":0`)}, {"a negative generation", with(`"generation":3`, `"generation":-1`)},
		{"no port", with("443", "0")}, {"a large port", with("443", "70000")}, {"no host", with("github.com", "")}, {"a host that is no name", with("github.com", "a/b")},
		{"a room that is no name", with(`"room":"room"`, `"room":"../room"`)}, {"a credential that is no name", with(`"credential":"github"`, `"credential":"GitHub"`)},
		{"no rule", with(`"rule":"0123456789abcdef",`, "")}, {"a rule that is no digest", with("0123456789abcdef", "0123456789ABCDEF")},
		{"roots that are no base64", with(`"value"`, `"roots":["`+canary+`!"],"value"`)},
		{"two objects", good + good}, {"half", good[:len(good)-3]}, {"too long", strings.Repeat("x", MaxLine+1)},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := NewReader(strings.NewReader(c.line + "\n")).FromBroker()
			if err == nil || strings.Contains(err.Error(), canary) {
				t.Errorf("%+v, %v", m, err)
			}
		})
	}
	if _, err := NewReader(strings.NewReader(good)).FromBroker(); err != io.ErrUnexpectedEOF {
		t.Errorf("without the line's end: %v", err)
	}
	for _, line := range []string{good, `{"type":"lines"}{}`, `{"type":"lines","lines":[{"x":1}]}`, `{"type":"lines","lines":[],"more":true}` + "\n" + `{"type":"refused","credential":"a","generation":1}`, `{"type":"lines","lines":[{"room":"r"}],"more":true}` + "\n" + `{"type":"refused","credential":"a","generation":1}`} {
		if m, err := NewReader(strings.NewReader(line + "\n")).FromGuard(); err == nil || strings.Contains(err.Error(), canary) {
			t.Errorf("%s: %+v, %v", line, m, err)
		}
	}
	for _, line := range []string{`{"type":"answer","id":0,"answer":"yes"}`, `{"type":"answer","id":1}`, `{"type":"answer","id":1,"answer":"Yes"}`, `{"type":"answer","id":1,"answer":"always"}`, `{"type":"answer","id":1,"answer":"yes","x":1}`} {
		if m, err := NewReader(strings.NewReader(line + "\n")).FromBroker(); err == nil || m != nil {
			t.Errorf("%s: %+v", line, m)
		}
	}
	for i, change := range []func(*Ask){
		func(m *Ask) { m.ID = 0 }, func(m *Ask) { m.Room = "../room" }, func(m *Ask) { m.Refs = nil }, func(m *Ask) { m.Repository = "" }, func(m *Ask) { m.Repository = "a\n" },
		func(m *Ask) { m.Repository = strings.Repeat("a", 501) }, func(m *Ask) { m.Repository = "\xff" }, func(m *Ask) { m.Refs = slices.Repeat(m.Refs, MaxAskedRefs+1) },
		func(m *Ask) { m.Refs = []Pushed{{"main", oldID, newID}} }, func(m *Ask) { m.Refs = []Pushed{{"refs/heads/x", oldID[1:], newID}} }, func(m *Ask) { m.Refs = []Pushed{{"refs/heads/x", oldID, newID[:38] + "\x1b["}} },
	} {
		m := *ask
		change(&m)
		b, err := encode("ask", &m)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := NewReader(bytes.NewReader(b)).FromGuard(); err == nil || got != nil || Write(io.Discard, &m) == nil {
			t.Errorf("question %d: %+v", i, got)
		}
	}
	bad := leaseOf(github, 1, canary+"\n")
	large := leaseOf(github, 1, canary)
	large.Roots = [][]byte{make([]byte, MaxLine)}
	for _, m := range []any{bad, large, 1, Lease{}} {
		if err := Write(io.Discard, m); err == nil || strings.Contains(err.Error(), canary) {
			t.Errorf("%T: %v", m, err)
		}
	}
}

// Attack 45: no verb of package fmt prints a value.
func TestValueIsHidden(t *testing.T) {
	m := leaseOf(github, 1, canary)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
		for _, v := range []any{m, *m, m.Value, &m.Value, []Value{m.Value}, errors.New(fmt.Sprint(m))} {
			if text := fmt.Sprintf(verb, v); strings.Contains(text, canary) || strings.Contains(text, fmt.Sprintf("%x", canary)) || strings.Contains(text, "99 97 110") {
				t.Errorf("%s %T: %s", verb, v, text)
			}
		}
	}
	m.Value.Forget()
	if bytes.Contains(m.Value, []byte("c")) {
		t.Error("forgotten, and still there")
	}
}

func TestLinesOf(t *testing.T) {
	host, err := firewall.ParseHostPattern("github.com")
	if err != nil {
		t.Fatal(err)
	}
	r := firewall.Rule{Host: host, Ports: []firewall.PortRange{{First: 443, Last: 443}}, Endpoint: firewall.Endpoint{At: "github", Credential: "github"}}
	bare := r
	bare.Endpoint.Credential = ""
	p := &firewall.Policy{Rooms: []firewall.RoomPolicy{
		{Room: "none", Allow: []firewall.Rule{r}}, {Room: "room", Mode: firewall.Restricted, Allow: []firewall.Rule{bare, r}}, {Room: "two", Mode: firewall.Restricted, Allow: []firewall.Rule{bare}},
	}}
	want := github
	want.Rule = RuleDigest(r)
	if diff := cmp.Diff([]Line{want}, LinesOf(p)); diff != "" {
		t.Error(diff)
	}
}

// What lets other requests through, or leads elsewhere, is another line.
func TestRuleDigest(t *testing.T) {
	rule := func(change func(*firewall.Rule)) firewall.Rule {
		one, err := request.ParseRule("GET /a/**")
		if err != nil {
			t.Fatal(err)
		}
		r := firewall.Rule{Endpoint: firewall.Endpoint{At: "a", Port: 600, Credential: "c", Requests: request.Rules{one}}}
		change(&r)
		return r
	}
	before := RuleDigest(rule(func(*firewall.Rule) {}))
	if same := RuleDigest(rule(func(r *firewall.Rule) { r.Endpoint.Port = 601 })); same != before {
		t.Error("the port of the room counts")
	}
	for i, change := range []func(*firewall.Rule){
		func(r *firewall.Rule) { r.Private = true }, func(r *firewall.Rule) { r.Endpoint.EncodedSlash = true }, func(r *firewall.Rule) { r.Endpoint.Credential = "d" },
		func(r *firewall.Rule) { r.Endpoint.Requests = append(r.Endpoint.Requests, r.Endpoint.Requests[0]) },
	} {
		if RuleDigest(rule(change)) == before {
			t.Errorf("change %d is none", i)
		}
	}
}

// FuzzFromBroker reads whatever lines: what is read is valid and is written as it was, and
// nothing else is kept.
func FuzzFromBroker(f *testing.F) {
	for _, m := range []any{leaseOf(github, 3, "Bearer x"), &Revoke{"github"}, &Answer{7, No}, &Lines{Lines: []Line{github}}, proxyLease} {
		var b bytes.Buffer
		if err := Write(&b, m); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	f.Add([]byte(`{"type":"lease","value":"\u0041\\\"","value":"\`))
	f.Add([]byte("{}\nnull\n\n[]"))
	f.Fuzz(func(t *testing.T, lines []byte) {
		r := NewReader(bytes.NewReader(lines))
		for {
			m, err := r.FromBroker()
			if err != nil {
				break
			}
			if m, ok := m.(*Revoke); ok && m == nil {
				t.Fatal("nil")
			}
			var b bytes.Buffer
			if err := Write(&b, m); err != nil {
				if errors.Is(err, errTooLong) {
					continue // with more escapes than it had
				}
				t.Fatalf("%q: %v", lines, err)
			}
			again, err := NewReader(&b).FromBroker()
			if diff := cmp.Diff(m, again); diff != "" || err != nil {
				t.Fatalf("%q: %v %s", lines, err, diff)
			}
		}
		r.Close()
		if bytes.ContainsFunc(r.buf, func(r rune) bool { return r != 0 }) {
			t.Fatalf("%q is kept", lines)
		}
	})
}

// B60: what a guard says of its lines is bounded, in bytes too.
func TestLongLines(t *testing.T) {
	long := github
	long.Host = strings.Repeat("x", 60<<10)
	message, err := encode("lines", &Lines{[]Line{long}, true})
	if err != nil {
		t.Fatal(err)
	}
	sent := 0
	r := NewReader(readerFunc(func(b []byte) (int, error) {
		if sent > 2*maxLinesBytes {
			return 0, io.EOF
		}
		n := copy(b, message[sent%len(message):])
		sent += n
		return n, nil
	}))
	if _, err = r.FromGuard(); err == nil || sent > 2*maxLinesBytes {
		t.Errorf("%d bytes were read: %v", sent, err)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }
