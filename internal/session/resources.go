package session

import (
	"encoding/json"
	"strings"
)

// Resource is one readable description.
type Resource struct {
	URI, Name, Description, MIMEType string
	Text                             string
}

// Resources describe the Host's workers, open delegates too: what the workshop
// grants (workshop://WORKER/grants and …/grants.json), and what the worker is
// to do (workshop://WORKER/definition).
func (h *Host) Resources() []Resource {
	h.mu.Lock()
	sessions := h.sessions()
	h.mu.Unlock()
	var out []Resource
	told := map[string]bool{}
	for _, s := range sessions {
		name := s.worker.Name
		if told[name] {
			continue
		}
		told[name] = true
		g := s.granted()
		data, err := json.MarshalIndent(g, "", "  ")
		if err != nil { // texts and numbers
			panic(err)
		}
		uri := "workshop://" + name + "/"
		out = append(out,
			Resource{URI: uri + "grants", Name: name + ": grants", Description: "What the worker " + name + " may do and reach: tools, files, network, limits", MIMEType: "text/plain", Text: g.text()},
			Resource{URI: uri + "grants.json", Name: name + ": grants as JSON", Description: "The same for programs", MIMEType: "application/json", Text: string(data)},
			Resource{URI: uri + "definition", Name: name + ": definition", Description: "What the worker " + name + " is to do, as its file says", MIMEType: "text/markdown", Text: s.definition()})
	}
	return out
}

func (s *workerSession) definition() string {
	d := &s.worker.Definition
	l := &lines{}
	l.add("# " + s.worker.Name)
	if text := strings.TrimSpace(d.Description); text != "" {
		l.add("\n" + text)
	}
	if text := strings.TrimSpace(d.Instructions); text != "" {
		l.add("\n" + text)
	}
	return l.String()
}
