// Package git reads what git says over HTTP as far as the guard has to understand it: the
// commands of a push before a byte of its pack is sent, and what a server advertises. It
// decides nothing, and keeps no more than bounded heads in memory.
//
// Sources: gitprotocol-common(5) (pkt-line), gitprotocol-pack(5) (update requests),
// gitprotocol-http(5), gitprotocol-v2(5), gitprotocol-capabilities(5),
// git-check-ref-format(1).
package git
