// Package room turns its network namespace into a room: a namespace with loopback
// only, in which connections end at sockets that are handed to the guard (see package
// handover), and everything else is refused at once. The guard sends it the policy's
// ports other than 53, 80 and 443 (the request redirect); until then they are refused.
//
// It needs CAP_NET_ADMIN and CAP_NET_BIND_SERVICE and no userland tools, as it uses
// netlink itself. The rules are in the older encodings of the xtables extensions,
// which every iptables since 1.8.7 can list.
//
// Every failure is closed: unless its sockets are handed over, a room leads nowhere.
package room
