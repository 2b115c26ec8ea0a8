// Package sshagent stands between a worker and the user's ssh-agent. A worker sees the keys
// of its lines alone, and has them sign two things: that the user logs in at a host of the
// line, and messages for a namespace of the line. Everything else is refused: what isn't
// understood can't be judged.
//
// [Conn] decides; it reads hostile input, and has neither clock nor files. [Serve] carries
// out. The protocol is draft-miller-ssh-agent with OpenSSH's PROTOCOL.agent, what is signed
// that of RFC 4252 and PROTOCOL.sshsig.
package sshagent
