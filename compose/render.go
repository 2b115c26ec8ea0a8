package compose

import (
	"errors"

	"github.com/llmdo/workshop/firewall"
)

// Names of the generated files.
const (
	ComposeFile = "compose.yaml"
	runDir      = "run" // what the machine adds; never committed
	FactsFile   = runDir + "/compose.facts.yaml"
	FactsEnv    = runDir + "/facts.env"
	policyFile  = "guard/policy.json"
)

// Render writes the files that depend on the workshop alone and may be
// committed. Of a project with facts it renders what it was before them.
func Render(c *Compiled) ([]File, error) {
	if c.base != nil {
		c = c.base
	}
	if c.workshop == nil {
		return nil, errors.New("render: not a compiled workshop")
	}
	files := []File{
		{Path: ".gitignore", Data: []byte("/" + runDir + "/\n"), Mode: 0o644},
		{Path: ComposeFile, Data: renderProject(c), Mode: 0o644},
	}
	if c.Policy != nil {
		files = append(files, File{Path: policyFile, Data: firewall.EncodePolicy(c.Policy), Mode: 0o644})
	}
	for _, room := range sortedKeys(c.Rulesets) {
		rs := c.Rulesets[room]
		files = append(files,
			File{Path: room + "/rules.v4", Data: rs.Text(firewall.V4), Mode: 0o644},
			File{Path: room + "/rules.v6", Data: rs.Text(firewall.V6), Mode: 0o644})
	}
	return append(files, File{Path: seccompFile, Data: c.Seccomp, Mode: 0o644}), nil
}
