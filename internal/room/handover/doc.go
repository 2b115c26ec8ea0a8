// Package handover is the connection between a room and the guard: a unix
// socket over which the room hands sockets of its network namespace to the
// guard as file descriptors (SCM_RIGHTS, unix(7)).
//
// The room listens at <dir>/<room>.sock. It answers four requests and no
// others: sockets, dial, redirect, counters.
package handover
