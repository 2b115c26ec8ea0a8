package app

import (
	"strconv"
	"strings"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/lib/boundedfile"
	"github.com/llmdo/workshop/internal/lib/clip"
	"github.com/llmdo/workshop/workshop"
)

// modeLine is where a worker's mode is written.
func (v *PolicyView) modeLine(worker string) *ExplainedLine {
	w := v.c.Worker(worker)
	if w == nil {
		return nil
	}
	n := &w.Container.Network
	at := n.Mode.Source.Range
	if at.Start.Line == 0 {
		at = n.Source.Range
	}
	if at.Start.Line == 0 {
		return &ExplainedLine{Text: "network: " + n.Mode.V.String() + " (the default)"}
	}
	return &ExplainedLine{PolicyRule: PolicyRule{Line: at.Filename + ":" + strconv.Itoa(at.Start.Line)}, Text: v.textAt(at)}
}

// near are the allow lines that have the host with other ports.
func (v *PolicyView) near(r *firewall.RoomPolicy, x endpoint) []ExplainedLine {
	var out []ExplainedLine
	for _, rule := range r.Allow {
		if x.matches(rule) {
			out = append(out, *v.line(rule, false, x))
		}
	}
	return out
}

// textAt is a line of a file of the workshop, as it is written.
func (v *PolicyView) textAt(at diag.Range) string {
	var data []byte
	if isAddress(at.Filename) {
		data = v.c.Source.from.text(at.Filename)
	} else if read, err := boundedfile.ReadFS(ProjectDir(v.c.Dir), at.Filename, workshop.MaxFileSize); err == nil {
		data = read
	}
	lines := strings.Split(string(data), "\n")
	if n := at.Start.Line; n > 0 && n <= len(lines) {
		return clip.Runes(Printable(strings.Join(strings.Fields(lines[n-1]), " ")), 200)
	}
	return ""
}
