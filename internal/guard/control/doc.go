// Package control is how the host speaks with a running guard: what is said,
// and the host's side of it. One JSON object per line, a request and then its
// answer, as many as the caller likes over one connection.
//
// The guard listens on a unix socket in a file system of its own
// ([SocketPath]), which no worker and no room has; the host reaches it by a
// command in the guard's container, `workshop-init connect`, or, where guard and
// host share a file system, by dialling it.
package control

import "github.com/llmdo/workshop/firewall"

// SocketPath is the guard's control socket, in its own tmpfs, mode 0600.
const SocketPath = "/run/guard/control.sock"

// MaxLine bounds a request and an answer: the largest policy and room for the
// rest.
const MaxLine = firewall.MaxPolicyBytes + 1<<20
