package threat

// transportItems: packets that no name decides about.
var transportItems = []Item{
	{
		ID: "T1", Attack: "IPv6, and IPv4 written as IPv6 (mapped, NAT64, 6to4)",
		Fell:   []string{"claude-code#24952 and PR 81423", "klangk#2275", "moat#317", "hive#4321", "agent-vault#99", "harden-runner (rules for IPv4 only)"},
		Status: Closed, Answer: "Neither family has an interface; one list makes both rule sets, embedded addresses included",
		Promises: []string{"B20", "B26", "B28"}, Tests: []string{"internal/room TestDenied", "internal/room TestWithoutIPv6", "firewall TestClassify", "e2e TestB26_IPv6"},
	},
	{
		ID: "T2", Attack: "QUIC and other UDP",
		Fell:   []string{"claude-code's init-firewall.sh (UDP 53 to anywhere)"},
		Status: Closed, Answer: "Refused at once, so programs fall back to TCP; a UDP line is an error",
		Promises: []string{"B25", "B28"}, Tests: []string{"internal/room TestDenied", "e2e TestB26_IPv6"},
	},
	{
		ID: "T3", Attack: "Data in pings",
		Fell:   []string{"gh-aw-firewall's rules in the container", "coder/boundary (forwards all that isn't TCP)"},
		Status: Closed, Answer: "Refused, and no interface could send them",
		Promises: []string{"B20", "B25"}, Tests: []string{"internal/room TestICMP"},
	},
	{
		ID: "T4", Attack: "Bypassing the rules: raw and packet sockets, marks, foreign sources, source routes",
		Fell:   []string{"dev containers that give the agent NET_ADMIN and NET_RAW for init-firewall.sh"},
		Status: Gone, Answer: "Past the rules there is only loopback, and a worker can't open such sockets",
		Remedy:   "A foreign source (IP_FREEBIND) or source route gets silence instead of a refusal. With NET_RAW, which no worker can have, a worker could read and forge its room's loopback traffic",
		Promises: []string{"B1", "B2", "B20"}, Tests: []string{"e2e TestB01_NoCapabilities", "e2e TestB20_NoInterfaceButLoopback", "internal/room TestFlushedRoomIsClosed"},
	},
	{
		ID: "T5", Attack: "Other protocols and families: SCTP, GRE, multipath TCP, VSOCK, ALG",
		Status: Closed, Answer: "No interface carries them, and rules refuse other protocols; seccomp allows only unix, IPv4, IPv6 and netlink sockets",
		Promises: []string{"B2", "B20"}, Tests: []string{"compose TestSocketFamilies", "compose TestSeccompInAContainer", "e2e TestB02_NoNewPrivilegesAndSeccomp"},
	},
	{
		ID: "T6", Attack: "ssh to any host once port 22 is open",
		Fell:   []string{"claude-code's init-firewall.sh"},
		Status: Closed, Answer: "A port's line reaches only its name's addresses",
		Remedy:   "On a shared host ssh reaches every repository that the key opens. Use HTTPS, or a key for one repository",
		Promises: []string{"B25"}, Tests: []string{"internal/guard TestPinned", "e2e TestB25_OtherPorts"},
	},
	{
		ID: "T7", Attack: "The host and its network",
		Fell:   []string{"claude-code's init-firewall.sh (the whole /24)", "gh-aw-firewall#207 and #558", "moat#461", "libnetwork#1151"},
		Status: Closed, Answer: "Private ranges, gateway, neighbours and the machine's addresses at `up` need a line; on the namespace engine no line opens the machine's",
		Remedy:   "Later addresses of the host, those outside a NAT, of a remote engine or under plain Compose count as ordinary: bind services to 127.0.0.1, or `deny` them. `{cidr: 0.0.0.0/0}` opens private ranges and the host",
		Promises: []string{"B26"}, Tests: []string{"e2e TestB26_HostAndPrivateRanges", "internal/guard/egress TestPublicAddressOfTheHost", "internal/guard/egress TestNextHops"},
	},
	{
		ID: "T8", Attack: "Metadata services",
		Fell:   []string{"harden-runner (accepts 169.254.169.254 and 168.63.129.16)"},
		Status: Closed, Answer: "The guard never dials them, whatever mode or line, IPv6 addresses of providers included",
		Promises: []string{"B26", "B31"}, Tests: []string{"internal/guard TestNeverList", "firewall TestClassify", "e2e TestB26_MetadataNeverLeaves"},
	},
	{
		ID: "T9", Attack: "Other containers",
		Status: Closed, Answer: "A room has no network, and a worker can't attach one; the guard's neighbours need a line",
		Promises: []string{"B26"}, Tests: []string{"internal/guard/egress TestPlaceOfThisMachine", "e2e TestB31_EveryDialChecksTheAddress"},
	},
	{
		ID: "T10", Attack: "A published port as a way out",
		Status: Closed, Answer: "Ports bind 127.0.0.1 unless the file says otherwise, and lead through the guard to that one port",
		Remedy:   "Whoever may connect can take what the worker serves",
		Promises: []string{"B10"}, Tests: []string{"internal/guard TestPublished", "e2e TestB10_PublishedOnLoopback"},
	},
}

// proxyItems: the explicit proxy, and being one.
var proxyItems = []Item{
	{
		ID: "P1", Attack: "Ignoring or unsetting HTTP_PROXY",
		Fell:   []string{"claude-code-action#341", "moat PR 18"},
		Status: Gone, Answer: "Without it connections reach the same guard",
		Promises: []string{"B20", "B24"}, Tests: []string{"internal/guard TestTLS", "e2e TestB24_ByName"},
	},
	{
		ID: "P2", Attack: "NO_PROXY, or a trusted relay on loopback",
		Fell:   []string{"moat#322", "claude-code#87381, #77045, #89165"},
		Status: Gone, Answer: "Room, name and port decide, not headers or the source port",
		Promises: []string{"B24"}, Tests: []string{"internal/guard TestExplicitProxy", "e2e TestB24_ExplicitProxy"},
	},
	{
		ID: "P3", Attack: "The guard as an open relay",
		Fell:   []string{"coder/boundary (listens on all interfaces)"},
		Status: Gone, Answer: "It listens on the rooms' loopback, and on its own network only for published ports. Transparent ports take only redirected connections",
		Promises: []string{"B22"}, Tests: []string{"internal/room TestGuardsPorts", "e2e TestB22_TheRoomCantBeChanged"},
	},
	{
		ID: "P4", Attack: "An upstream proxy that resolves the name again, or that a worker chose",
		Fell:   []string{"chains that pass the name on (OpenShell and gh-aw-firewall have answers)"},
		Status: Closed, Answer: "`network.proxy` comes only from the file and gets CONNECT with the checked address; failures tell the room none",
		Promises: []string{"B31"}, Tests: []string{"internal/guard TestUpstreamProxy", "internal/guard TestB28_UpstreamProxy", "internal/guard TestUnreachableNamesNoAddress", "internal/guard/egress TestNewProxy", "internal/guard/egress TestProxyIsBounded"},
	},
	{
		ID: "P5", Attack: "Tokens and paths in the guard's log",
		Fell:   []string{"gh-aw-firewall (has a list of domains to keep out)"},
		Status: Gone, Answer: "Events have no field for a path, query, header or body",
		Promises: []string{"B28"}, Tests: []string{"internal/guard TestAllowedEvents"},
	},
}
