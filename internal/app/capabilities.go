package app

import (
	"context"
	"slices"
	"strings"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/facts"
	"github.com/llmdo/workshop/internal/promise"
)

// Capability is one thing that an engine can or can't enforce on this machine.
type Capability struct {
	Name    string `json:"name"`
	Promise string `json:"promise"` // of the boundary, see docs/security.md
	Held    bool   `json:"held"`
	// NotChecked: whether it holds isn't looked at here, so that it isn't said to be held.
	NotChecked bool   `json:"not_checked,omitempty"`
	Meaning    string `json:"meaning"`
	Do         string `json:"do,omitempty"`
	rooms      bool   // it matters to workers with a room alone
	// accepted: the user's settings go on without it.
	accepted bool
}

// Promise is one promise as an engine keeps it on this machine.
type Promise struct {
	Promise string   `json:"promise"`
	Title   string   `json:"title"`
	Held    bool     `json:"held"`
	How     string   `json:"how"` // or why not
	Do      []string `json:"do,omitempty"`
}

// EngineReport is what an engine is, and keeps on this machine.
type EngineReport struct {
	Engine       string       `json:"engine"`
	Why          string       `json:"why,omitempty"` // it was chosen
	Endpoint     string       `json:"endpoint"`
	Version      string       `json:"version"`
	APIVersion   string       `json:"api_version"`
	Platform     string       `json:"platform"`
	Runtimes     []string     `json:"runtimes"`
	Promises     []Promise    `json:"promises"`
	Capabilities []Capability `json:"capabilities"`
}

// EngineReport asks the engine that the caller names, or else the one that `up`
// would choose here. It starts nothing, so process mode is never refused.
func (env *Env) EngineReport(ctx context.Context) (EngineReport, error) {
	var t ProjectRef
	if _, err := env.FindFile(); err == nil {
		if t, err = env.Find(ctx); err != nil { // for the file's isolation
			return EngineReport{}, err
		}
	}
	asking := *env
	asking.Settings.ForceProcess = true
	e, err := asking.Connect(ctx, t, nil)
	if err != nil {
		return EngineReport{}, err
	}
	defer e.Close()
	i, err := e.Info(ctx)
	if err != nil {
		return EngineReport{}, EngineError(err)
	}
	return EngineReport{
		i.Kind, e.Chosen.Why, i.Endpoint, i.Version, i.APIVersion, i.OS + "/" + i.Arch, i.Runtimes,
		promises(i), slices.Concat(capabilities(i), env.kernelCapabilities(i), []Capability{env.gitCapability()}, notChecked(i)),
	}, nil
}

// capabilities is what was found on this machine: the table that the command
// and the preflight share.
func capabilities(i engine.Info) []Capability {
	list := []Capability{
		{Name: "memory", Promise: "B5", Held: i.Limits.Memory, Meaning: "a worker's memory is limited"},
		{Name: "swap", Promise: "B5", Held: i.Limits.Swap, Meaning: "no swap beyond the memory limit"},
		{Name: "cpu", Promise: "B5", Held: i.Limits.CPU, Meaning: "a worker's cpu time is limited"},
		{Name: "pids", Promise: "B5", Held: i.Limits.PIDs, Meaning: "the number of a worker's processes is limited"},
		{Name: "seccomp", Promise: "B2", Held: i.Limits.Seccomp, Meaning: "system calls are filtered"},
	}
	// What an engine promises nowhere isn't looked for.
	if slices.Contains(promise.Engines(), i.Kind) {
		list = slices.DeleteFunc(list, func(c Capability) bool { return !promise.Of(i.Kind, c.Promise).Held })
	}
	for _, f := range i.Findings {
		// What an engine says of a limit is more than that it isn't there.
		if at := slices.IndexFunc(list, func(c Capability) bool { return c.Name == f.Name }); at >= 0 {
			list[at].Held, list[at].Do = list[at].Held && f.Held, f.Do
			if !f.Held {
				list[at].Meaning = f.Meaning
			}
			continue
		}
		list = append(list, Capability{Name: f.Name, Promise: f.Promise, Held: f.Held, Meaning: f.Meaning, Do: f.Do, rooms: f.Rooms, accepted: f.Accepted})
	}
	return append(list,
		Capability{Name: "live-files", Held: i.Local, Meaning: "the engine sees this machine's files: mounts, secrets and image: host work"},
		Capability{Name: "ipv6", Held: i.IPv6, Meaning: "the engine's kernel has IPv6"})
}

// notChecked is what `up` can't compare here, of what containers say of themselves.
func notChecked(i engine.Info) (list []Capability) {
	if i.Kind == promise.Process {
		return nil
	}
	for _, u := range engine.UnseenMade(i) {
		list = append(list, Capability{Name: u.Name, Promise: u.Promise, NotChecked: true, Meaning: u.Why})
	}
	return list
}

// promises says of each promise whether it holds here, and by what.
func promises(i engine.Info) []Promise {
	var out []Promise
	for _, p := range promise.All() {
		kept := promise.Of(i.Kind, p.ID)
		x := Promise{Promise: p.ID, Title: p.Title, Held: kept.Held, How: kept.How}
		var lacking []string
		for _, c := range capabilities(i) {
			if c.Promise == p.ID && !c.Held && kept.Held {
				lacking = append(lacking, c.Name+": "+c.Meaning)
				if c.Do != "" && !slices.Contains(x.Do, c.Do) {
					x.Do = append(x.Do, c.Do)
				}
			}
		}
		if len(lacking) > 0 {
			x.Held, x.How = false, "not on this machine: "+strings.Join(lacking, "; ")
		}
		out = append(out, x)
	}
	return out
}

// gitCapability reports whether git on this machine leaves bare repositories
// alone that it finds: a worker can make one wherever it may write, and what its
// configuration names runs at the next `git status` there (B8).
func (env *Env) gitCapability() Capability {
	return Capability{
		Name: "git", Held: facts.GitRefusesBare(env.Home, env.Lookup), Meaning: "git takes no directory for a repository but .git, or by --git-dir (safe.bareRepository)",
		Do: "git config --global safe.bareRepository explicit",
	}
}
