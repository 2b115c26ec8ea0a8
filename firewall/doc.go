// Package firewall has the network policy of a workshop as data: the names, ports and
// address ranges that a room may reach, the decisions, and the iptables ruleset of a
// room.
//
// A [Policy] is what one guard enforces, a [RoomPolicy] what one room may
// reach. [RoomPolicy.Compile] makes a [Matcher], which decides: by
// [Matcher.Name] before a name is looked up, by [Matcher.Dial] before one of its
// addresses is dialed, by [Matcher.Addr] for a destination without a name.
// [NewRuleset] returns the rules for netfilter.
//
// # Guarantees
//
// A deny line wins over every allow line. Nothing is open that no line opens,
// and no line opens loopback, link-local and metadata addresses. A decision
// takes a time that doesn't depend on the number of rules, and names the line
// that decided. A policy that can't be read is an error, never an empty policy.
//
// The package is pure: no network, no clock, no files but the embedded presets
// and suffixes. The guard and the room link it, so it stays small (no
// compose-go, no YAML), and never imports package workshop.
//
// This API is v0: it may change until v1.
package firewall
