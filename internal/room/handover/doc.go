// Package handover is the connection between a room and the guard: a unix
// socket of type SOCK_SEQPACKET over which the room hands sockets of its
// network namespace to the guard as file descriptors (SCM_RIGHTS, unix(7)).
//
// The room listens at <dir>/<room>.sock; the directory keeps others away, and in
// addition the room checks the peer's uid. It serves one guard at a time and accepts
// only these requests, each one packet:
//
//	sockets                 ok, with the seven sockets of [Sockets] in their order
//	dial PORT               ok, with a new unconnected TCP socket
//	listen PORT             ok, with the listener of an endpoint, the same one each time
//	redirect PORT[,PORT…]   ok, when the policy's port list has been replaced
//	redirect                ok, when the list is empty
//	counters                ok DENIED4 DENIED6
//	keep                    ok, when the room keeps the descriptor sent with it
//	kept                    ok, with that descriptor, or "ok none"
//	store                   ok, when the content of the descriptor sent with it is in
//	                        <dir>/denies
//
// A response that doesn't begin with "ok" is "error TEXT". The room keeps duplicates of
// all sockets, so the next guard gets the same ones, with the connections that have
// waited in between.
//
// The kept file is one of [NewKept]: memory of the guard that outlives it, as in
// systemd's file descriptor store. The room doesn't read it. The stored file outlives the
// room too: the directory is a volume, which the guard can only read.
//
// The connection also shows each side the end of the other: on EOF the guard must close
// every socket of the room at once, or it would keep serving through its duplicates.
package handover
