// Package handover is the connection between a room and the guard: a unix
// socket of type SOCK_SEQPACKET over which the room hands sockets of its
// network namespace to the guard as file descriptors (SCM_RIGHTS, unix(7)).
//
// The room listens at <dir>/<room>.sock; the directory is what keeps others
// away, and the room looks at the peer's uid besides. It serves one guard at a
// time and answers these requests and no others, each one packet:
//
//	sockets                 ok, with the seven sockets of [Sockets] in their order
//	dial PORT               ok, with a fresh unconnected TCP socket
//	redirect PORT[,PORT…]   ok, when the policy's port list has been replaced
//	redirect                ok, when the list is empty
//	counters                ok DENIED4 DENIED6
//	keep                    ok, when the room keeps the descriptor that came along
//	kept                    ok, with that descriptor, or "ok none"
//
// An answer that doesn't begin with "ok" is "error TEXT". The room keeps copies
// of all sockets, so a guard that comes after another one gets the same again,
// with the connections that waited meanwhile.
//
// What a room keeps is a file of [NewKept]: memory of the guard that outlives
// the guard, as systemd's descriptor store has it. The room doesn't read it.
//
// The connection is also how each side sees the other's end: on EOF the guard
// must close every socket of the room at once, or it would go on serving
// through its copies.
package handover
