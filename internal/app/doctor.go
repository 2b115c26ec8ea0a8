package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/llmdo/workshop/internal/doctor"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/initimage"
	"github.com/llmdo/workshop/internal/promise"
)

// DoctorReport is what `workshop doctor` found.
type DoctorReport struct {
	Version  string       `json:"version"`
	Platform string       `json:"platform"`
	Level    doctor.Level `json:"level"` // of the worst finding
	doctor.Report
	engine engine.Info
}

// checkTime bounds each check.
const checkTime = 10 * time.Second

// Doctor looks at this machine, at the engine that the caller names or `up` would
// choose, and at what workshops left. It changes nothing. settings is why the settings
// couldn't be read; nil: they were.
func (env *Env) Doctor(ctx context.Context, settings error) DoctorReport {
	quiet := *env
	quiet.Events = nil // what a check causes is no news
	info := make(chan engine.Info, 1)
	var seen atomic.Pointer[engine.Info] // a check may go on after its time
	checks := append([]doctor.Check{
		{Group: doctor.Program, Name: "version", Run: quiet.checkProgram},
		{Group: doctor.Engine, Name: "engine", Run: func(ctx context.Context) []doctor.Finding {
			defer close(info)
			found, i := quiet.checkEngines(ctx)
			seen.Store(&i)
			info <- i
			return found
		}},
		{Group: doctor.Security, Name: "modules", Run: func(ctx context.Context) []doctor.Finding {
			return machineModules(waitInfo(ctx, info).Daemon.SELinux).Findings()
		}},
		{Group: doctor.Network, Name: "dns", Run: func(ctx context.Context) []doctor.Finding { return doctor.DNS(ctx, env.resolvConf()) }},
		{Group: doctor.Network, Name: "proxy", Run: func(ctx context.Context) []doctor.Finding { return doctor.Proxies(ctx, env.Lookup) }},
		{Group: doctor.Network, Name: "certificates", Run: func(context.Context) []doctor.Finding { return doctor.Certificates("/", env.Lookup) }},
		{Group: doctor.Network, Name: "ports", Run: quiet.checkPorts},
		{Group: doctor.Disk, Name: "disk", Run: func(context.Context) []doctor.Finding { return quiet.checkDisks() }},
		{Group: doctor.State, Name: "state", Run: quiet.checkState},
		{Group: doctor.Settings, Name: "settings", Run: func(context.Context) []doctor.Finding { return quiet.checkSettings(settings) }},
	}, machineChecks()...)
	if env.Settings.VMKit != "" {
		checks = append(checks, doctor.Check{Group: doctor.Kernel, Name: "vm-kit", Run: func(context.Context) []doctor.Finding { return []doctor.Finding{quiet.kit().Finding(time.Now())} }})
	}
	r := DoctorReport{Version: env.Version, Platform: runtime.GOOS + "/" + runtime.GOARCH, Report: doctor.Run(ctx, checks, checkTime)}
	r.Level = r.Report.Level()
	if i := seen.Load(); i != nil {
		r.engine = *i
	}
	return r
}

// waitInfo returns what the engine said, if it did; only one may ask.
func waitInfo(ctx context.Context, info <-chan engine.Info) engine.Info {
	select {
	case i := <-info:
		return i
	case <-ctx.Done():
		return engine.Info{}
	}
}

// resolvConf is the machine's resolv.conf; a test has another.
func (env *Env) resolvConf() string {
	if env.ResolvConf != "" {
		return env.ResolvConf
	}
	return "/etc/resolv.conf"
}

// checkProgram is about this program, and the workshop-init that it runs.
func (env *Env) checkProgram(context.Context) []doctor.Finding {
	out := []doctor.Finding{{Group: doctor.Program, Name: "version", Level: doctor.OK, Text: fmt.Sprintf("workshop %s, %s/%s", env.Version, runtime.GOOS, runtime.GOARCH)}}
	init := doctor.Finding{Group: doctor.Program, Name: "workshop-init", Level: doctor.OK}
	names, err := initimage.Default().Names(runtime.GOARCH)
	switch _, none := errors.AsType[*initimage.NotBuiltError](err); {
	case err == nil:
		init.Text = "workshop-init " + names.Digest[:12] + " is embedded"
		otherArch(&init)
		if f, other := otherInstalled(names); other {
			out = append(out, f)
		}
	case none:
		init.Text = "no workshop-init is embedded: the first command that needs one builds it with the Go toolchain"
		if _, err := exec.LookPath("go"); err != nil {
			init.Level, init.Text = doctor.Error, "no workshop-init is embedded, and there is no Go toolchain to build one"
			init.Do = "install Go, or a package of workshop; in a checkout: `make build`"
		}
	default:
		init.Level, init.Text = doctor.Error, err.Error()
	}
	return append(out, init)
}

// otherArch adds whether engines of another architecture can be used.
func otherArch(f *doctor.Finding) {
	for _, arch := range initimage.Arches() {
		if arch == runtime.GOARCH {
			continue
		}
		_, err := initimage.Default().Binary(arch)
		switch _, none := errors.AsType[*initimage.NotBuiltError](err); {
		case err == nil:
			f.Text += ", and there is one for linux/" + arch
		case none:
			f.Text += ", and there is none for linux/" + arch
		default:
			f.Level, f.Text = doctor.Warning, err.Error()
		}
	}
}

// checkEngines is about the engine that is used, and says which others answer.
func (env *Env) checkEngines(ctx context.Context) ([]doctor.Finding, engine.Info) {
	var out []doctor.Finding
	add := func(name string, level doctor.Level, text, do string) {
		out = append(out, doctor.Finding{Group: doctor.Engine, Name: name, Level: level, Text: text, Do: firstHint(do)})
	}
	var t ProjectRef
	if _, err := env.FindFile(); err == nil {
		if t, err = env.Find(ctx); err != nil {
			t = ProjectRef{}
			add("workshop", doctor.Warning, "the workshop here can't be read: "+firstLine(err), "see all that is wrong: `workshop validate`")
		}
	}
	asking := *env
	asking.Settings.ForceProcess = true
	r, err := asking.Connect(ctx, t, nil)
	var i engine.Info
	if err == nil {
		defer r.Close()
		i, err = r.Info(ctx)
	}
	if err != nil {
		add("engine", doctor.Error, firstLine(err), strings.Join(hintsOf(err), ". "))
		return out, i
	}
	why := ""
	if r.Chosen.Why != "" {
		why = " (" + r.Chosen.Why + ")"
	}
	add("engine", doctor.OK, "workshops run on "+engineWords(i)+why, "")
	out = append(out, daemonFindings(i)...)
	if i.Kind == promise.Namespace && env.Settings.Engine == "" {
		out = append(out, env.otherDocker(ctx)...)
	}
	out = append(out, env.alsoAnswer(ctx, i)...)
	for _, c := range append(capabilities(i), env.kernelCapabilities(i)...) {
		out = append(out, capabilityFinding(i.Kind, c))
	}
	return out, i
}

// otherDocker says why Docker isn't used where that needs a person.
func (env *Env) otherDocker(ctx context.Context) []doctor.Finding {
	e, err := env.Engine(ctx, promise.Docker, EngineOptions{Lookup: env.Lookup})
	if err == nil {
		defer e.Close()
		err = e.Ping(ctx)
	}
	if err == nil || !strings.Contains(err.Error(), "permission denied") {
		return nil
	}
	return []doctor.Finding{{Group: doctor.Engine, Name: "docker", Level: doctor.Warning, Text: firstLine(err), Do: firstHint(strings.Join(hintsOf(err), ". "))}}
}

// engineWords is an engine in a few words.
func engineWords(i engine.Info) string {
	if i.Flavour == "" {
		return "the " + i.Kind + " engine"
	}
	name := string(i.Flavour)
	if i.Flavour == engine.FlavourDocker {
		name = "Docker"
	}
	text := name + " " + i.Version + " at " + i.Endpoint
	if v := i.Daemon.CgroupVersion; v != "" {
		text += ", cgroups of version " + v
	}
	return text
}

// daemonFindings are those on how a Docker engine is set up.
func daemonFindings(i engine.Info) []doctor.Finding {
	if i.Kind != promise.Docker {
		return nil
	}
	var out []doctor.Finding
	add := func(name string, level doctor.Level, text, do string) {
		out = append(out, doctor.Finding{Group: doctor.Engine, Name: name, Level: level, Text: text, Do: do})
	}
	const namespaces = "run on namespaces: `workshop --engine namespace up`"
	d := i.Daemon
	switch {
	case d.Desktop:
		add("docker-vm", doctor.Warning, "Docker runs in a virtual machine, which doesn't see this machine's files as they are: mounts need `copy: true`", "read how: `workshop explain engine-elsewhere`")
	case i.MappedIDs() != "":
		add("userns", doctor.Warning, i.MappedIDs()+": mounts with mode rw and secrets are refused (B4, B11)", namespaces)
	default:
		add("userns", doctor.OK, "ids in containers are those of the machine", "")
	}
	if d.LiveRestore {
		add("live-restore", doctor.OK, "workshops go on while Docker restarts (live-restore)", "")
	} else {
		add("live-restore", doctor.OK, "a restart of Docker stops workshops (live-restore is off)", "")
	}
	return out
}

// capabilityGroups are the groups of what engines find.
var capabilityGroups = map[string]string{
	"memory": doctor.Cgroups, "swap": doctor.Cgroups, "cpu": doctor.Cgroups, "pids": doctor.Cgroups, "systemd": doctor.Cgroups,
	"seccomp": doctor.Kernel, "ipv6": doctor.Network, "nf_tables": doctor.Network,
	"user-namespaces": doctor.Namespaces, "git": doctor.Settings,
}

// lacking say what it means that a capability isn't held, where its own meaning is what
// it is good for.
var lacking = map[string]string{
	"git":        "git takes a directory that a worker made for a repository, and runs what its configuration names (safe.bareRepository isn't explicit)",
	"live-files": "the engine doesn't see this machine's files: mounts without `copy: true`, secrets and image: host are refused",
}

// lackingOnDocker are those of limits, which the namespace engine explains itself.
var lackingOnDocker = map[string]string{
	"memory": "Docker can't limit memory here", "swap": "Docker can't limit swap here", "cpu": "Docker can't limit cpu time here",
	"pids": "Docker can't limit the number of processes here", "seccomp": "Docker has no seccomp here",
}

// capabilityFinding is a capability as a finding: what a promise depends on keeps `up`
// from starting anything.
func capabilityFinding(kind string, c Capability) doctor.Finding {
	f := doctor.Finding{Group: capabilityGroups[c.Name], Name: c.Name, Level: doctor.OK, Text: c.Meaning}
	if f.Group == "" {
		f.Group = doctor.Engine
	}
	if c.Held {
		return f
	}
	if text := lacking[c.Name]; text != "" {
		f.Text = text
	} else if text := lackingOnDocker[c.Name]; text != "" && kind == promise.Docker {
		f.Text = text
	}
	switch { // nothing is worse without
	case c.Name == "ipv6":
		f.Text = "no IPv6"
		return f
	case strings.HasPrefix(c.Name, kernelCapability):
		return f
	}
	f.Level, f.Do = doctor.Warning, firstHint(c.Do)
	if c.Promise != "" {
		f.Level, f.Text = doctor.Error, fmt.Sprintf("%s: %s (%s)", c.Name, f.Text, c.Promise)
	}
	if c.accepted {
		f.Level, f.Text, f.Do = doctor.Warning, f.Text+", which your settings accept", ""
	}
	if c.Name == "git" {
		f.Do = "`" + c.Do + "`"
	}
	if kind == promise.Docker && f.Do == "" && c.Promise == "B5" {
		f.Do = "see what Docker lacks: `docker info`"
	}
	return f
}

// firstHint is the first of several sentences: there is one thing to do at a time.
func firstHint(do string) string {
	first, _, _ := strings.Cut(do, ". ")
	return first
}

func hintsOf(err error) []string {
	if f, ok := errors.AsType[*Failure](EngineError(err)); ok {
		return f.AllHints()
	}
	return nil
}

// checkDisks is about the directories that grow, or from which programs run.
func (env *Env) checkDisks() []doctor.Finding {
	list := []doctor.FileSystem{
		{Name: "state", Dir: env.StateDir(), Variable: "XDG_STATE_HOME"},
		{Name: "cache", Dir: env.CacheDir(), Variable: "XDG_CACHE_HOME", Execs: true},
	}
	if docker := "/var/lib/docker"; Exists(docker) {
		list = append(list, doctor.FileSystem{Name: "docker", Dir: docker})
	}
	var out []doctor.Finding
	var known []doctor.FileSystem
	for _, fs := range list {
		if fs.Dir == "" {
			out = append(out, doctor.Finding{Group: doctor.Disk, Name: fs.Name, Level: doctor.Error, Text: "there is no directory for " + fs.Name + ": neither HOME nor " + fs.Variable + " is set", Do: "set it: `export HOME=~`"})
			continue
		}
		seen, err := fs.Look()
		if err != nil {
			out = append(out, doctor.Finding{Group: doctor.Disk, Name: fs.Name, Level: doctor.Error, Text: err.Error(), Do: "look at it: `ls -ld " + fs.Dir + "`"})
			continue
		}
		known = append(known, seen)
	}
	return append(out, doctor.Disks(known)...)
}

// checkSettings is about config.yaml, and about who may write what decides.
func (env *Env) checkSettings(failed error) []doctor.Finding {
	var out []doctor.Finding
	file := ""
	if dir := env.ConfigDir(); dir != "" {
		file = filepath.Join(dir, "config.yaml")
	}
	if failed != nil {
		do := firstHint(strings.Join(Hints(failed), ". "))
		out = append(out, doctor.Finding{Group: doctor.Settings, Name: "settings", Level: doctor.Error, Text: strings.TrimPrefix(firstLine(failed), "settings: "), Do: do})
	}
	out = append(out, doctor.Private(doctor.Settings, os.Getuid(), env.ConfigDir(), file, env.StateDir(), env.CacheDir())...)
	if len(out) == 0 {
		text := "no config.yaml: all settings are the defaults"
		if Exists(file) {
			text = file + " is valid, and nobody else can write to it"
		}
		out = append(out, doctor.Finding{Group: doctor.Settings, Name: "settings", Level: doctor.OK, Text: text})
	}
	return append(out, capabilityFinding("", env.gitCapability()))
}
