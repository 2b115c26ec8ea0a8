package app

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/llmdo/workshop/internal/lib/subpath"
	"github.com/llmdo/workshop/workshop"
)

// RunFlags are what the flags of a run say of its container. They are as on the command
// line; empty ones say nothing.
type RunFlags struct {
	Image, Network             string
	Allow, Deny                []string
	Private                    bool // names of Allow may have private addresses
	ReadOnly, ReadWrite        []string
	Memory, CPUs, PIDs         string
	Timeout, Workdir           string
	Env, Secrets, PublishPorts []string
}

// mode is the network mode of a run whose flags name none.
func (f *RunFlags) mode() string {
	if f.Network == "" && (len(f.Allow) > 0 || len(f.PublishPorts) > 0) {
		return "restricted"
	}
	return f.Network
}

// modeFlag is the flag that the mode comes from.
func (f *RunFlags) modeFlag() string {
	switch {
	case f.Network != "":
		return "--network " + f.Network
	case len(f.Allow) > 0:
		return "--allow " + f.Allow[0]
	}
	return "--publish"
}

// container adds what the flags say to a `container:`; mounts are those of the worker
// that is narrowed, nil without a file.
func (f *RunFlags) container(env *Env, root string, worker *workshop.Worker) (yamlMap, error) {
	if err := f.checkText(); err != nil {
		return nil, err
	}
	var c yamlMap
	c.scalar("image", f.Image, "--image")
	c.scalar("workdir", f.Workdir, "--workdir")
	network, err := f.network()
	if err != nil {
		return nil, err
	}
	c.add("network", network)
	c.add("mounts", f.mounts(env, root, worker))
	var limits yamlMap
	limits.scalar("memory", f.Memory, "--memory")
	limits.scalar("cpu", f.CPUs, "--cpus")
	limits.scalar("pids", f.PIDs, "--pids")
	limits.scalar("timeout", f.Timeout, "--timeout")
	c.add("resources", limits)
	variables, err := f.variables(env)
	if err != nil {
		return nil, err
	}
	c.add("env", variables)
	secrets, err := f.secrets(env, root, worker != nil)
	if err != nil {
		return nil, err
	}
	c.add("secrets", secrets)
	var ports yamlList
	for _, p := range f.PublishPorts {
		if !strings.Contains(p, ":") {
			p += ":" + p // `docker run -p 8080` is any port of the host, here it is the same one
		}
		ports = append(ports, yamlScalarNode(p, "--publish "+p))
	}
	c.add("ports", ports)
	return c, nil
}

// checkText refuses what no text file can hold.
func (f *RunFlags) checkText() error {
	one := []string{f.Image, f.Network, f.Memory, f.CPUs, f.PIDs, f.Timeout, f.Workdir}
	for _, list := range [][]string{one, f.Allow, f.Deny, f.ReadOnly, f.ReadWrite, f.Env, f.Secrets, f.PublishPorts} {
		for _, text := range list {
			if !utf8.ValidString(text) {
				return Fail(CodeUsage, "run: %s is not valid UTF-8, which a workshop.yaml can't hold", quoted(text))
			}
		}
	}
	return nil
}

func (f *RunFlags) network() (yamlMap, error) {
	var n yamlMap
	n.scalar("mode", f.mode(), f.modeFlag())
	for _, list := range []struct {
		key  string
		args []string
	}{{"allow", f.Allow}, {"deny", f.Deny}} {
		if list.args == nil {
			continue
		}
		lines := yamlList{}
		for _, arg := range list.args {
			line, err := f.line(list.key, arg)
			if err != nil {
				return nil, err
			}
			lines = append(lines, line)
		}
		n.add(list.key, lines)
	}
	if n.has("mode") && f.mode() == "restricted" && !n.has("allow") {
		n.add("allow", yamlList{})
	}
	return n, nil
}

// line is an argument of --allow or --deny as a line of the file.
func (f *RunFlags) line(key, arg string) (yamlItem, error) {
	flag := "--" + key + " " + arg
	if name, ok := strings.CutPrefix(arg, "preset:"); ok && key == "allow" {
		var preset yamlMap
		preset.scalar("preset", name, flag)
		return preset, nil
	}
	change := RuleChange{Deny: key == "deny", Private: f.Private && key == "allow"}
	if err := change.Parse([]string{arg}); err != nil {
		return nil, runFlagError("--"+key, arg, err)
	}
	return yamlFlow(RuleLine(change.Rules[0], change.Deny), flag)
}

// runFlagError names the flag of a problem with its argument.
func runFlagError(flag, arg string, err error) error {
	f, ok := err.(*Failure)
	if !ok {
		return err
	}
	out := Fail(f.Code, "%s %w", flag, f.Err)
	for _, h := range f.Hints {
		if strings.Contains(h, "network.allow in workshop.yaml") { // of [presetAsHost]
			h = "write --allow preset:" + strings.TrimPrefix(arg, "preset:")
		}
		out.Hint("%s", h)
	}
	return out
}

// mounts are those of the flags. Without a file they come after this directory.
func (f *RunFlags) mounts(env *Env, root string, worker *workshop.Worker) yamlList {
	var out yamlList
	targets := map[string]bool{}
	add := func(list []string, flag, mode string) {
		for _, arg := range list {
			m := env.runMount(arg, root, worker)
			m.ReadWrite = mode == "rw"
			targets[m.Target.V] = true
			out = append(out, mountItem(m, flag+" "+arg))
		}
	}
	add(f.ReadOnly, "--ro", "ro")
	add(f.ReadWrite, "--rw", "rw")
	if worker == nil && !targets[runWorkspace] {
		here := workshop.Mount{Source: workshop.Value[string]{V: "."}, Target: workshop.Value[string]{V: runWorkspace}}
		out = slices.Insert(out, 0, yamlItem(mountItem(here, thisDirectory)))
	}
	return out
}

// thisDirectory stands for the flag of the mount that no flag says.
const thisDirectory = "this directory"

// runWorkspace is where this directory is in a run without a file.
const runWorkspace = "/workspace"

// runMount reads PATH[:TARGET]. Without a target it is where a mount of the worker has
// the path; without a file in /workspace if it is below this directory, else where it
// is on this machine.
func (env *Env) runMount(arg, root string, worker *workshop.Worker) (m workshop.Mount) {
	source, target := arg, ""
	if i := strings.LastIndex(arg, ":/"); i > 0 {
		source, target = arg[:i], arg[i+1:]
	}
	m.Source.V, m.OutsideProject = source, true
	at := source
	if !strings.HasPrefix(source, "~") {
		at = env.Abs(source)
		rel, err := filepath.Rel(root, at)
		if err == nil && filepath.IsLocal(rel) {
			m.Source.V, m.OutsideProject = filepath.ToSlash(rel), false
		} else if err == nil && !filepath.IsAbs(source) {
			m.Source.V = filepath.ToSlash(rel)
		}
	}
	switch below, found := env.mountedAt(m.Source.V, worker); {
	case target != "":
		m.Target.V = target
	case found:
		m.Target.V = below
	case !m.OutsideProject && worker == nil:
		m.Target.V = strings.TrimSuffix(runWorkspace+"/"+m.Source.V, "/.")
	default:
		m.Target.V = filepath.ToSlash(at)
	}
	return m
}

// mountedAt is where a worker has a source: in its mount of the nearest directory above.
func (env *Env) mountedAt(source string, worker *workshop.Worker) (target string, found bool) {
	if worker == nil {
		return "", false
	}
	longest := -1
	for _, m := range worker.Container.Mounts {
		if below, ok := subpath.Below(source, m.Source.V); ok && len(m.Source.V) > longest {
			longest, found = len(m.Source.V), true
			target = strings.TrimSuffix(m.Target.V+"/"+below, "/")
		}
	}
	return target, found
}

// variables are NAME=VALUE, or NAME for the caller's value, which the file names.
func (f *RunFlags) variables(env *Env) (yamlMap, error) {
	var out yamlMap
	seen := map[string]bool{}
	for i := len(f.Env) - 1; i >= 0; i-- { // the last one of a name counts
		name, value, given := strings.Cut(f.Env[i], "=")
		if name == "" {
			return nil, Fail(CodeUsage, "--env %s: a variable needs a name: NAME=VALUE", quoted(f.Env[i]))
		}
		if seen[name] {
			continue
		}
		seen[name] = true
		if _, set := env.Lookup(name); !given && !set {
			continue
		}
		item := yamlScalarNode(value, "--env "+name)
		if !given {
			item = yamlTemplate("${"+name+"}", "--env "+name)
		}
		out = append(yamlMap{{name, item}}, out...)
	}
	return out, nil
}

// secrets are NAME or NAME=FILE; with a file, names of the worker's.
func (f *RunFlags) secrets(env *Env, root string, named bool) (yamlList, error) {
	var out yamlList
	for _, arg := range f.Secrets {
		name, file, isFile := strings.Cut(arg, "=")
		flag := "--secret " + arg
		switch {
		case named && isFile:
			return nil, Fail(CodeUsage, "--secret %s: workshop.yaml says where secrets come from, a run only names them", quoted(arg)).
				Hint("write --secret %s, or run it without the file: --no-file", name)
		case named:
			out = append(out, yamlScalarNode(name, flag))
			continue
		}
		var s yamlMap
		s.scalar("name", name, flag)
		if isFile {
			source := env.Abs(file)
			if rel, err := filepath.Rel(root, source); err == nil {
				source = filepath.ToSlash(rel)
			}
			s.scalar("file", source, flag)
		} else {
			s.scalar("env", name, flag)
		}
		out = append(out, s)
	}
	return out, nil
}

// plainNumber reports whether a value is written as a number.
func plainNumber(s string) bool {
	_, err := strconv.ParseFloat(s, 64)
	return err == nil && strings.Trim(s, "0123456789.") == ""
}
