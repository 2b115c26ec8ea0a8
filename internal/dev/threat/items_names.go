package threat

// nameItems: look-ups as a way out, or as a way to lead the guard astray.
var nameItems = []Item{
	{
		ID: "D1", Attack: "Questions to a name server of the attacker's choice",
		Fell:   []string{"claude-code#36907 (port 53 open to any server)", "gh-aw-firewall#9", "moat PR 18"},
		Status: Closed, Answer: "Whatever is sent to port 53, over UDP or TCP, to any address, is redirected to the guard's own DNS; other ports are refused",
		Promises: []string{"B23"}, Tests: []string{"internal/room TestDNSIsAnswered", "e2e TestB23_Names"},
	},
	{
		ID: "D2", Attack: "Data in names, through the resolver that is allowed",
		Fell:   []string{"gh-aw-firewall (its docs)", "sandbox-runtime#88", "OpenShell#1169 (a denied HTTP request still looked its name up)"},
		Status: Closed, Answer: "The policy is asked before any packet: a denied name is NXDOMAIN at once, also when it comes as SNI, Host or CONNECT",
		Promises: []string{"B23"}, Tests: []string{"internal/guard TestDNS", "internal/guard TestTLS", "e2e TestB23_Names"},
	},
	{
		ID: "D3", Attack: "The exception for the guard's resolver serves everybody in the namespace",
		Fell:   []string{"klangk#2264"},
		Status: Gone, Answer: "The guard asks from another network namespace. In the room there is no exception, and no cable that one could lead to",
		Promises: []string{"B20", "B23"}, Tests: []string{"internal/room TestFlushedRoomIsClosed"},
	},
	{
		ID: "D4", Attack: "The engine's embedded resolver, at its real port on 127.0.0.11",
		Fell:   []string{"designs that accept all of loopback: claude-code's init-firewall.sh, gh-aw-firewall, klangk, OpenSandbox"},
		Status: Gone, Answer: "A room is `network: none`: the engine starts no resolver in it. Below 1024 only the guard's six sockets listen",
		Promises: []string{"B20", "B23"}, Tests: []string{"internal/room TestDNSIsAnswered"},
	},
	{
		ID: "D5", Attack: "Sub-domains as a channel, under a wildcard whose zone the attacker can join",
		Fell:   []string{"agent-glovebox#1048 (`*.hf.co`)", "gh-aw-firewall (a plain domain means all below it)"},
		Status: Closed, Answer: "Names are exact unless a line says `*.`. Wildcards on public suffixes and shared platforms are refused; each has a budget of new names a minute, and bounds on label and name, with an event",
		Remedy:   "The budget slows the channel, it doesn't end it: a name a second stays. Write exact names",
		Promises: []string{"B23"}, Tests: []string{"internal/guard TestWildcardBudget", "internal/guard/dns TestWildcardBudgetIsOfThePattern", "internal/guard/dns TestWildcardLengths", "firewall TestSuffixes"},
	},
	{
		ID: "D6", Attack: "A channel inside the query: upper and lower case, EDNS options, other types",
		Fell:   []string{"OpenSandbox and mitos (forward the client's message)"},
		Status: Closed, Answer: "The guard makes its own question: lower case, own ID, no options, A or AAAA. What was asked never leaves, equal questions are joined and answered from a cache",
		Promises: []string{"B23"}, Tests: []string{"internal/guard/dns TestQueriesAreTheGuardsOwn", "internal/guard/dns TestOddQuestions", "internal/guard/dns TestCacheJoinsEqualQuestions"},
	},
	{
		ID: "D7", Attack: "HTTPS and SVCB records, which carry addresses and keys for encrypted hellos",
		Fell:   []string{"sandy#154"},
		Status: Closed, Answer: "They are answered without data, as all types but A and AAAA",
		Promises: []string{"B23"}, Tests: []string{"internal/guard/dns TestOddQuestions", "e2e TestB23_Names"},
	},
	{
		ID: "D8", Attack: "Another resolver over TLS, HTTPS or QUIC",
		Fell:   []string{"sandy#154 (in its permissive mode)"},
		Status: Closed, Answer: "853 is a port like any other: refused. Names of known resolvers are opened by no wildcard and no learning, only by a line with the very name; the canary names of browsers don't exist",
		Remedy:   "No list of resolvers is complete: one on an allowed shared host is an allowed host",
		Promises: []string{"B23", "B24"}, Tests: []string{"firewall TestDoH", "internal/guard TestResolversStayClosed", "internal/guard/dns TestSpecialNames"},
	},
	{
		ID: "D9", Attack: "An allowed name that answers with the host, a neighbour or the metadata service",
		Fell:   []string{"OpenSandbox, harden-runner and init-firewall.sh (pin any address)"},
		Status: Closed, Answer: "Private, special and own addresses are taken out of answers, also inside IPv6, and every dial checks the address again; metadata, loopback and link-local nothing opens",
		Promises: []string{"B26", "B31"}, Tests: []string{"internal/guard TestDNSRebinding", "firewall TestClassify", "internal/guard/egress TestCheckStandsBeforeConnect", "e2e TestB31_ARebindingNameIsNotDialled"},
	},
	{
		ID: "D10", Attack: "Records beside the answer, or a CNAME that leads to a denied name",
		Fell:   []string{"cilium#30588 (what users expect of it)"},
		Status: Closed, Answer: "The name that was asked decides. Only addresses that the chain inside one answer reaches are taken, and they are answered under the name that was asked",
		Remedy:   "Where an allowed name's CNAME leads is its owner's decision",
		Promises: []string{"B23", "B25"}, Tests: []string{"internal/guard/dns TestFlatten", "internal/guard/dns TestOnlyTheChainIsPinned", "internal/guard/dns TestForgedAnswersAreIgnored"},
	},
	{
		ID: "D11", Attack: "Addresses that an allowed name had once, or an outage when they rotate",
		Fell:   []string{"claude-code PR 5608 and PR 40322 (resolved once)", "soleur#5413", "cilium#21439"},
		Status: Closed, Answer: "80 and 443 are resolved when dialled. For other ports an address is pinned for its TTL, at least 30 s, and a minute more; 64 addresses a name",
		Promises: []string{"B25"}, Tests: []string{"internal/guard TestPinned", "internal/guard/dns TestPinsAreBounded", "internal/guard/dns TestPinsOfOneNameAreBounded"},
	},
	{
		ID: "D12", Attack: "A forged hosts file or resolv.conf, shared by the containers of a namespace",
		Fell:   []string{"guards that live in the workers' namespace"},
		Status: Gone, Answer: "The guard is another container with files of its own. The worker's are read-only; who writes them deceives himself",
		Promises: []string{"B3", "B24"}, Tests: []string{"e2e TestB03_ReadOnlyButWhatIsDeclared"},
	},
	{
		ID: "D13", Attack: "Multicast names, NetBIOS, names of the local network by search domains",
		Status: Closed, Answer: "Multicast and broadcast are refused as all UDP; single labels, .local, .arpa, localhost, .onion, .invalid and what browsers ask about resolvers don't exist: by look-up, CONNECT, proxy, Host and SNI, in mode open and learning too. Only a line opens a name of the local network. In mode open redirected connections go to the address that was dialled, whatever name they give; no search domain is set",
		Promises: []string{"B23"}, Tests: []string{"firewall TestSpecialNames", "internal/guard/dns TestSpecialNames", "internal/guard TestOneDecision"},
	},
}

// addressItems: an allowed name used to reach another place.
var addressItems = []Item{
	{
		ID: "N1", Attack: "A denied name at an address that an allowed one shares (CDN)",
		Fell:   []string{"cilium#31803", "every design that opens addresses"},
		Status: Closed, Answer: "80 and 443 open no address: each connection goes by its SNI, each request by its Host, and the guard dials its own answer",
		Remedy:   "On other ports the address is all there is: a line like `host:22` opens that port for all who share it",
		Promises: []string{"B24"}, Tests: []string{"internal/guard TestTLS", "internal/guard TestHTTP", "e2e TestB24_ByName"},
	},
	{
		ID: "N2", Attack: "An allowed SNI or Host, sent to the attacker's address",
		Fell:   []string{"AWS Network Firewall without TLS inspection", "mitos (dials the original address)"},
		Status: Closed, Answer: "The address that the worker dialled is ignored; that it was another is an event",
		Promises: []string{"B24"}, Tests: []string{"internal/guard TestTLS", "internal/guard TestHTTP", "e2e TestB24_ByName"},
	},
	{
		ID: "N3", Attack: "Fronting: an allowed SNI, another Host inside TLS",
		Fell:   []string{"microsandbox#709", "Docker Sandboxes (its docs)", "open-computer-use#198"},
		Status: Open, Answer: "The guard doesn't open TLS, so it sees the SNI and not the request",
		Remedy:   "Allow no names of providers that serve everybody's content under any Host; give lines an `upload:` budget",
		Promises: []string{"B24"},
	},
	{
		ID: "N4", Attack: "CONNECT to an allowed name or address, another SNI or Host inside the tunnel",
		Fell:   []string{"gh-aw-firewall before #8878 (gh-aw#62547)", "this project before it read tunnels to addresses", "this project when a record version of 3.0 passed for not TLS"},
		Status: Closed, Answer: "A tunnel to 443 must begin with a ClientHello for the very name of the CONNECT. Where names are denied, one to 80 or 443 of an address is read before anything is dialled, and decided by the function that decides about a redirected connection. A hello that is dressed up as something else (an odd record version, an alert in front) gets no further: the version is ignored as servers do, and what isn't TLS is refused on 443 then",
		Promises: []string{"B24", "B27"}, Tests: []string{"internal/guard TestDenyWinsOverDisguise", "internal/guard TestExplicitProxy", "internal/guard TestTunnelsHoldOneName", "internal/guard TestOneDecision"},
	},
	{
		ID: "N5", Attack: "An encrypted ClientHello, whose inner name nobody sees",
		Fell:   []string{"inspect_k8s_sandbox#208 (discussed)"},
		Status: Closed, Answer: "A hello with the extension is refused, unless the line says `ech: allow`; then it is an event. The keys for it come by record types that are never answered (D7)",
		Remedy:   "`ech: allow` gives up the name: behind it any host of that provider can be meant",
		Promises: []string{"B24"}, Tests: []string{"internal/guard TestECH", "internal/guard TestECHOpen", "internal/guard/tlshello TestOuterName"},
	},
	{
		ID: "N6", Attack: "TLS without SNI, or to a bare address",
		Fell:   []string{"gh-aw-firewall#137", "OpenSandbox#1469 (lets it through)"},
		Status: Closed, Answer: "Refused; a `cidr` line may open an address",
		Promises: []string{"B24"}, Tests: []string{"internal/guard TestTLS", "e2e TestB24_ByName"},
	},
	{
		ID: "N7", Attack: "ClientHellos that two parsers read differently: split, padded, doubled names, odd bytes",
		Fell:   []string{"ACA#1826 (large key shares)", "inetaf/tcpproxy (first record only)"},
		Status: Closed, Answer: "Read across segments and records up to 64 KiB, with exactly one host name that is a plain domain name; anything else ends the connection",
		Promises: []string{"B24", "B60"}, Tests: []string{"internal/guard/tlshello TestRead", "internal/guard/tlshello TestShapes", "internal/guard/tlshello TestReadIsBounded", "internal/guard/tlshello FuzzRead", "internal/guard/tlshello FuzzCut"},
	},
	{
		ID: "N8", Attack: "Another Host in a later request, absolute forms, h2c, request smuggling",
		Fell:   []string{"claude-code#40213 (plain HTTP unfiltered)", "proxies that look at the first request"},
		Status: Closed, Answer: "Each request's head is read and written anew, Host, target and policy compared; h2c, two lengths and doubled hosts are refused",
		Promises: []string{"B24", "B60"}, Tests: []string{"internal/guard TestHTTP", "internal/guard TestHTTPBodies", "internal/guard TestForwarding", "internal/guard/proxy TestHeadsThatSmuggle", "internal/guard/proxy FuzzReadHead", "internal/guard/proxy FuzzForward"},
	},
	{
		ID: "N9", Attack: "Hosts that the check and the dialler read differently: NUL, octal, `@`, mapped addresses",
		Fell:   []string{"Claude Code's SOCKS proxy (cited in OpenShell#1498)", "gh-aw-firewall (dotted quads by a regular expression)"},
		Status: Closed, Answer: "One parser makes a canonical name or address; policy, resolver and dialler share that value, and nothing is parsed twice",
		Promises: []string{"B24", "B31"}, Tests: []string{"firewall TestParseName", "firewall FuzzHostPattern", "internal/guard/proxy TestParseAuthority", "internal/guard/proxy FuzzAuthority"},
	},
	{
		ID: "N10", Attack: "The proxy asked to connect to itself, to loopback or into private ranges",
		Fell:   []string{"proxies without smokescreen's check of their own addresses"},
		Status: Closed, Answer: "The guard's own and neighbouring addresses, its resolvers and its gateway are on the never-list, which each dial asks",
		Promises: []string{"B26", "B31"}, Tests: []string{"internal/guard TestNeverList", "internal/guard TestExplicitProxy", "internal/guard/egress TestUpstreamKnowsItsOwn", "e2e TestB31_EveryDialChecksTheAddress"},
	},
}
