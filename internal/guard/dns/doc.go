// Package dns answers the look-ups of a room: by policy before anything is
// sent, with queries of the guard's own making, and with addresses that may be
// dialled only (B23).
package dns
