package git

import (
	"slices"
	"strings"
)

// Report is the answer to a push of which nothing was sent on, as a server's own refusal: git
// shows the reason of each ref, and text before them. It is nil where the client didn't ask
// for a report: it would take any answer for a success.
func Report(p Push, text string, reason func(Command) string) []byte {
	if !slices.Contains(p.Capabilities, "report-status") && !slices.Contains(p.Capabilities, "report-status-v2") {
		return nil
	}
	out := appendPacket(nil, []byte("unpack ok\n"))
	for _, c := range p.Commands {
		out = appendPacket(out, []byte("ng "+c.Ref+" "+reason(c)+"\n"))
	}
	out = append(out, "0000"...)
	if !slices.Contains(p.Capabilities, "side-band-64k") {
		return out
	}
	banded := appendPacket(nil, []byte("\x02"+text))
	for part := range slices.Chunk(out, maxLine-5) {
		banded = appendPacket(banded, append([]byte{1}, part...))
	}
	return append(banded, "0000"...)
}

// MayContinue returns an error if what follows the commands of a push can't be the pack that
// they need: a server could take it for more of them. begin are its first bytes, four if there
// are as many.
func (p Push) MayContinue(begin []byte) error {
	deletes := !slices.ContainsFunc(p.Commands, func(c Command) bool { return !c.Deletes() })
	switch {
	case len(p.Commands) == 0 && len(begin) == 0, deletes && len(begin) == 0, len(p.Commands) > 0 && string(begin) == "PACK":
		return nil
	}
	return malformed("%q after the commands", strings.ToValidUTF8(string(begin), "?"))
}
