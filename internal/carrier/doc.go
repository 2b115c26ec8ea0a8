// Package carrier is what a worker with a kernel of its own and its room say to each other.
// Such a kernel never gets a descriptor of this machine's: it could use it. So a relay
// inside (package relay) accepts what the worker dials and opens a stream with the address,
// and an outlet outside (package outlet) dials that address in the worker's room, whose
// rules lead it to the guard like any connection of a worker's. The address needn't be
// believed: it says nothing that a process in that room couldn't say by connect(2).
//
// Streams and messages are those of package mux. Their first byte is their kind, and each
// kind goes one way:
//
//	tcp       relay → outlet  stream; 4 or 16 bytes of address, 2 of port, source: a connection
//	dns       relay → outlet  stream; source; a query as its data, then a response as the other's
//	refused   relay → outlet  message; like tcp, and 1 byte of protocol: a packet that the
//	                          kernel inside refused
//	ready     relay → outlet  message; the kernel inside has booted and its PID 1 serves
//	output    relay → outlet  message; 1 byte of stream and a line of the worker's PID 1
//	inbound   outlet → relay  stream; 2 bytes of port: a connection to the worker
//	session   outlet → relay  stream; a session of the worker's tools
//	ports     outlet → relay  message; 2 bytes per port, rising: where to accept
//
// A source is 4 bytes of 127.0.0.0/8 from where a program inside dials, or none: 127.0.0.1, and
// with an address of IPv6. The guard knows by it what the host tries from a worker.
//
// A head that isn't exactly so ends the connection.
package carrier
