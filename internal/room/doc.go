// Package room makes a room of the network namespace that it runs in: a
// namespace with loopback only, in which every connection ends at sockets that
// are handed to the guard (see package handover) and everything else is
// refused at once. Which ports the policy has beside 53, 80 and 443 the guard
// tells it (the request redirect); until then they are refused.
//
// It needs CAP_NET_ADMIN and CAP_NET_BIND_SERVICE and nothing of userland: it
// speaks netlink itself. The rules are written in the older encodings of the
// xtables extensions, which every iptables since 1.8.7 reads back.
//
// Whatever fails, fails closed: without the sockets handed over a room leads
// nowhere.
package room
