package git

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/llmdo/workshop/firewall/request"
)

// Limits of what precedes the pack of a push.
const (
	maxHead     = 64 << 10 // bytes
	maxCommands = 256
)

// Command is what a push does to one ref.
type Command struct {
	Ref      string
	Old, New string // names of objects; all zeros: there is none
}

// Creates reports whether the ref is new.
func (c Command) Creates() bool { return zeros(c.Old) }

// Deletes reports whether the ref goes.
func (c Command) Deletes() bool { return zeros(c.New) }

func zeros(id string) bool { return strings.Trim(id, "0") == "" }

// Push is the head of a push.
type Push struct {
	Commands     []Command // none: a probe, by which git sees whether it may push
	Capabilities []string
	// Shallow: it says where the client's history ends, so that a server may cut its own there.
	Shallow bool
	// Head are the bytes as they were sent, the flush included. What follows is the pack.
	Head []byte
}

// pushed are capabilities of a push that the guard understands: none of them changes what
// the commands mean, or adds to them. A name with "=" has a value.
var pushed = []string{"report-status", "report-status-v2", "side-band-64k", "quiet", "atomic", "ofs-delta", "delete-refs", "object-format=", "agent=", "session-id="}

// ErrUnsupported means that a push has something that the guard doesn't carry: a
// certificate, options or a capability that it doesn't know.
var ErrUnsupported = errors.New("not carried")

// ReadPush reads the commands of a push to their flush, and nothing behind it. An error says
// what was sent, and nothing of it may reach a server.
func ReadPush(r io.Reader) (p Push, err error) {
	width := 40
	for {
		x, err := readPacket(r)
		if err == io.EOF {
			return Push{}, malformed("the commands have no end")
		}
		if err != nil {
			return Push{}, err
		}
		if p.Head = append(p.Head, x.raw...); len(p.Head) > maxHead {
			return Push{}, malformed("commands of more than %d bytes", maxHead)
		}
		switch {
		case x.kind == flush:
			return p, nil
		case x.kind != data:
			return Push{}, malformed("a delimiter between commands")
		case len(p.Commands) == maxCommands:
			return Push{}, malformed("more than %d commands", maxCommands)
		}
		line := bytes.TrimSuffix(x.payload(), []byte("\n"))
		if id, shallow := bytes.CutPrefix(line, []byte("shallow ")); shallow && len(p.Commands) == 0 {
			if !request.IsObjectName(string(id)) {
				return Push{}, malformed("%q is not the name of an object", id[:min(len(id), 100)])
			}
			p.Shallow = true
			continue
		}
		line, caps, has := bytes.Cut(line, []byte{0})
		if has && len(p.Commands) > 0 {
			return Push{}, malformed("capabilities behind a second command")
		}
		if has {
			if p.Capabilities, err = capabilities(string(caps)); err != nil {
				return Push{}, err
			}
			if slices.Contains(p.Capabilities, "object-format=sha256") {
				width = 64
			}
		}
		c, err := command(string(line), width)
		if err != nil {
			return Push{}, err
		}
		if slices.ContainsFunc(p.Commands, func(o Command) bool { return strings.EqualFold(o.Ref, c.Ref) }) {
			return Push{}, malformed("the ref %q is named twice", c.Ref)
		}
		p.Commands = append(p.Commands, c)
	}
}

func capabilities(text string) (out []string, err error) {
	for c := range strings.FieldsSeq(text) {
		name, _, hasValue := strings.Cut(c, "=")
		if hasValue {
			name += "="
		}
		if !slices.Contains(pushed, name) {
			return nil, fmt.Errorf("the capability %q is %w", c, ErrUnsupported)
		}
		out = append(out, c)
	}
	return out, nil
}

// command reads "OLD NEW REF".
func command(line string, width int) (c Command, err error) {
	for _, first := range []string{"push-cert", "push-option"} {
		if strings.HasPrefix(line, first) {
			return c, fmt.Errorf("%s is %w", first, ErrUnsupported)
		}
	}
	if len(line) < 2*width+3 || line[width] != ' ' || line[2*width+1] != ' ' {
		return c, malformed("the command %q", line[:min(len(line), 100)])
	}
	c = Command{Old: line[:width], New: line[width+1 : 2*width+1], Ref: line[2*width+2:]}
	for _, id := range []string{c.Old, c.New} {
		if !request.IsObjectName(id) {
			return c, malformed("%q is not the name of an object", id)
		}
	}
	if zeros(c.Old) && zeros(c.New) {
		return c, malformed("a command that does nothing")
	}
	if err := request.CheckRef(c.Ref); err != nil {
		return c, malformed("%v", err)
	}
	return c, nil
}
