// Package firewall is the network policy of a workshop as data: which names,
// ports and address ranges a room may reach, how that is decided, and the
// iptables ruleset of a room.
//
// It is pure: no network, no clock, no files but the embedded presets. The
// guard and the room import it, so it must stay small (no compose-go, no
// YAML); it never imports package workshop.
package firewall
