package compose

import (
	"strconv"
	"strings"
	"time"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/diag"
)

// service writes one service. Every field that the compile sets is written
// here; a test compares the project with what a loader reads from the file.
func (e *emitter) service(c *Compiled, s *types.ServiceConfig) {
	e.within("services." + s.Name + ".")
	e.title(c, s)
	e.raw(2, s.Name+":")
	e.text("image", s.Image)
	e.build(s.Build)
	e.text("pull_policy", s.PullPolicy)
	e.entrypoint(s.Entrypoint)
	e.text("user", s.User)
	e.text("working_dir", s.WorkingDir)
	e.text("runtime", s.Runtime)

	e.network(s)
	e.ports(s.Ports)
	e.environment(s.Environment)
	e.mounts(s)
	e.limits(s)

	e.flow(4, "cap_drop", s.CapDrop)
	e.flow(4, "cap_add", s.CapAdd)
	e.flow(4, "security_opt", s.SecurityOpt)
	if s.ReadOnly {
		e.raw(4, "read_only: true")
	}
	e.text("ipc", s.Ipc)
	if s.Init != nil {
		e.raw(4, "init: "+strconv.FormatBool(*s.Init))
	}
	e.text("restart", s.Restart)
	if s.StopGracePeriod != nil {
		e.raw(4, "stop_grace_period: "+duration(time.Duration(*s.StopGracePeriod)))
	}
	e.logging(s.Logging)
	e.health(s.HealthCheck)
	if len(s.Labels) > 0 {
		e.raw(4, "labels:")
		for _, k := range sortedKeys(s.Labels) {
			e.value(6, k, "labels."+k, s.Labels[k])
		}
	}
}

// title is the comment above a service.
func (e *emitter) title(c *Compiled, s *types.ServiceConfig) {
	switch c.Roles[s.Name] {
	case RoleGuard:
		e.raw(2, "# decides what leaves and carries it; no capability")
	case RoleOutlet:
		e.raw(2, "# makes the connections of a worker with a kernel of its own, in its room; no capability")
	case RoleRoom:
		e.raw(2, "# a network with loopback only: the namespace of its workers")
	}
	if src := e.source(""); src.Range.Start.Line > 0 {
		e.indent(2)
		e.b = append(appendPlace(append(e.b, "# "...), src), '\n')
	}
}

// text writes a key of the service if it has a value.
func (e *emitter) text(name, value string) {
	if value != "" {
		e.value(4, name, name, value)
	}
}

func (e *emitter) build(b *types.BuildConfig) {
	if b == nil {
		return
	}
	e.indent(4)
	e.b = append(e.b, "build:"...)
	e.end(e.source("build"))
	e.value(6, "context", "build.context", b.Context)
	e.value(6, "dockerfile", "build.dockerfile", b.Dockerfile)
	if b.Target != "" {
		e.value(6, "target", "build.target", b.Target)
	}
	if len(b.Args) > 0 {
		e.raw(6, "args:")
		for _, k := range sortedKeys(b.Args) {
			e.value(8, k, "build.args."+k, *b.Args[k])
		}
	}
}

// entrypoint is written as a list: a string would be split by a shell's rules.
func (e *emitter) entrypoint(words []string) {
	e.raw(4, "entrypoint:")
	for i, w := range words {
		at := ""
		switch {
		case i > 0 && words[i-1] == "--write":
			at = "entrypoint." + w
		case i > 0 && (words[i-1] == workdirFlag || words[i-1] == toolsFlag):
			at = "entrypoint." + words[i-1]
		}
		if at == "" {
			e.indent(6)
			e.b = append(appendPlain(append(e.b, "- "...), diag.Literal(w)), '\n')
		} else {
			e.item(6, at, w)
		}
	}
}

func (e *emitter) network(s *types.ServiceConfig) {
	e.text("network_mode", s.NetworkMode)
	if len(s.Networks) > 0 {
		e.flow(4, "networks", sortedKeys(s.Networks))
	}
	e.text("hostname", s.Hostname)
	if len(s.ExtraHosts) > 0 {
		e.raw(4, "extra_hosts:")
		for _, host := range sortedKeys(s.ExtraHosts) {
			for _, ip := range s.ExtraHosts[host] {
				e.b = append(e.b, "      - "...)
				e.b = append(appendQuoted(e.b, host+":"+ip), '\n')
			}
		}
	}
	e.flow(4, "dns", s.DNS)
	e.flow(4, "dns_search", s.DNSSearch)
	e.flow(4, "dns_opt", s.DNSOpts)
	if len(s.Sysctls) > 0 {
		e.raw(4, "sysctls:")
		for _, k := range sortedKeys(s.Sysctls) {
			e.value(6, k, "sysctls."+k, s.Sysctls[k])
		}
	}
	if len(s.DependsOn) > 0 {
		e.raw(4, "depends_on:")
		for _, k := range sortedKeys(s.DependsOn) {
			e.raw(6, k+": {condition: "+s.DependsOn[k].Condition+"}")
		}
	}
}

// ports are written in the short form: 1.29 knows no host_ip in the long one.
func (e *emitter) ports(ports []types.ServicePortConfig) {
	if len(ports) == 0 {
		return
	}
	e.raw(4, "ports:")
	for _, p := range ports {
		host := p.HostIP
		if strings.Contains(host, ":") {
			host = "[" + host + "]"
		}
		target := strconv.Itoa(int(p.Target))
		e.item(6, "ports."+target, host+":"+p.Published+":"+target+"/"+p.Protocol)
	}
}

func (e *emitter) environment(env types.MappingWithEquals) {
	if len(env) == 0 {
		return
	}
	e.raw(4, "environment:")
	for _, k := range sortedKeys(env) {
		e.value(6, k, "environment."+k, *env[k])
	}
}
