// Package testnet is the test internet: a network namespace joined to another
// one (usually the host's) by a veth, with 198.51.100.0/24 and 2001:db8:1::/48
// on its loopback and servers that answer at every address of them.
//
// # What is there
//
//   - DNS (udp, tcp) at [DNS] and a second, independent one at [DNS2], with
//     programmable answers ([Internet.Answer]) and a record of every query
//   - HTTP on 80 and TLS on 443 at every address; the body is a JSON [Echo]
//     that says which address answered, for which SNI and Host
//   - what git, npm and pip fetch: [GitHost], [NPMHost], [PyPIHost], [FilesHost]
//   - ssh banner on 22, a postgres-like server on 5432, TCP echo on [EchoPorts]
//   - UDP echo on 7, 443 and 5000
//   - a meter that counts every IP packet that arrives, so that "that server
//     saw no packet" is a fact about packets and not about a server's log
//
// Nothing is written to disk or to /run. The namespace belongs to the process:
// when that ends, however it ends, veth, routes and namespace are gone.
//
//	in := testnet.New(t, testnet.Options{})      // joined to the host
//	in.Answer("api.example.org", testnet.A("198.51.100.10"))
package testnet
