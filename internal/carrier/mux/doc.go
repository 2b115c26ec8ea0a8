// Package mux carries streams and messages over one byte stream whose other end is hostile:
// in a sandbox or a virtual machine runs a kernel that its worker may own.
//
// A frame is kind (1 byte), stream (4 bytes, big-endian), length of the payload (2 bytes,
// big-endian) and the payload:
//
//	open     begins a stream; payload: its head, 1 to [MaxHead] bytes
//	data     1 to [MaxData] bytes, as far as the peer gave credit
//	fin      no more data from the sender (half-close)
//	reset    the stream is gone, in both directions
//	credit   4 bytes: how many more bytes of data the peer may send
//	message  stream 0; 1 to [MaxMessage] bytes that belong to no stream
//
// Each stream begins with a credit of [Window] bytes in each direction, which is also the
// most that a receiver keeps of it. Streams of one side have odd numbers, those of the other
// even ones; numbers only rise. A frame of a stream that is gone is ignored, as it may have
// been on its way. Anything else that doesn't follow these rules ends the whole connection.
//
// It reads hostile input.
package mux
