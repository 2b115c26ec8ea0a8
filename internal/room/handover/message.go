package handover

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/llmdo/workshop/firewall"
)

// Limits of the protocol.
const (
	maxPacket = 8192 // bytes of a request or answer
	maxFiles  = 16   // descriptors of an answer
)

type verb string

// The requests.
const (
	verbSockets  verb = "sockets"
	verbDial     verb = "dial"
	verbRedirect verb = "redirect"
	verbCounters verb = "counters"
)

// request is one decoded request.
type request struct {
	verb  verb
	port  uint16               // dial
	ports []firewall.PortRange // redirect, sorted and joined
}

// parseRequest decodes a packet. Nothing but what encode writes is accepted.
func parseRequest(b []byte) (request, error) {
	if len(b) > maxPacket {
		return request{}, errors.New("the request is too long")
	}
	word, arg, hasArg := strings.Cut(string(b), " ")
	r := request{verb: verb(word)}
	switch r.verb {
	case verbSockets, verbCounters:
		if hasArg {
			return request{}, fmt.Errorf("%s takes nothing", word)
		}
	case verbDial:
		port, err := firewall.ParsePorts(arg)
		if err != nil || len(port) != 1 || port[0].First != port[0].Last {
			return request{}, errors.New("dial needs one port")
		}
		r.port = port[0].First
	case verbRedirect:
		if hasArg {
			var err error
			if r.ports, err = firewall.ParsePorts(arg); err != nil {
				return request{}, err
			}
		}
		if len(r.ports) > firewall.MaxRedirects {
			return request{}, fmt.Errorf("more than %d ranges of ports", firewall.MaxRedirects)
		}
	default:
		return request{}, errors.New("unknown request")
	}
	if string(r.encode()) != string(b) {
		return request{}, errors.New("the request is not in canonical form")
	}
	return r, nil
}

func (r request) encode() []byte {
	switch {
	case r.verb == verbDial:
		return []byte(string(r.verb) + " " + strconv.Itoa(int(r.port)))
	case r.verb == verbRedirect && len(r.ports) > 0:
		return []byte(string(r.verb) + " " + firewall.FormatPorts(r.ports))
	}
	return []byte(r.verb)
}

// Counters are packets that the room's rules refused since it was made, by
// family, as the kernel counts them: nothing that was refused is missing.
type Counters struct{ Denied4, Denied6 uint64 }

// Denied returns the packets of both families.
func (c Counters) Denied() uint64 { return c.Denied4 + c.Denied6 }

func (c Counters) encode() string {
	return fmt.Sprintf("ok %d %d", c.Denied4, c.Denied6)
}

func parseCounters(rest string) (Counters, error) {
	a, b, _ := strings.Cut(rest, " ")
	x, err1 := strconv.ParseUint(a, 10, 64)
	y, err2 := strconv.ParseUint(b, 10, 64)
	if err1 != nil || err2 != nil {
		return Counters{}, errors.New("handover: the answer to counters is not two numbers")
	}
	return Counters{x, y}, nil
}

// parseAnswer returns what follows "ok", or the error that the room tells.
func parseAnswer(b []byte) (string, error) {
	s := string(b)
	if s == "ok" {
		return "", nil
	}
	if rest, ok := strings.CutPrefix(s, "ok "); ok {
		return rest, nil
	}
	if text, ok := strings.CutPrefix(s, "error "); ok {
		return "", errors.New("the room says: " + strings.ToValidUTF8(text, "?"))
	}
	return "", errors.New("handover: the room's answer is not understood")
}
