// Package dns answers the look-ups of a room: by policy before anything is sent,
// with the guard's own queries, and only with addresses that may be dialled (B23).
package dns
