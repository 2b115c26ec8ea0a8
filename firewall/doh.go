package firewall

// doh are names of public resolvers that answer over HTTPS or TLS. A program
// that reaches one asks for names that the guard never sees, so no wildcard and
// no learning opens them; a line with the very name does.
var doh = map[string]bool{
	"dns.google":                 true,
	"cloudflare-dns.com":         true,
	"mozilla.cloudflare-dns.com": true,
}

// IsDoH tells whether a name, or one above it, is that of a public resolver
// over HTTPS.
func IsDoH(n Name) bool { return doh[n.s] }
