package firewall

import "strings"

// reasons say of a refusal why, and what would allow it or that nothing does.
// Those that stand for a class of addresses have its name; those of the guard
// alone are here too, because what shows events to a person doesn't know the
// guard.
var reasons = map[string]string{
	ReasonDenied: "a deny line has it, and deny always wins; take that line out to allow it",
	ReasonNone:   "the worker has no network (mode none)",
	ReasonName:   "no line of network.allow has it",
	ReasonPort:   "lines of network.allow have it, but not with this port",

	Private.String():     "a private address; a line with `private: true`, such as {host: NAME, port: PORT, private: true}, or with a `cidr:` opens it",
	Shared.String():      "an address of a provider's shared range (RFC 6598); a line with `private: true` or a `cidr:` opens it",
	Benchmark.String():   "an address of the range for benchmarks (RFC 2544); a line with a `cidr:` opens it",
	Metadata.String():    "the cloud's metadata service, which gives away credentials; nothing opens it",
	Loopback.String():    "a loopback address outside of the room; nothing opens it. What listens in the worker's own room is reached directly, without a proxy",
	LinkLocal.String():   "a link-local address; nothing opens it",
	Multicast.String():   "a multicast address; nothing opens it",
	Unspecified.String(): "not an address that can be connected to; nothing opens it",
	Reserved.String():    "a reserved address; nothing opens it",
	Translated.String():  "an IPv6 form that hides an IPv4 address; nothing opens it. Use the IPv4 address",
	ReasonInvalid:        "not a name or address that can be looked up",
	ReasonSpecial:        "a name of the local network, or one that is never looked up", // see whySpecial
	ReasonDoH:            "a public resolver or relay, at which a program looks up names unseen; no wildcard and no learning opens it, only a line with this very name",

	ReasonEndpoint: "the host has an endpoint, and is reached by it alone: its tools connect to a port of 127.0.0.1 in the room, by plain HTTP",
	ReasonRequest:  "the endpoint's line doesn't have this request; `requests:` or `git:` of the line says which it has",

	"no-sni":          "TLS without a server name, so nobody can tell which host is meant; connect by name",
	"ech":             "the server name is encrypted (ECH), so it can't be checked; switch ECH off in the program. A line with `ech: allow` lets it pass by its outer name, but then any name of that provider may be meant",
	"upload-budget":   "the line's budget for uploads is used up; bytes become free as time passes, and a larger `upload:` on the line allows more",
	"not-tls":         "port 443 carries TLS only, and this is something else; it passes only to an address of a line with a `cidr:`, and only where no deny line has a name",
	"malformed":       "not a TLS hello, HTTP request or DNS question that can be understood; nothing allows it",
	"ambiguous":       "the request to the endpoint could be read in two ways, or names another host, method or credential in it; such requests are never sent on",
	"credential":      "the credential that the line adds isn't there now, and without it nothing is sent; `workshop up` starts what brings it, `workshop credential test NAME` says whether it can be read",
	"not-approved":    "your file of credentials has each push with this credential asked about (`use: {push: ask}`), and nobody said yes; `approvals_command` or `approvals_socket` in config.yaml says who is asked",
	"host-header":     "the request's URL and its Host header name different hosts; name the same one in both",
	"last-hop":        "the request says Max-Forwards: 0, so the guard may send it no further; leave that header out",
	"busy":            "too many large requests at the same time; try again",
	"other-name":      "inside the tunnel another name is asked for than the tunnel is for; ask for the same one",
	"own-address":     "an address of the machine or container that the guard runs in; nothing opens it",
	"upstream":        "the guard's own resolver or proxy; nothing opens it to workers",
	"gateway":         "the machine that the workshop runs on, or its router; a line with a `cidr:` opens it",
	"on-link":         "another container, or a machine of the guard's own network; a line with a `cidr:` opens it",
	"wildcard-budget": "too many new names under a wildcard (60, and one more each second), or one with a label of more than 40 characters or more than 120 in all: names can carry data to whoever owns the domain; a line with the very name has no limit",
	"overflow":        "too many different refusals at once: these are counted only",
	"lost":            "the kernel refused these faster than it could report them: they are counted only",
	"unsupported":     "only TCP and ordinary DNS questions are carried; no line opens another protocol. Use TCP where the program can",
	"unknown-host":    "the guard can't tell its own addresses at the moment, so it connects nowhere; `workshop up` repairs it",
}

// ToldReason returns the reason that a worker is told: addresses of the machine, its
// router, its neighbours and its resolvers aren't told apart from other private ones.
func ToldReason(reason string) string {
	switch reason {
	case "own-address", "upstream", "gateway", "on-link", Shared.String(), Benchmark.String():
		return Private.String()
	}
	return reason
}

// Why explains the reason of a [Decision] or of the guard's events in one
// sentence, without a period; "" for a reason that is not known. host is what was
// asked for, and line the one that decided; either may be empty.
func Why(reason, host, line string) string {
	switch reason {
	case ReasonDenied:
		if strings.HasPrefix(line, LiveLine) {
			return "denied by a live change; `workshop firewall show` lists live changes, `workshop firewall reload --reset` drops them"
		}
	case ReasonSpecial:
		if n, err := ParseName(host); err == nil {
			return whySpecial(n)
		}
	}
	return reasons[reason]
}
