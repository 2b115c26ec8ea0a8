package workshop

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/firewall"
)

// assignPorts assigns the ports of the workshop to its only worker.
// With several workers it would be a guess whose they are.
func assignPorts(w *Workshop, entries []member, p *problems) {
	ports := w.Container.Ports
	if len(ports) == 0 {
		return
	}
	entries = slices.DeleteFunc(slices.Clone(entries), func(m member) bool { return m.file.as == importedFile })
	if len(entries) == 1 && len(w.Workers) > 0 && w.Workers[0].Name == entries[0].Name.V {
		own := w.Workers[0].Container.Ports
		if len(own) > 0 {
			p.add(diag.Diagnostic{Severity: diag.Error, Code: "ports-twice", Range: ports[0].At.Range,
				Summary: "ports are given both by the workshop and by its only worker", Hint: "move them to one place",
				Related: []diag.Related{{Message: "the worker's", Range: own[0].At.Range}}})
			return
		}
		w.Workers[0].Container.Ports = ports
		return
	}
	if len(entries) == 0 && len(w.Workers) > 0 {
		p.add(diag.Diagnostic{Severity: diag.Error, Code: "ports-ambiguous", Range: ports[0].At.Range,
			Summary: "ports of the workshop belong to one worker of its own, and all are imported", Hint: "remove them, or write the worker that listens"})
	}
	if len(entries) < 2 {
		return
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name.V)
	}
	p.add(diag.Diagnostic{Severity: diag.Error, Code: "ports-ambiguous", Range: ports[0].At.Range,
		Summary: fmt.Sprintf("ports of the workshop belong to one worker, and it has %d: %s", len(names), strings.Join(firstOf(names, 10), ", ")),
		Hint:    fmt.Sprintf("move them to the worker that listens: `- {name: %s, container: {ports: [%q]}}`", names[0], portText(ports[0]))})
}

// portText writes a port as workshop.yaml does.
func portText(p Port) string {
	text := fmt.Sprintf("%d:%d", p.Published.V, p.Target.V)
	if p.Host.V != "" && p.Host.V != "127.0.0.1" {
		host := p.Host.V
		if strings.Contains(host, ":") {
			host = "[" + host + "]"
		}
		text = host + ":" + text
	}
	return text
}

// checkRooms reports ports that can't be served: two in one room, two on one
// address of the host, any without a room.
func checkRooms(w *Workshop, p *problems) {
	type inRoom struct {
		room   string
		target uint16
	}
	type onHost struct {
		host      string
		published uint16
	}
	roomOf := map[string]string{}
	for _, r := range Rooms(w) {
		for _, name := range r.Workers {
			roomOf[name] = r.Name
		}
	}
	targets, published := map[inRoom]*taken{}, map[onHost]*taken{}
	for i := range w.Workers {
		wk := &w.Workers[i]
		for _, port := range wk.Container.Ports {
			if wk.Container.Network.Mode.V == firewall.None {
				p.add(diag.Diagnostic{Severity: diag.Error, Code: "port-without-network", Range: port.At.Range,
					Summary: fmt.Sprintf("%s publishes port %d but its network is none", wk.Name, port.Target.V),
					Hint:    "write `network: {mode: restricted, allow: []}`: a room that reaches nothing and can be reached"})
				continue
			}
			if by := take(targets, inRoom{roomOf[wk.Name], port.Target.V}, wk.Name, port); by != nil && by.worker != wk.Name {
				p.add(diag.Diagnostic{Severity: diag.Error, Code: "port-conflict", Range: port.At.Range,
					Summary: fmt.Sprintf("%s and %s share a room and can't both listen on port %d", by.worker, wk.Name, port.Target.V),
					Hint:    "choose another target, or give one of them `network: {room: own}`",
					Related: []diag.Related{{Message: by.worker + " has it here", Range: by.at}}})
			}
			if port.Auto() || w.Symbolic && cmp.Or(port.Published.Source.Template, port.Host.Source.Template) != "" {
				continue
			}
			if by := take(published, onHost{port.Host.V, port.Published.V}, wk.Name, port); by != nil && by.worker != wk.Name {
				p.add(diag.Diagnostic{Severity: diag.Error, Code: "port-conflict", Range: port.At.Range,
					Summary: fmt.Sprintf("port %d of the host is published by %s already", port.Published.V, by.worker),
					Hint:    fmt.Sprintf("choose another one, such as %q", fmt.Sprintf("%d:%d", port.Published.V+1, port.Target.V)),
					Related: []diag.Related{{Message: by.worker + " publishes it here", Range: by.at}}})
			}
		}
	}
}

// taken is who has a port.
type taken struct {
	worker string
	at     diag.Range
}

// take notes who has a port, and gives who had it before.
func take[K comparable](m map[K]*taken, k K, worker string, p Port) *taken {
	if by := m[k]; by != nil {
		return by
	}
	m[k] = &taken{worker, p.At.Range}
	return nil
}
