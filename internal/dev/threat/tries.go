package threat

// Words that a denial is seen by.
const (
	refused = "ECONNREFUSED"
	// cut is how the guard ends what it doesn't allow.
	cut = "ECONNRESET|EOF|TLSALERT|ECONNREFUSED|EPIPE"
	// told is an answer over HTTP that says why.
	told = "403|400|421"
)

// Controls that several tries share.
var (
	arrives = Control{Arrives: true}
	asked   = Control{Asked: true}
	ours    = Control{None: "what is tried belongs to the room: elsewhere there is no such thing"}
	nowhere = Control{None: "such an address leads nowhere in an ordinary place either"}
	rights  = Control{None: "the control is the third identity, or the engine's own tests of capabilities (B1)"}
)

// Tries are all tries of the matrix.
func Tries() []Try {
	var all []Try
	for _, group := range [][]Try{nameTries, webTries, proxyTries, transportTries, rawTries, addressTries, roomTries} {
		all = append(all, group...)
	}
	return all
}

// nameTries ask for names.
var nameTries = []Try{
	{ID: "dns-elsewhere", Items: "D1 D3", Lines: []string{"dns {dns} {name} A"}, Sees: "NXDOMAIN", Control: asked, Event: "dns"},
	{ID: "dns-elsewhere-tcp", Items: "D1 D3", Lines: []string{"dns {dns} {name} A net=tcp"}, Sees: "NXDOMAIN", Control: asked, Event: "dns"},
	{ID: "dns-any-address", Items: "D1 D2", Lines: []string{"dns {a} {name} A"}, Sees: "NXDOMAIN", Control: arrives, Event: "dns"},
	{ID: "dns-tunnel", Items: "D2 D6", Lines: []string{
		"dns {dns} mfrggzdfmztwq2lknnwg23tpobyxe43uov3ho6dzpi.{name} TXT",
	}, Sees: "NXDOMAIN", Control: Control{None: "the test internet answers the name itself, not names below it"}, Event: "dns"},
	{ID: "dns-embedded", Items: "D4", Lines: []string{"dns 127.0.0.11 {name} A"}, Sees: "NXDOMAIN", Families: OnlyV4, Control: ours, Event: "dns"},
	{ID: "dns-below-allowed", Items: "D5", Lines: []string{"dns {dns} {sub} A"}, Sees: "NXDOMAIN", Control: asked, Event: "dns"},
	{ID: "dns-types", Items: "D6 D7", Lines: []string{
		"dns {lo} allowed.example.org TXT", "dns {lo} allowed.example.org NULL", "dns {lo} allowed.example.org MX", "dns {lo} allowed.example.org SRV",
		"dns {lo} allowed.example.org HTTPS", "dns {lo} allowed.example.org SVCB", "dns {lo} allowed.example.org ANY",
	}, Sees: "NODATA|NOTIMP|REFUSED", Control: Control{None: "the meter looks at every question that the guard sends: A and AAAA"}},
	{ID: "dns-case", Items: "D6", Lines: []string{"dns {lo} aLLoWeD.eXaMpLe.oRg A"}, Sees: "198.51.100.10",
		Control: Control{None: "the meter looks at the case of every question that the guard sends"}},
	{ID: "dns-other-port", Items: "D8 D1", Lines: []string{"dns {h}:5353 {name} A"}, Sees: "EPERM", Control: arrives, Event: "kernel"},
	{ID: "dns-over-tls", Items: "D8", Lines: []string{"connect {h}:853"}, Sees: refused, Control: arrives, Event: "kernel"},
	{ID: "dns-over-quic", Items: "D8 T2", Lines: []string{"udp {h}:853"}, Sees: "EPERM", Control: arrives, Event: "kernel"},
	{ID: "dns-over-https", Items: "D8", Lines: []string{"http https://dns.google/dns-query ca={ca} connect={h}:443"}, Sees: cut, Control: arrives, Event: "tls"},
	{ID: "dns-by-multicast", Items: "D13", Lines: []string{"dns 224.0.0.251:5353 printer.local A", "dns 224.0.0.252:5355 printer A", "udp 198.51.100.255:137"},
		Sees: "EPERM|EACCES|ENETUNREACH", Families: OnlyV4, Control: nowhere},
	{ID: "dns-by-multicast-6", Items: "D13", Lines: []string{"dns [ff02::fb%lo]:5353 printer.local A", "dns [ff02::1:3%lo]:5355 printer A"},
		Sees: "EPERM|EACCES|ENETUNREACH|EADDRNOTAVAIL", Families: OnlyV6, Control: nowhere},
	{ID: "dns-single-label", Items: "D13", Lines: []string{"dns {lo} guard A", "dns {lo} room A", "dns {lo} host.docker.internal A", "dns {lo} gateway.docker.internal A"},
		Sees: "NXDOMAIN", Control: ours},
}

// webTries speak to ports 80 and 443.
var webTries = []Try{
	{ID: "sni-denied", Items: "N1 N6", Lines: []string{"http https://{name}/ ca={ca} connect={h}:443"}, Sees: cut, Control: arrives, Event: "tls"},
	{ID: "sni-on-shared-address", Items: "N1", Lines: []string{"http https://{name}/ ca={ca} connect={ok}:443"}, Sees: cut,
		Control: Control{None: "TestB24_ByName has it: the address is that of the allowed name"}, Event: "tls"},
	{ID: "sni-spoofed", Items: "N2", Lines: []string{"http https://allowed.example.org/ ca={ca} connect={h}:443"}, Sees: "200", Control: arrives},
	{ID: "host-spoofed", Items: "N2", Lines: []string{"http http://allowed.example.org/ connect={h}:80"}, Sees: "200", Control: arrives},
	{ID: "sni-missing", Items: "N6", Lines: []string{"http https://{h}/ ca={ca}"}, Sees: cut, Control: arrives, Event: "tls"},
	{ID: "not-tls", Items: "N6 N7", Lines: []string{`tcp {h}:443 send="SSH-2.0-probe\r\n\r\n"`}, Sees: cut, Control: arrives, Event: "tls"},
	{ID: "host-denied", Items: "N8", Lines: []string{"http http://{name}/ connect={h}:80"}, Sees: "403", Control: arrives, Event: "http"},
	{ID: "host-missing", Items: "N8", Lines: []string{`tcp {h}:80 send="GET / HTTP/1.0\r\n\r\n"`}, Sees: "data", Control: arrives, Event: "http"},
	{ID: "host-twice", Items: "N8", Lines: []string{`tcp {h}:80 send="GET / HTTP/1.1\r\nHost: allowed.example.org\r\nHost: {name}\r\n\r\n"`}, Sees: "data", Control: arrives, Event: "http"},
	{ID: "host-in-second-request", Items: "N8", Lines: []string{
		`tcp {h}:80 bytes=700 limit=400ms send="GET / HTTP/1.1\r\nHost: allowed.example.org\r\n\r\nGET / HTTP/1.1\r\nHost: {name}\r\n\r\n"`,
	}, Sees: "data", Control: arrives, Event: "http"},
	{ID: "host-and-absolute-form", Items: "N8", Lines: []string{
		`tcp {h}:80 send="GET http://{name}/ HTTP/1.1\r\nHost: allowed.example.org\r\n\r\n"`,
		`tcp {h}:80 send="GET http://allowed.example.org/ HTTP/1.1\r\nHost: {name}\r\n\r\n"`,
		`tcp {h}:80 send="GET http://allowed.example.org@{name}/ HTTP/1.1\r\nHost: allowed.example.org\r\n\r\n"`,
		`tcp {h}:80 send="GET //{name}/ HTTP/1.1\r\nHost: {name}\r\n\r\n"`,
	}, Sees: "data", Control: arrives, Event: "http"},
	{ID: "host-odd", Items: "N8 N9", Lines: []string{
		`tcp {h}:80 send="GET / HTTP/1.1\r\nHost : {name}\r\nHost: allowed.example.org\r\n\r\n"`,
		`tcp {h}:80 send="GET / HTTP/1.1\r\nHost: allowed.example.org\r\n {name}\r\n\r\n"`,
		`tcp {h}:80 send="GET / HTTP/1.1\r\nHost:\r\n {name}\r\n\r\n"`,
		`tcp {h}:80 send="GET / HTTP/1.1\r\nHost: {name}\x00.allowed.example.org\r\n\r\n"`,
		`tcp {h}:80 send="GET / HTTP/1.1\r\nHost: {name},allowed.example.org\r\n\r\n"`,
		`tcp {h}:80 send="GET / HTTP/1.1\nHost: allowed.example.org\n\nGET / HTTP/1.1\nHost: {name}\n\n"`,
		`tcp {h}:80 send="GET / HTTP/1.1\r\nX: a\rHost: {name}\r\nHost: allowed.example.org\r\n\r\n"`,
	}, Sees: "data|" + cut, Control: arrives, Event: "http"},
	{ID: "host-with-port", Items: "N8 N2", Lines: []string{
		`tcp {h}:80 send="GET / HTTP/1.1\r\nHost: allowed.example.org:8000\r\n\r\n"`, `tcp {h}:80 send="GET / HTTP/1.1\r\nHost: allowed.example.org:22\r\n\r\n"`,
		`tcp {h}:80 send="GET http://allowed.example.org:9000/ HTTP/1.1\r\nHost: allowed.example.org:9000\r\n\r\n"`,
	}, Sees: "data|" + cut, Control: arrives, Event: "http"},
	{ID: "http2-upgrade", Items: "N8", Lines: []string{
		`tcp {h}:80 send="GET / HTTP/1.1\r\nHost: {name}\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n\r\n"`,
		`tcp {h}:80 send="PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"`,
	}, Sees: "data|" + cut, Control: arrives, Event: "http"},
	{ID: "request-smuggled", Items: "N8", Lines: []string{
		`tcp {h}:80 send="POST / HTTP/1.1\r\nHost: allowed.example.org\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: {name}\r\n\r\n"`,
		`tcp {h}:80 send="POST / HTTP/1.1\r\nHost: allowed.example.org\r\nContent-Length: 0\r\nContent-Length: 44\r\n\r\nGET / HTTP/1.1\r\nHost: {name}\r\n\r\n"`,
		`tcp {h}:80 send="POST / HTTP/1.1\r\nHost: allowed.example.org\r\nTransfer-Encoding: xchunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: {name}\r\n\r\n"`,
		`tcp {h}:80 send="POST / HTTP/1.1\r\nHost: allowed.example.org\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: {name}\r\n\r\n"`,
		`tcp {h}:80 send="GET / HTTP/1.0\r\nHost: allowed.example.org\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: {name}\r\n\r\n"`,
		`tcp {h}:80 send="POST / HTTP/1.1\r\nHost: allowed.example.org\r\nContent-Length: +4\r\n\r\nGET / HTTP/1.1\r\nHost: {name}\r\n\r\n"`,
		`tcp {h}:80 send="POST / HTTP/1.1\r\nHost: allowed.example.org\r\nTransfer-Encoding: chunked\r\n\r\n0;a=\"\n\"\r\n\r\nGET / HTTP/1.1\r\nHost: {name}\r\n\r\n"`,
	}, Sees: "data|" + cut, Control: arrives},
}

// proxyTries speak to the explicit proxy.
var proxyTries = []Try{
	{ID: "tunnel-denied", Items: "P2 N9", Lines: []string{"tunnel {lh}:536 {name}:443"}, Sees: "403", Control: ours, Event: "proxy"},
	{ID: "tunnel-other-sni", Items: "N4", Lines: []string{"http https://allowed.example.org/ ca={ca} proxy=http://{lh}:536 sni={name}"}, Sees: cut, Control: ours, Event: "proxy|tls"},
	{ID: "tunnel-no-tls", Items: "N4 N8", Lines: []string{
		`tcp {lh}:536 bytes=300 limit=400ms send="CONNECT allowed.example.org:443 HTTP/1.1\r\nHost: allowed.example.org:443\r\n\r\nGET / HTTP/1.1\r\nHost: {name}\r\n\r\n"`,
		`tcp {lh}:536 bytes=300 limit=400ms send="CONNECT allowed.example.org:80 HTTP/1.1\r\nHost: allowed.example.org:80\r\n\r\nGET / HTTP/1.1\r\nHost: {name}\r\n\r\n"`,
		`tcp {lh}:536 send="CONNECT allowed.example.org:443 HTTP/1.1\r\nHost: {name}:443\r\n\r\n"`,
	}, Sees: "data", Control: ours},
	{ID: "proxy-other-scheme", Items: "N8 N9", Lines: []string{
		`tcp {lh}:536 send="GET https://{name}/ HTTP/1.1\r\nHost: {name}\r\n\r\n"`, `tcp {lh}:536 send="GET ftp://{name}/ HTTP/1.1\r\nHost: {name}\r\n\r\n"`,
		`tcp {lh}:536 send="GET http://allowed.example.org:8000/ HTTP/1.1\r\nHost: allowed.example.org:8000\r\n\r\n"`,
		`tcp {lh}:536 send="GET http://allowed.example.org/ HTTP/1.1\r\nHost: {name}\r\n\r\n"`, `tcp {lh}:536 send="GET / HTTP/1.1\r\nHost: {name}\r\n\r\n"`,
		`tcp {lh}:536 send="OPTIONS * HTTP/1.1\r\nHost: {name}\r\n\r\n"`, `tcp {lh}:536 send="\x05\x01\x00"`, `tcp {lh}:536 send="\x04\x01\x01\xbb\xc6\x33\x64\x42\x00"`,
	}, Sees: "data|" + cut, Control: ours},
	{ID: "proxy-request", Items: "P2 N8", Lines: []string{"http http://{name}/ proxy=http://{lh}:536"}, Sees: "403", Control: ours, Event: "proxy|http"},
	{ID: "authority-forms", Items: "N9 N10", Lines: []string{
		"tunnel {lh}:536 198.51.100.66:443", "tunnel {lh}:536 3325256770:443", "tunnel {lh}:536 0xc6336442:443", "tunnel {lh}:536 0306.063.0144.0102:443",
		"tunnel {lh}:536 [::ffff:198.51.100.66]:443", "tunnel {lh}:536 [2001:db8:1::66]:443", "tunnel {lh}:536 allowed.example.org@{name}:443",
		"tunnel {lh}:536 {name}#.allowed.example.org:443", "tunnel {lh}:536 {name}%00.allowed.example.org:443", `tunnel {lh}:536 "{name}\x00.allowed.example.org:443"`,
		"tunnel {lh}:536 allowed.example.org.{name}:443", "tunnel {lh}:536 allowed.example.org:25", "tunnel {lh}:536 allowed.example.org:0443x",
	}, Sees: told, Control: ours},
	{ID: "tunnel-to-self", Items: "N10 P3", Lines: []string{
		"tunnel {lh}:536 127.0.0.1:536", "tunnel {lh}:536 127.0.0.1:533", "tunnel {lh}:536 [::1]:536", "tunnel {lh}:536 localhost:443", "tunnel {lh}:536 0.0.0.0:443",
		"tunnel {lh}:536 workshop:443", "tunnel {lh}:536 ready.workshop.internal:443",
	}, Sees: told, Control: ours},
	{ID: "proxy-elsewhere", Items: "P3 P1", Lines: []string{"connect {h}:536", "connect {h}:3128", "connect {h}:1080"}, Sees: refused, Control: arrives, Event: "kernel"},
}
