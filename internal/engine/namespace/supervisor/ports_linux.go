package supervisor

import (
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/api"
)

// inbound is the listening socket of a published port, for a guard.
type inbound struct {
	target uint16
	socket *os.File
}

// listen opens the ports of a guard, all or none. They stay open across its
// restarts, so that connections wait and are not refused.
func (sv *service) listen() *api.Error {
	if sv.ports != nil {
		return nil
	}
	for _, p := range sv.c.Ports {
		socket, err := listen(p)
		if err != nil {
			sv.unlisten()
			return err
		}
		sv.ports = append(sv.ports, inbound{target: p.Target, socket: socket})
	}
	return nil
}

func (sv *service) unlisten() {
	for _, p := range sv.ports {
		p.socket.Close()
	}
	sv.ports = nil
}

func listen(p spec.Port) (*os.File, *api.Error) {
	a, err := address(p)
	if err != nil {
		return nil, failure(api.CodeInvalid, "%v", err)
	}
	network := "tcp6" // without IPv4
	if a.Addr().Unmap().Is4() {
		network = "tcp4"
	}
	l, err := net.ListenTCP(network, net.TCPAddrFromAddrPort(a))
	if err == nil {
		defer l.Close()
		var f *os.File
		if f, err = l.File(); err == nil {
			return f, nil
		}
	}
	e := failure(api.CodeFailed, "%s can't be listened on: %v", a, err)
	switch {
	case errors.Is(err, unix.EADDRINUSE):
		e = failure(api.CodePortTaken, "%s is in use by another program of this machine", a)
	case errors.Is(err, unix.EACCES):
		e.Message = fmt.Sprintf("%s can't be listened on: only root may use ports below net.ipv4.ip_unprivileged_port_start", a)
	}
	e.Address, e.Worker = p.Address, p.Worker
	return nil, e
}
