// Package proxy decides about the TCP connections of a room and carries them: TLS
// and HTTP by name, other ports by pinned address, and an explicit HTTP proxy.
//
// Each handler gets an accepted connection, decides by the room's policy as it
// is at that moment, dials by egress, and splices. The connections themselves
// are closed by the caller when a handler returns.
//
// Whichever way a connection comes (redirected to 80, 443 or another port, by the
// explicit proxy in absolute-form or CONNECT), each question about it is asked by
// one function:
//
//	deny, port, name, range    route, by decide; what must be read for it: mustRead
//	names under a wildcard     route, by Admit
//	encrypted names (ECH)      route.byOuterName
//	never-list, upload budget  open, by egress.Dialer.Dial, on the address itself
//	whether it still may       way.still, by the same route
//	places                     accept of package guard
//
// A published port has places alone: it leads into the room.
package proxy
