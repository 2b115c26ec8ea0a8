package detect

import (
	"fmt"
	"path"
	"strings"
)

// agentDirs have definitions of workers that are found by name.
var agentDirs = []string{"workers", ".claude/agents"}

func agents(p *project, f *Found) {
	more := 0
	for _, dir := range agentDirs {
		for _, e := range p.entries(dir) {
			name, ok := strings.CutSuffix(e.Name(), ".md")
			switch {
			case !ok || !isName(name) || e.IsDir():
			case len(f.Agents) >= maxAgents:
				more++
			default:
				file := path.Join(dir, e.Name())
				f.Agents = append(f.Agents, Agent{Name: name, File: file})
				f.find(p, file, "a worker", "worker "+name)
			}
		}
	}
	if more > 0 {
		f.find(p, agentDirs[1], fmt.Sprintf("%d more workers", more), "")
	}
}

// isName reports whether a text can be a worker's name: lower-case letters, digits, _
// and -.
func isName(s string) bool {
	if s == "" || len(s) > 63 || s[0] == '-' || s[0] == '_' {
		return false
	}
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_-") == ""
}
