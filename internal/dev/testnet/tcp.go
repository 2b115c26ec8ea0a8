package testnet

import (
	"encoding/binary"
	"io"
	"net"
	"strconv"
)

// startTCP starts the servers that aren't web servers.
func (in *Internet) startTCP() error {
	for _, p := range EchoPorts {
		if err := in.serveTCP(p, echo); err != nil {
			return err
		}
	}
	if err := in.serveTCP(22, ssh); err != nil {
		return err
	}
	return in.serveTCP(5432, postgres)
}

func (in *Internet) serveTCP(port uint16, serve func(net.Conn)) error {
	l, err := in.listen(in.any() + ":" + strconv.Itoa(int(port)))
	if err != nil {
		return err
	}
	go Serve(l, serve)
	return nil
}

func echo(c net.Conn) { _, _ = io.Copy(c, c) }

// SSHBanner is what port 22 says first (RFC 4253 §4.2).
const SSHBanner = "SSH-2.0-testnet"

func ssh(c net.Conn) {
	_, _ = io.WriteString(c, SSHBanner+"\r\n")
	_, _ = io.Copy(c, c)
}

// postgres answers as a PostgreSQL server does at the start: 'N' to a request
// for TLS, AuthenticationOk to a startup message; then it echoes.
func postgres(c net.Conn) {
	const sslRequest = 80877103
	for {
		var head [8]byte
		if _, err := io.ReadFull(c, head[:]); err != nil {
			return
		}
		size, code := binary.BigEndian.Uint32(head[:4]), binary.BigEndian.Uint32(head[4:])
		if code == sslRequest {
			_, _ = c.Write([]byte{'N'})
			continue
		}
		if size < 8 || size > 10_000 {
			return
		}
		if _, err := io.CopyN(io.Discard, c, int64(size)-8); err != nil {
			return
		}
		_, _ = c.Write([]byte{'R', 0, 0, 0, 8, 0, 0, 0, 0})
		echo(c)
		return
	}
}
