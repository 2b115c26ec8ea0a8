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
	maxPacket = 8192             // bytes of a request or response
	maxFiles  = MaxListeners + 8 // descriptors of a response; the kernel allows 253 (SCM_MAX_FD)
)

// MaxListeners is how many ports of the policy a room of kind [AnyIP] opens: it
// needs a socket for each.
const MaxListeners = 128

// Kind is how a room leads connections to the guard.
type Kind string

// The kinds.
const (
	// NFTables redirects by netfilter: SO_ORIGINAL_DST is what a worker dialled.
	NFTables Kind = ""
	// AnyIP makes every address local: a connection's local address is what a
	// worker dialled, and each port has a listener.
	AnyIP Kind = "anyip"
)

func parseKind(s string) (Kind, error) {
	if k := Kind(s); k == NFTables || k == AnyIP {
		return k, nil
	}
	return "", errors.New("handover: unknown kind of room")
}

type verb string

// The requests.
const (
	verbSockets  verb = "sockets"
	verbDial     verb = "dial"
	verbListen   verb = "listen"
	verbRedirect verb = "redirect"
	verbCounters verb = "counters"
	verbKeep     verb = "keep"
	verbKept     verb = "kept"
	verbStore    verb = "store"
)

// files returns how many descriptors are sent with a request.
func (v verb) files() int {
	if v == verbKeep || v == verbStore {
		return 1
	}
	return 0
}

// request is one decoded request.
type request struct {
	verb  verb
	port  uint16               // dial, listen
	ports []firewall.PortRange // redirect, sorted and joined
}

// parseRequest decodes a packet. It accepts only the canonical output of encode.
func parseRequest(b []byte) (request, error) {
	if len(b) > maxPacket {
		return request{}, errors.New("the request is too long")
	}
	word, arg, hasArg := strings.Cut(string(b), " ")
	r := request{verb: verb(word)}
	switch r.verb {
	case verbSockets, verbCounters, verbKeep, verbKept, verbStore:
		if hasArg {
			return request{}, fmt.Errorf("%s takes no arguments", word)
		}
	case verbDial, verbListen:
		port, err := firewall.ParsePorts(arg)
		if err != nil || len(port) != 1 || port[0].First != port[0].Last {
			return request{}, fmt.Errorf("%s takes one port", word)
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
			return request{}, fmt.Errorf("more than %d port ranges", firewall.MaxRedirects)
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
	case r.verb == verbDial || r.verb == verbListen:
		return []byte(string(r.verb) + " " + strconv.Itoa(int(r.port)))
	case r.verb == verbRedirect && len(r.ports) > 0:
		return []byte(string(r.verb) + " " + firewall.FormatPorts(r.ports))
	}
	return []byte(r.verb)
}

// Counters are the packets that the room has refused since its creation, by family, as
// counted by the kernel: none is missing.
type Counters struct {
	Denied4, Denied6 uint64
	Kind             Kind
}

// Set sets the count of a family.
func (c *Counters) Set(f firewall.Family, n uint64) {
	if f == firewall.V6 {
		c.Denied6 = n
	} else {
		c.Denied4 = n
	}
}

// Denied returns the packets of both families.
func (c Counters) Denied() uint64 { return c.Denied4 + c.Denied6 }

func (c Counters) encode() string {
	return strings.TrimSuffix(fmt.Sprintf("ok %d %d %s", c.Denied4, c.Denied6, c.Kind), " ")
}

func parseCounters(rest string) (c Counters, err error) {
	a, b, _ := strings.Cut(rest, " ")
	b, kind, _ := strings.Cut(b, " ")
	x, err1 := strconv.ParseUint(a, 10, 64)
	y, err2 := strconv.ParseUint(b, 10, 64)
	if err1 != nil || err2 != nil {
		return c, errors.New("handover: the answer to counters is not two numbers")
	}
	c.Kind, err = parseKind(kind)
	c.Denied4, c.Denied6 = x, y
	return c, err
}

// Opened is the result of Redirect in a room of kind [AnyIP]. For a room that redirects
// it is the zero value.
type Opened struct {
	Ports []uint16 // ascending
	FDs   []int    // a listener for each, owned by the room
	Taken string   // who has the missing ports; "" if none is missing
}

func (o Opened) encode() string {
	ranges := make([]firewall.PortRange, len(o.Ports))
	for i, p := range o.Ports {
		ranges[i] = firewall.PortRange{First: p, Last: p}
	}
	out := strings.TrimSuffix("ok "+firewall.FormatPorts(firewall.NormalizePorts(ranges)), " ")
	if o.Taken != "" {
		out += "; " + o.Taken
	}
	return out
}

// parseOpened parses a response to redirect.
func parseOpened(rest string) (ports []uint16, taken string, err error) {
	list, taken, _ := strings.Cut(rest, "; ")
	if list == "" {
		return nil, taken, nil
	}
	ranges, err := firewall.ParsePorts(list)
	if err != nil {
		return nil, "", fmt.Errorf("handover: the answer to redirect: %w", err)
	}
	for _, r := range ranges {
		if len(ports)+int(r.Last-r.First) >= MaxListeners {
			return nil, "", errors.New("handover: the room has opened too many ports")
		}
		for p := int(r.First); p <= int(r.Last); p++ {
			ports = append(ports, uint16(p))
		}
	}
	return ports, taken, nil
}

// TakenError means that a room of kind [AnyIP] couldn't open ports that a worker's
// program uses: they lead nowhere outside.
type TakenError struct{ Text string }

func (e *TakenError) Error() string { return e.Text }

// parseAnswer returns what follows "ok", or the room's error.
func parseAnswer(b []byte) (string, error) {
	s := string(b)
	if s == "ok" {
		return "", nil
	}
	if rest, ok := strings.CutPrefix(s, "ok; "); ok {
		return "; " + rest, nil
	}
	if rest, ok := strings.CutPrefix(s, "ok "); ok {
		return rest, nil
	}
	if text, ok := strings.CutPrefix(s, "error "); ok {
		return "", errors.New("the room says: " + strings.ToValidUTF8(text, "?"))
	}
	return "", errors.New("handover: invalid response of the room")
}
