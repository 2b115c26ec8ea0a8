package threat

// nameItems: look-ups as a way out, or as a way to lead the guard astray.
var nameItems = []Item{
	{
		ID: "D1", Attack: "Queries to another DNS server",
		Fell:   []string{"claude-code#36907", "gh-aw-firewall#9", "moat PR 18"},
		Status: Closed, Answer: "Port 53 of any address leads to the guard's DNS; other ports are refused",
		Promises: []string{"B23"}, Tests: []string{"internal/room TestDNSIsAnswered", "e2e TestB23_Names"},
	},
	{
		ID: "D2", Attack: "Data in names, through the allowed resolver",
		Fell:   []string{"gh-aw-firewall (its docs)", "sandbox-runtime#88", "OpenShell#1169"},
		Status: Closed, Answer: "A denied name is never looked up: not from a query, SNI, Host or CONNECT",
		Promises: []string{"B23"}, Tests: []string{"internal/guard TestDNS", "internal/guard TestTLS", "e2e TestB23_Names"},
	},
	{
		ID: "D3", Attack: "A resolver exception for the guard, used by others in its namespace",
		Fell:   []string{"klangk#2264"},
		Status: Gone, Answer: "The guard resolves outside the room",
		Promises: []string{"B20", "B23"}, Tests: []string{"internal/room TestFlushedRoomIsClosed"},
	},
	{
		ID: "D4", Attack: "The engine's embedded resolver on 127.0.0.11",
		Fell:   []string{"designs that accept all of loopback: claude-code's init-firewall.sh, gh-aw-firewall, klangk, OpenSandbox"},
		Status: Gone, Answer: "With `network: none` the engine starts none in a room",
		Promises: []string{"B20", "B23"}, Tests: []string{"internal/room TestDNSIsAnswered"},
	},
	{
		ID: "D5", Attack: "Subdomains as a channel, under a wildcard",
		Fell:   []string{"agent-glovebox#1048 (`*.hf.co`)", "gh-aw-firewall (a plain domain means all below it)"},
		Status: Closed, Answer: "Wildcards on public suffixes are refused, on shared platforms too unless `any_tenant: true`; all have [limits](network.md#lines-of-allow) on new names and lengths",
		Remedy:   "One new name a second passes; the budget restarts with the guard. Look-ups of up to 256 known names carry a few hundred bytes a second, outside every byte budget. Write exact names",
		Promises: []string{"B23"}, Tests: []string{"internal/guard TestWildcardBudget", "internal/guard/dns TestWildcardBudgetIsOfThePattern", "internal/guard/dns TestWildcardLengths", "firewall TestSuffixes"},
	},
	{
		ID: "D6", Attack: "A channel inside the query: letter case, EDNS options, other types",
		Fell:   []string{"OpenSandbox and mitos (forward the client's message)"},
		Status: Closed, Answer: "The guard sends its own query: lower case, own ID, no options, A or AAAA",
		Promises: []string{"B23"}, Tests: []string{"internal/guard/dns TestQueriesAreTheGuardsOwn", "internal/guard/dns TestOddQuestions", "internal/guard/dns TestCacheJoinsEqualQuestions"},
	},
	{
		ID: "D7", Attack: "HTTPS and SVCB records: addresses and keys for encrypted hellos",
		Fell:   []string{"sandy#154"},
		Status: Closed, Answer: "Answered without data, like every type but A and AAAA",
		Promises: []string{"B23"}, Tests: []string{"internal/guard/dns TestOddQuestions", "e2e TestB23_Names"},
	},
	{
		ID: "D8", Attack: "DNS over TLS, HTTPS or QUIC",
		Fell:   []string{"sandy#154 (in its permissive mode)"},
		Status: Closed, Answer: "Port 853 is refused; known resolvers open only by a line with the exact name. Browsers' canary names don't exist",
		Remedy:   "The list is incomplete, and a resolver on an allowed shared host is allowed",
		Promises: []string{"B23", "B24"}, Tests: []string{"firewall TestDoH", "internal/guard TestResolversStayClosed", "internal/guard/dns TestSpecialNames"},
	},
	{
		ID: "D9", Attack: "An allowed name that resolves to the host, a neighbour or a metadata service",
		Fell:   []string{"OpenSandbox, harden-runner and init-firewall.sh (pin any address)"},
		Status: Closed, Answer: "Private (without a line), special and own addresses are removed from answers and refused at each dial, also inside IPv6",
		Promises: []string{"B26", "B31"}, Tests: []string{"internal/guard TestDNSRebinding", "firewall TestClassify", "internal/guard/egress TestCheckStandsBeforeConnect", "e2e TestB31_ARebindingNameIsNotDialled"},
	},
	{
		ID: "D10", Attack: "Extra records or a denied CNAME in an answer",
		Fell:   []string{"cilium#30588 (what users expect of it)"},
		Status: Closed, Answer: "Only addresses of the queried name's CNAME chain are used",
		Remedy:   "The owner of an allowed name decides where its CNAME points",
		Promises: []string{"B23", "B25"}, Tests: []string{"internal/guard/dns TestFlatten", "internal/guard/dns TestOnlyTheChainIsPinned", "internal/guard/dns TestForgedAnswersAreIgnored"},
	},
	{
		ID: "D11", Attack: "Stale addresses of an allowed name",
		Fell:   []string{"claude-code PR 5608 and PR 40322", "soleur#5413", "cilium#21439"},
		Status: Closed, Answer: "80 and 443 are resolved at dial time; for other ports an address is valid for its TTL (at least 30 s) plus a minute",
		Promises: []string{"B25"}, Tests: []string{"internal/guard TestPinned", "internal/guard/dns TestPinsAreBounded", "internal/guard/dns TestPinsOfOneNameAreBounded"},
	},
	{
		ID: "D12", Attack: "A forged hosts file or resolv.conf, shared in a namespace",
		Fell:   []string{"guards that live in the workers' namespace"},
		Status: Gone, Answer: "The guard has its own; a worker's are read-only",
		Promises: []string{"B3", "B24"}, Tests: []string{"e2e TestB03_ReadOnlyButWhatIsDeclared"},
	},
	{
		ID: "D13", Attack: "Multicast DNS, NetBIOS, search domains",
		Status: Closed, Answer: "All UDP but DNS is refused. Single labels, .local, .arpa, localhost, .onion, .invalid and browsers' resolver checks don't exist in any mode; only a line opens a local name. (Mode open carries redirected connections to the dialled address.) No search domain is set",
		Promises: []string{"B23"}, Tests: []string{"firewall TestSpecialNames", "internal/guard/dns TestSpecialNames", "internal/guard TestOneDecision"},
	},
}

// addressItems: an allowed name used to reach another place.
var addressItems = []Item{
	{
		ID: "N1", Attack: "A denied name at an allowed one's address (CDN)",
		Fell:   []string{"cilium#31803", "every design that opens addresses"},
		Status: Closed, Answer: "On 80 and 443 each connection's SNI or request's Host decides, and the guard dials its own answer",
		Remedy:   "`host:22` opens that port for every name at the address. Prefer HTTPS, or hosts with their own addresses",
		Promises: []string{"B24"}, Tests: []string{"internal/guard TestTLS", "internal/guard TestHTTP", "e2e TestB24_ByName"},
	},
	{
		ID: "N2", Attack: "An allowed SNI or Host, sent to the attacker's address",
		Fell:   []string{"AWS Network Firewall without TLS inspection", "mitos (dials the original address)"},
		Status: Closed, Answer: "The dialled address is ignored; a different one is an event",
		Promises: []string{"B24"}, Tests: []string{"internal/guard TestTLS", "internal/guard TestHTTP", "e2e TestB24_ByName"},
	},
	{
		ID: "N3", Attack: "Domain fronting: another Host inside TLS",
		Fell:   []string{"microsandbox#709", "Docker Sandboxes (its docs)", "open-computer-use#198"},
		Status: Open, Answer: "The guard reads only the first hello: the request inside, a second hello (HelloRetryRequest) or a renegotiation can name another host of the dialled server",
		Remedy:   "Allow no provider that serves every customer under any Host; set `upload:` budgets",
		Promises: []string{"B24"},
	},
	{
		ID: "N4", Attack: "CONNECT to an allowed name or address, another name inside",
		Fell:   []string{"gh-aw-firewall before #8878 (gh-aw#62547)", "this project, before it read tunnels to addresses", "this project, when record version 3.0 passed as non-TLS"},
		Status: Closed, Answer: "A tunnel to 443 must begin with a ClientHello for the CONNECT name. With denied names, tunnels to 80 or 443 of an address are decided like redirected connections; odd record versions hide no hello",
		Promises: []string{"B24", "B27"}, Tests: []string{"internal/guard TestDenyWinsOverDisguise", "internal/guard TestExplicitProxy", "internal/guard TestTunnelsHoldOneName", "internal/guard TestOneDecision"},
	},
	{
		ID: "N5", Attack: "An encrypted ClientHello",
		Fell:   []string{"inspect_k8s_sandbox#208 (discussed)"},
		Status: Closed, Answer: "Refused, unless the line says `ech: allow`; then it is an event. DNS never returns its keys",
		Remedy:   "`ech: allow` gives up the name: it can be any host of that provider",
		Promises: []string{"B24"}, Tests: []string{"internal/guard TestECH", "internal/guard TestECHOpen", "internal/guard/tlshello TestOuterName"},
	},
	{
		ID: "N6", Attack: "TLS without SNI, or to a bare address",
		Fell:   []string{"gh-aw-firewall#137", "OpenSandbox#1469"},
		Status: Closed, Answer: "Refused, unless a `cidr` line opens the address",
		Promises: []string{"B24"}, Tests: []string{"internal/guard TestTLS", "e2e TestB24_ByName"},
	},
	{
		ID: "N7", Attack: "ClientHellos that parsers read differently: split, padded, doubled or odd names",
		Fell:   []string{"ACA#1826", "inetaf/tcpproxy (first record only)"},
		Status: Closed, Answer: "Up to 64 KiB are reassembled; anything but exactly one plain host name ends the connection",
		Promises: []string{"B24", "B60"}, Tests: []string{"internal/guard/tlshello TestRead", "internal/guard/tlshello TestShapes", "internal/guard/tlshello TestReadIsBounded", "internal/guard/tlshello FuzzRead", "internal/guard/tlshello FuzzCut"},
	},
	{
		ID: "N8", Attack: "Another Host in a later request, absolute forms, h2c, request smuggling",
		Fell:   []string{"claude-code#40213", "proxies that read only the first request"},
		Status: Closed, Answer: "Each request head is parsed and rewritten; Host, target and policy must agree. h2c, two lengths and duplicate Hosts are refused",
		Promises: []string{"B24", "B60"}, Tests: []string{"internal/guard TestHTTP", "internal/guard TestHTTPBodies", "internal/guard TestForwarding", "internal/guard/proxy TestHeadsThatSmuggle", "internal/guard/proxy FuzzReadHead", "internal/guard/proxy FuzzForward"},
	},
	{
		ID: "N9", Attack: "Hosts that check and dialler read differently: NUL, octal, `@`, mapped addresses",
		Fell:   []string{"Claude Code's SOCKS proxy (cited in OpenShell#1498)", "gh-aw-firewall (dotted quads by a regular expression)"},
		Status: Closed, Answer: "Policy, resolver and dialler get one canonical form from one parser",
		Promises: []string{"B24", "B31"}, Tests: []string{"firewall TestParseName", "firewall FuzzHostPattern", "internal/guard/proxy TestParseAuthority", "internal/guard/proxy FuzzAuthority"},
	},
	{
		ID: "N10", Attack: "The proxy asked to dial itself or closed ranges",
		Fell:   []string{"proxies without smokescreen's check of their own addresses"},
		Status: Closed, Answer: "Each dial checks its address: guard and resolvers are never dialled, gateway, neighbours and private ranges only by a line",
		Promises: []string{"B26", "B31"}, Tests: []string{"internal/guard TestNeverList", "internal/guard TestExplicitProxy", "internal/guard/egress TestUpstreamKnowsItsOwn", "e2e TestB31_EveryDialChecksTheAddress"},
	},
}
