package importer

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/draft"
	"github.com/llmdo/workshop/workshop"
)

// compose imports the services of a Compose file: each is a worker with its image,
// mounts, variables and ports. The command of a service isn't run.
func (i *importing) compose(n *node) {
	services := n.get("services")
	if services == nil || services.kind != mapping || len(services.pairs) == 0 {
		i.add(diag.Error, n.at, "import-invalid", "the file has no services", "name a compose.yaml, devcontainer.json or .mcp.json")
		return
	}
	for _, p := range n.pairs {
		switch p.key {
		case "services", "version", "name", "secrets", "networks", "volumes": // their uses are named
		case "include":
			i.not(p.at, p.key, "", "write one file: `docker compose config > full.yaml`, then `workshop init --from full.yaml`")
		default:
			if !strings.HasPrefix(p.key, "x-") {
				i.not(p.at, p.key, "", "")
			}
		}
	}
	secrets := i.composeSecrets(n.get("secrets"))
	var all []service
	for _, p := range services.pairs {
		if !serverName().MatchString(p.key) || p.value.kind != mapping {
			i.not(p.at, "the service "+p.key, "its name can't be a worker's", "rename it: lower-case letters, digits, _ and -")
			continue
		}
		all = append(all, i.service(p, secrets))
	}
	i.share(all)
}

// nameOfSecret is the name in a line of secrets.
func nameOfSecret(line string) string {
	_, rest, _ := strings.Cut(line, "name: ")
	name, _, _ := strings.Cut(rest, ",")
	return name
}

// composeSecrets are the lines for the file's secrets, by name.
func (i *importing) composeSecrets(n *node) map[string]draft.Line {
	out := map[string]draft.Line{}
	for _, p := range n.pairsOf() {
		file, variable := p.value.get("file").str(), p.value.get("environment").str()
		name := draft.Scalar(strings.ToLower(p.key))
		switch {
		case isVariable(variable):
			out[p.key] = draft.Line{Text: "{name: " + name + ", env: " + variable + "}"}
		case file != "" && !strings.ContainsAny(file, "$~") && !path.IsAbs(file):
			out[p.key] = draft.Line{Text: "{name: " + name + ", file: " + draft.Scalar(dotted(path.Join(path.Dir(i.File), file))) + "}"}
		default:
			i.not(p.at, "the secret "+p.key, "", "write secrets: [{name: NAME, env: VARIABLE}]")
		}
	}
	return out
}

// service imports one service.
func (i *importing) service(p pair, secrets map[string]draft.Line) service {
	s := service{name: p.key}
	c, dir := &s.Container, path.Dir(i.File)
	for _, k := range p.value.pairs {
		switch k.key {
		case "image":
			if value, ok := i.composeText(k, "image"); ok {
				c.Image = draft.Line{Text: draft.Scalar(value)}
			}
		case "build":
			i.composeBuild(c, k, dir)
		case "working_dir":
			if d := k.value.str(); path.IsAbs(d) && !strings.Contains(d, "$") {
				c.Workdir = draft.Line{Text: draft.Scalar(d)}
			} else {
				i.not(k.at, k.key, "it is not an absolute path", "write workdir: /workspace")
			}
		case "user":
			i.composeUser(c, k)
		case "environment":
			i.composeEnv(c, k.value)
		case "volumes":
			for _, v := range k.value.each() {
				i.composeVolume(&s, v, dir)
			}
		case "ports":
			for _, v := range k.value.each() {
				i.composePort(c, v)
			}
		case "secrets":
			for _, v := range k.value.each() {
				name := v.str()
				if v.kind == mapping {
					name = v.get("source").str()
				}
				if l, ok := secrets[name]; ok {
					c.Secrets = append(c.Secrets, l)
				}
			}
		case "mem_limit", "cpus", "pids_limit", "shm_size":
			i.composeLimit(c, k.key, k)
		case "deploy":
			i.composeDeploy(c, k.value)
		default:
			i.composeOther(k)
		}
	}
	return s
}

// composeText is a text with variables in our form.
func (i *importing) composeText(p pair, what string) (string, bool) {
	if p.value.isScalar() {
		if value, ok := composeValue(p.value.text); ok && value != "" {
			return value, true
		}
	}
	i.not(p.at, what, "its value has no counterpart", "write it by hand")
	return "", false
}

func (i *importing) composeBuild(c *draft.Container, p pair, dir string) {
	context, dockerfile := p.value.str(), ""
	if p.value.kind == mapping {
		context, dockerfile = p.value.get("context").str(), p.value.get("dockerfile").str()
	}
	if strings.Contains(context+dockerfile, "$") || strings.Contains(context, ":") || path.IsAbs(context) || strings.HasPrefix(path.Join(dir, context), "..") {
		i.not(p.at, "build", "its context is not a directory of the project", "write build: {context: ./DIR}")
		return
	}
	c.Build = &draft.Build{Context: dotted(path.Join(dir, context)), Dockerfile: dockerfile}
	for _, k := range p.value.pairs {
		switch k.key {
		case "context", "dockerfile":
		case "target":
			c.Build.Target = k.value.str()
		case "args":
			i.variables(k.value, func(name, value string, _ place) {
				c.Build.Args = set(c.Build.Args, name, value)
			})
		default:
			i.not(k.at, "build."+k.key, "", "")
		}
	}
}

// variables are those of a mapping or of a list of NAME=VALUE; NAME alone is the
// caller's.
func (i *importing) variables(n *node, add func(name, value string, at place)) {
	one := func(name, value string, at place) {
		if translated, ok := composeValue(value); ok {
			add(name, translated, at)
			return
		}
		i.not(at, "the variable "+name, "its value has no counterpart", "write it by hand: env: {"+clip(name)+": …}")
	}
	for _, p := range n.pairsOf() {
		switch {
		case p.value.kind == null && isVariable(p.key):
			add(p.key, "${"+p.key+"}", p.at)
		default:
			one(p.key, p.value.str(), p.at)
		}
	}
	if n.kind != list {
		return
	}
	for _, x := range n.items {
		name, value, ok := strings.Cut(x.str(), "=")
		if !ok && isVariable(name) {
			add(name, "${"+name+"}", x.at)
			continue
		}
		one(name, value, x.at)
	}
}

func (i *importing) composeEnv(c *draft.Container, n *node) {
	i.variables(n, func(name, value string, at place) { i.env(c, name, value, at) })
}

func (i *importing) composeUser(c *draft.Container, p pair) {
	uid, gid, both := strings.Cut(p.value.str(), ":")
	u, err := strconv.Atoi(uid)
	if _, gidErr := strconv.Atoi(gid); both && gidErr != nil {
		err = gidErr
	}
	switch {
	case uid == "root" || err == nil && u == 0:
		i.refuse(p.at, "user "+p.value.str(), "a worker never runs as root (B4)", "workers have your user; what needs root is done in the image")
	case err != nil:
		i.not(p.at, "user "+p.value.str(), "a worker has your uid", "write user: \"1000:1000\" for another one")
	case both:
		c.User = draft.Line{Text: strconv.Quote(uid + ":" + gid)}
	default:
		c.User = draft.Line{Text: strconv.Quote(uid + ":" + uid)}
	}
}

func (i *importing) composeVolume(s *service, n *node, dir string) {
	source, target, readOnly := "", "", false
	if n.kind == mapping {
		source, target, readOnly = n.get("source").str(), n.get("target").str(), n.get("read_only").str() == "true"
		if kind := n.get("type").str(); kind != "bind" {
			i.not(n.at, "the "+kind+" at "+target, "there are no named volumes", "write a directory of the project: mounts: [./DIR:"+clip(target)+":rw]")
			return
		}
	} else {
		parts := strings.Split(n.str(), ":")
		if len(parts) < 2 || len(parts) > 3 || !strings.HasPrefix(parts[0], ".") && !strings.HasPrefix(parts[0], "/") && !strings.HasPrefix(parts[0], "~") {
			i.not(n.at, "the volume "+n.str(), "there are no named volumes", "write a directory of the project: mounts: [./DIR:/workspace/DIR:rw]")
			return
		}
		source, target = parts[0], parts[1]
		readOnly = len(parts) == 3 && slices.Contains(strings.Split(parts[2], ","), "ro")
	}
	if b, ok := i.bind(source, target, dir, readOnly, n.at); ok {
		s.binds = append(s.binds, placedBind{b, n.at})
	}
}

func (i *importing) composePort(c *draft.Container, n *node) {
	host, published, target, protocol := "", "", "", ""
	if n.kind == mapping {
		host, published, target, protocol = n.get("host_ip").str(), n.get("published").str(), n.get("target").str(), n.get("protocol").str()
	} else {
		var rest string
		rest, protocol, _ = strings.Cut(n.str(), "/")
		parts := strings.Split(rest, ":")
		target = parts[len(parts)-1]
		if len(parts) > 1 {
			published = parts[len(parts)-2]
		}
		host = strings.Trim(strings.Join(parts[:max(len(parts)-2, 0)], ":"), "[]")
	}
	p, err := strconv.Atoi(cmp.Or(published, "0")) // 0: an open port, here as in Compose
	t, err2 := strconv.Atoi(target)
	switch {
	case protocol != "" && protocol != "tcp":
		i.not(n.at, "a port of "+protocol, "ports are TCP", "")
	case err != nil || err2 != nil:
		i.not(n.at, fmt.Sprintf("the port %q", n.str()), "it is a range, or has a variable", "write ports: [\"8080:8080\"]")
	default:
		i.port(c, host, p, t, n.at)
	}
}

func (i *importing) composeLimit(c *draft.Container, what string, p pair) {
	value := p.value.str()
	size, isSize := sizeText(value)
	switch {
	case what == "cpus" && value != "" && strings.Trim(value, "0123456789.") == "":
		c.CPU = value
	case what == "mem_limit" && isSize:
		c.Memory = size
	case what == "shm_size" && isSize:
		c.Shm = draft.Line{Text: size}
	default:
		why, hint, _ := workshop.InsteadOf(what)
		i.not(p.at, what, trimPeriod(why), hint)
	}
}

func (i *importing) composeDeploy(c *draft.Container, n *node) {
	for _, p := range n.pairsOf() {
		if p.key != "resources" {
			i.not(p.at, "deploy."+p.key, "", "")
		}
	}
	for _, p := range n.get("resources").get("limits").pairsOf() {
		switch p.key {
		case "memory":
			i.composeLimit(c, "mem_limit", p)
		case "cpus":
			i.composeLimit(c, "cpus", p)
		default:
			i.composeLimit(c, "pids_limit", p)
		}
	}
}

// composeOther is a key that opens a boundary, or has no counterpart.
func (i *importing) composeOther(p pair) {
	why, hint, _ := workshop.InsteadOf(p.key)
	value := p.value.str()
	switch {
	case strings.HasPrefix(p.key, "x-"):
	case slices.Contains([]string{"container_name", "stdin_open", "tty", "init", "labels", "logging", "hostname", "stop_signal", "stop_grace_period", "restart", "cap_drop", "read_only"}, p.key):
		// It is so already, or says nothing about what a worker may do.
	case p.key == "privileged" && value != "true", p.key == "network_mode" && value == "none":
	case p.key == "extends":
		i.not(p.at, p.key, "", "write one file: `docker compose config > full.yaml`, then `workshop init --from full.yaml`")
	case slices.Contains([]string{"privileged", "cap_add", "devices", "device_cgroup_rules", "gpus", "pid", "ipc", "uts", "userns_mode", "cgroup", "cgroup_parent", "sysctls", "security_opt", "volumes_from"}, p.key),
		p.key == "network_mode" && value == "host":
		i.refuse(p.at, strings.TrimSpace(p.key+" "+value), cmp.Or(trimPeriod(why), "it opens a worker's boundary"), "leave it out")
	case p.key == "command", p.key == "entrypoint":
		i.not(p.at, p.key, "a worker runs only what is started in it", "`workshop exec WORKER -- COMMAND`")
	default:
		i.not(p.at, p.key, trimPeriod(why), hint)
	}
}
