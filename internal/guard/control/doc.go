// Package control is the protocol between the host and a running guard: its
// messages, client and server. Each line is a JSON object, requests and responses in
// turn, any number of them over one connection.
//
// The guard listens on a unix socket in its own file system ([SocketPath]), which
// no worker and no room shares. The host connects by running `workshop-init connect`
// in the guard's container or, if it shares the file system, by dialling the socket.
package control

import "github.com/llmdo/workshop/firewall"

// SocketPath is the guard's control socket, in its own tmpfs, mode 0600.
const SocketPath = "/run/guard/control.sock"

// MaxLine bounds a request and a response: the largest policy, and 1 MiB for the
// rest.
const MaxLine = firewall.MaxPolicyBytes + 1<<20
