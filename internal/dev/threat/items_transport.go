package threat

// transportItems: packets that no name decides about.
var transportItems = []Item{
	{
		ID: "T1", Attack: "IPv6, and IPv4 written as IPv6 (mapped, NAT64, 6to4)",
		Fell:   []string{"claude-code#24952 and PR 81423", "klangk#2275", "moat#317", "hive#4321", "agent-vault#99", "harden-runner (rules for IPv4 only)"},
		Status: Closed, Answer: "There is no interface for either family. The rules of both are made from one list; addresses inside addresses are taken apart before the never-list is asked",
		Promises: []string{"B20", "B26", "B28"}, Tests: []string{"internal/room TestDenied", "internal/room TestWithoutIPv6", "firewall TestClassify", "e2e TestB26_IPv6"},
	},
	{
		ID: "T2", Attack: "QUIC and other UDP",
		Fell:   []string{"claude-code's init-firewall.sh (UDP 53 to anywhere)"},
		Status: Closed, Answer: "Refused at once, so that programs fall back to TCP; a line that asks for UDP is an error of the file",
		Promises: []string{"B25", "B28"}, Tests: []string{"internal/room TestDenied", "e2e TestB26_IPv6"},
	},
	{
		ID: "T3", Attack: "Data in pings",
		Fell:   []string{"gh-aw-firewall's rules in the container", "coder/boundary (forwards all that isn't TCP)"},
		Status: Closed, Answer: "Refused in the room; and there is no wire",
		Promises: []string{"B20", "B25"}, Tests: []string{"internal/room TestICMP"},
	},
	{
		ID: "T4", Attack: "Raw and packet sockets, marks, foreign sources, source routes: around the rules",
		Fell:   []string{"dev containers that give the agent NET_ADMIN and NET_RAW for init-firewall.sh"},
		Status: Gone, Answer: "Around the rules there is loopback and nothing else: packets that a packet socket puts there come in again through INPUT. A worker can't open such sockets in the first place",
		Promises: []string{"B1", "B2", "B20"}, Tests: []string{"e2e TestB01_NoCapabilities", "e2e TestB20_NoInterfaceButLoopback", "internal/room TestFlushedRoomIsClosed"},
	},
	{
		ID: "T5", Attack: "Other protocols and families: SCTP, GRE, multipath TCP; VSOCK, ALG",
		Status: Closed, Answer: "All IP protocols are refused by policy and have no wire; families other than unix, IPv4, IPv6 and netlink are refused by seccomp",
		Promises: []string{"B2", "B20"}, Tests: []string{"compose TestSocketFamilies", "compose TestSeccompInAContainer", "e2e TestB02_NoNewPrivilegesAndSeccomp"},
	},
	{
		ID: "T6", Attack: "ssh to any host, once port 22 is open",
		Fell:   []string{"claude-code's init-firewall.sh"},
		Status: Closed, Answer: "A port needs a line with a name, and leads only to addresses that this name has",
		Remedy:   "ssh to a shared host reaches every repository there that the key opens: use HTTPS, or a key for one repository",
		Promises: []string{"B25"}, Tests: []string{"internal/guard TestPinned", "e2e TestB25_OtherPorts"},
	},
	{
		ID: "T7", Attack: "The host and its network, over the gateway",
		Fell:   []string{"claude-code's init-firewall.sh (the whole /24)", "gh-aw-firewall#207 and #558", "moat#461", "libnetwork#1151"},
		Status: Closed, Answer: "Private ranges, the gateway, neighbours and the addresses that the machine had at `up` are on the never-list; a line must name them to open one",
		Remedy:   "An address that the host got later, or has outside of a NAT, is an ordinary one: let services listen on 127.0.0.1, or add it to `deny`",
		Promises: []string{"B26"}, Tests: []string{"e2e TestB26_HostAndPrivateRanges", "internal/guard/egress TestPublicAddressOfTheHost", "internal/guard/egress TestNextHops"},
	},
	{
		ID: "T8", Attack: "The cloud's metadata service",
		Fell:   []string{"harden-runner (accepts 169.254.169.254 and 168.63.129.16)"},
		Status: Closed, Answer: "Never opened, by no line and in no mode, the IPv6 addresses of AWS, GCP, Oracle, Scaleway, Akamai and Alibaba among them; the guard itself refuses to dial it",
		Promises: []string{"B26", "B31"}, Tests: []string{"internal/guard TestNeverList", "firewall TestClassify", "e2e TestB26_MetadataNeverLeaves"},
	},
	{
		ID: "T9", Attack: "Other containers and Compose services",
		Status: Closed, Answer: "A room is attached to no network, and a worker can't attach it. For the guard, what is on its link is on the never-list",
		Promises: []string{"B26"}, Tests: []string{"internal/guard/egress TestPlaceOfThisMachine", "e2e TestB31_EveryDialChecksTheAddress"},
	},
	{
		ID: "T10", Attack: "A published port as a way out that others open",
		Status: Closed, Answer: "Ports are published on 127.0.0.1 unless the file says otherwise, and lead through the guard to that one port",
		Remedy:   "Who may connect to a published port can take out what the worker serves there",
		Promises: []string{"B10"}, Tests: []string{"internal/guard TestPublished", "e2e TestB10_PublishedOnLoopback"},
	},
}

// proxyItems: the explicit proxy, and being one.
var proxyItems = []Item{
	{
		ID: "P1", Attack: "Ignoring or unsetting HTTP_PROXY",
		Fell:   []string{"claude-code-action#341", "moat PR 18"},
		Status: Gone, Answer: "The variable is a convenience for better error texts. Without it connections end at the same guard",
		Promises: []string{"B20", "B24"}, Tests: []string{"internal/guard TestTLS", "e2e TestB24_ByName"},
	},
	{
		ID: "P2", Attack: "NO_PROXY, or a relay on loopback that the proxy trusts more",
		Fell:   []string{"moat#322", "claude-code#87381, #77045, #89165"},
		Status: Gone, Answer: "The decision depends on room, name and port. Nothing about the way there, no header and no source port, changes it",
		Promises: []string{"B24"}, Tests: []string{"internal/guard TestExplicitProxy", "e2e TestB24_ExplicitProxy"},
	},
	{
		ID: "P3", Attack: "The guard as an open relay for others",
		Fell:   []string{"coder/boundary (listens on all interfaces)"},
		Status: Gone, Answer: "The guard's listeners stand in the rooms, on loopback; on its own network it listens for published ports alone. The transparent ports take redirected connections only",
		Promises: []string{"B22"}, Tests: []string{"internal/room TestGuardsPorts", "e2e TestB22_TheRoomCantBeChanged"},
	},
	{
		ID: "P4", Attack: "An upstream proxy that resolves the name again, or that a worker chose",
		Fell:   []string{"chains that pass the name on (OpenShell and gh-aw-firewall have answers)"},
		Status: Closed, Answer: "`network.proxy` comes from the file alone and gets CONNECT to the address that was resolved and checked. What the room hears of a failure names no address",
		Promises: []string{"B31"}, Tests: []string{"internal/guard TestUpstreamProxy", "internal/guard TestB28_UpstreamProxy", "internal/guard TestUnreachableNamesNoAddress", "internal/guard/egress TestNewProxy", "internal/guard/egress TestProxyIsBounded"},
	},
	{
		ID: "P5", Attack: "Tokens and paths in the guard's log",
		Fell:   []string{"gh-aw-firewall (has a list of domains to keep out)"},
		Status: Gone, Answer: "An event has no field for a path, a query, a header or a body",
		Promises: []string{"B28"}, Tests: []string{"internal/guard TestAllowedEvents"},
	},
}
