// Package proxy decides about the TCP connections of a room and carries them: TLS
// and HTTP by name, other ports by pinned address, and an explicit HTTP proxy.
//
// Each handler gets an accepted connection, decides by the room's current policy,
// dials by egress, and splices. The caller closes the connection when the handler
// returns.
//
// However a connection arrives (redirected from 80, 443 or another port, or through
// the explicit proxy in absolute-form or by CONNECT), one function answers each
// question about it:
//
//	deny, port, name, range    route, by decide; what must be read for it: mustRead
//	names under a wildcard     route, by Admit
//	encrypted names (ECH)      route.byOuterName
//	never-list, upload budget  open, by egress.Dialer.Dial, on the address itself
//	still allowed?             way.still, by the same route
//	places                     accept of package guard
//
// A published port is subject to places alone: it leads into the room.
package proxy
