// Package presets has named lists of hosts that belong together: what `npm
// install` or `go mod download` needs. The lists are data files with a version
// and with the purpose of every name; a workshop shows the expanded lines.
//
// A preset names as few hosts as the tools need for reading, without
// wildcards. Hosts where anyone can store data are left out, and its note says
// so.
//
// This API is v0: it may change until v1.
package presets

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/llmdo/workshop/firewall"
)

//go:embed data/*.json
var files embed.FS

// Preset is a named list of hosts.
type Preset struct {
	Name string `json:"name"`
	// Version counts the changes of the list, from 1.
	Version     int    `json:"version"`
	Description string `json:"description"`
	// Note says what to know before using it; may be empty.
	Note string `json:"note,omitempty"`
	// Source is the address of the public page that the facts are from.
	Source string `json:"source"`
	Rules  []Rule `json:"rules"`
	// Models: its hosts run models, and a call there costs its caller.
	Models bool `json:"models,omitempty"`
	// Environment is what leads the preset's tools to an endpoint of its name: variables of
	// a worker, in whose values ${URL} is the endpoint's address. Nil: there is nothing
	// that all of them read.
	Environment map[string]string `json:"environment,omitempty"`
	// Tokens are variables without which the preset's tools don't start. Where the guard adds
	// a credential, a worker has [firewall.DummyToken] in them.
	Tokens []string `json:"tokens,omitempty"`
}

// Endpoint returns the variables of a worker with an endpoint at url, to whose requests the
// guard adds a credential or not.
func (p Preset) Endpoint(url string, credential bool) map[string]string {
	out := make(map[string]string, len(p.Environment)+len(p.Tokens))
	for name, value := range p.Environment {
		out[name] = strings.ReplaceAll(value, "${URL}", url)
	}
	if credential {
		for _, name := range p.Tokens {
			out[name] = firewall.DummyToken
		}
	}
	return out
}

// Rule is one host of a preset.
type Rule struct {
	Host    firewall.HostPattern `json:"host"`
	Ports   []firewall.PortRange `json:"ports"`
	Purpose string               `json:"purpose"`
}

// Names lists the presets, sorted.
func Names() []string {
	entries, err := files.ReadDir("data")
	if err != nil {
		panic(err) // the files are part of the program
	}
	out := make([]string, len(entries))
	for i, e := range entries {
		out[i] = strings.TrimSuffix(e.Name(), ".json")
	}
	return out
}

// Has reports whether there is a preset of a name.
func Has(name string) bool {
	_, err := fs.Stat(files, "data/"+name+".json")
	return err == nil
}

// Get returns the preset of a name. The caller may modify the result.
func Get(name string) (Preset, bool) {
	data, err := files.ReadFile("data/" + name + ".json")
	if err != nil {
		return Preset{}, false
	}
	p, err := parse(name, data)
	if err != nil {
		panic(fmt.Sprintf("preset %s: %v", name, err)) // a test reads every file
	}
	return p, true
}

// OfModels reports whether a preset of models has the host, or is the one of that name.
func OfModels(preset, host string) bool {
	for _, name := range Names() {
		p, _ := Get(name)
		if p.Models && (name == preset || slices.ContainsFunc(p.Rules, func(r Rule) bool { return r.Host.String() == host })) {
			return true
		}
	}
	return false
}

// parse reads a data file.
func parse(name string, data []byte) (Preset, error) {
	var raw struct {
		Version     int
		Description string
		Note        string
		Source      string
		Rules       []struct{ Host, Ports, Purpose string }
		Environment map[string]string
		Tokens      []string
		Models      bool
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&raw); err != nil {
		return Preset{}, err
	}
	p := Preset{Name: name, Version: raw.Version, Description: raw.Description, Note: raw.Note, Source: raw.Source, Environment: raw.Environment, Tokens: raw.Tokens, Models: raw.Models}
	for _, r := range raw.Rules {
		host, err := firewall.ParseHostPattern(r.Host)
		if err != nil {
			return Preset{}, err
		}
		ports, err := firewall.ParsePorts(r.Ports)
		if err != nil {
			return Preset{}, fmt.Errorf("%s: %w", r.Host, err)
		}
		p.Rules = append(p.Rules, Rule{Host: host, Ports: ports, Purpose: r.Purpose})
	}
	return p, nil
}
