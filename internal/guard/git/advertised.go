package git

import (
	"bytes"
	"io"
	"slices"
	"strings"

	"github.com/llmdo/workshop/firewall/request"
)

// maxAdvertised bounds the part of an advertisement that is looked at, in bytes: its first
// lines in version 0 and 1, all of it in version 2.
const maxAdvertised = 64 << 10

// Service is what a client asks a server for.
type Service string

// The services (gitprotocol-http(5)).
const (
	UploadPack  Service = request.UploadPack  // reads
	ReceivePack Service = request.ReceivePack // pushes
)

// Filter returns the advertisement of a service without the capabilities that the guard
// doesn't carry: those of a push that add to its commands, and those by which a server sends
// a client elsewhere. What isn't an advertisement is an error. The rest, names of refs, is read
// from r as it comes.
func Filter(r io.Reader, s Service) (io.Reader, error) {
	first, err := readPacket(r)
	if err != nil {
		return nil, noEOF(err)
	}
	var out []byte
	if strings.TrimSuffix(string(first.payload()), "\n") == "# service="+string(s) {
		out = append(out, first.raw...)
		if first, err = readPacket(r); err == nil && first.kind == flush {
			out = append(out, first.raw...)
			first, err = readPacket(r)
		}
		if err != nil {
			return nil, noEOF(err)
		}
	}
	version := strings.TrimSuffix(string(first.payload()), "\n")
	switch {
	case version == "version 2" && s == UploadPack:
		out, err = versionTwo(append(out, first.raw...), r)
	case version == "version 1":
		out = append(out, first.raw...)
		if first, err = readPacket(r); err == nil {
			out, err = firstRef(out, first, s)
		}
	default:
		out, err = firstRef(out, first, s)
	}
	if err != nil {
		return nil, noEOF(err)
	}
	return io.MultiReader(bytes.NewReader(out), r), nil
}

// noEOF is an error of a stream that ends where it shouldn't.
func noEOF(err error) error {
	if err == io.EOF {
		return malformed("an advertisement that ends early")
	}
	return err
}

// firstRef appends the first line of refs, or the flush of a repository without refs.
func firstRef(out []byte, x packet, s Service) ([]byte, error) {
	if x.kind == flush {
		return append(out, x.raw...), nil
	}
	ref, caps, ok := bytes.Cut(x.payload(), []byte{0})
	if x.kind != data || !ok {
		return nil, malformed("a first line without capabilities")
	}
	kept := slices.DeleteFunc(strings.Fields(string(caps)), func(c string) bool { return !carried(c, s) })
	return appendPacket(out, slices.Concat(ref, []byte("\x00"+strings.Join(kept, " ")+"\n"))), nil
}

// fetched are capabilities of reading in versions 0 and 1 (gitprotocol-capabilities(5)).
var fetched = []string{
	"multi_ack", "multi_ack_detailed", "no-done", "thin-pack", "side-band", "side-band-64k", "ofs-delta", "agent=", "object-format=", "symref=", "shallow",
	"deepen-since", "deepen-not", "deepen-relative", "no-progress", "include-tag", "allow-tip-sha1-in-want", "allow-reachable-sha1-in-want", "filter", "session-id=",
}

func carried(capability string, s Service) bool {
	name, _, hasValue := strings.Cut(capability, "=")
	if hasValue {
		name += "="
	}
	if s == ReceivePack {
		return slices.Contains(pushed, name)
	}
	return slices.Contains(fetched, name)
}

// commands are those of version 2 (gitprotocol-v2(5)), with what each may say of itself.
// bundle-uri and packfile-uris name other addresses.
var commands = map[string][]string{
	"agent": nil, "session-id": nil, "object-format": nil, "object-info": nil, "server-option": nil,
	"ls-refs": {"unborn"},
	"fetch":   {"shallow", "wait-for-done", "filter", "ref-in-want", "sideband-all"},
}

func versionTwo(out []byte, r io.Reader) ([]byte, error) {
	for len(out) <= maxAdvertised {
		x, err := readPacket(r)
		if err != nil {
			return nil, err
		}
		if x.kind == flush {
			return append(out, x.raw...), nil
		}
		name, value, hasValue := strings.Cut(strings.TrimSuffix(string(x.payload()), "\n"), "=")
		features, known := commands[name]
		switch {
		case x.kind != data:
			return nil, malformed("a delimiter between capabilities")
		case !known:
			continue
		case features != nil && hasValue:
			kept := slices.DeleteFunc(strings.Fields(value), func(f string) bool { return !slices.Contains(features, f) })
			if len(kept) > 0 {
				name += "=" + strings.Join(kept, " ")
			}
			out = appendPacket(out, []byte(name+"\n"))
		default:
			out = append(out, x.raw...)
		}
	}
	return nil, malformed("capabilities of more than %d bytes", maxAdvertised)
}
