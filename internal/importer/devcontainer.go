package importer

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/llmdo/workshop/internal/draft"
	"github.com/llmdo/workshop/internal/lib/shellquote"
	"github.com/llmdo/workshop/internal/lib/visible"
	"github.com/llmdo/workshop/workshop"
)

// editorKeys of a devcontainer.json are an editor's, or say what is always so here.
var editorKeys = map[string]bool{
	"$schema": true, "name": true, "customizations": true, "extensions": true, "settings": true, "portsAttributes": true, "otherPortsAttributes": true,
	"waitFor": true, "shutdownAction": true, "userEnvProbe": true, "overrideCommand": true, "init": true, "updateRemoteUserUID": true,
	"overrideFeatureInstallOrder": true, "service": true, "runServices": true,
	// They are read with others.
	"dockerFile": true, "context": true, "workspaceFolder": true, "workspaceMount": true, "build": true, "image": true,
}

// devcontainer imports a devcontainer.json.
func (i *importing) devcontainer(n *node) {
	c := &i.Container
	i.devWorkspace(n)
	i.devImage(n)
	for _, p := range n.pairs {
		switch p.key {
		case "dockerComposeFile":
			i.not(p.at, p.key, "", "import that file: `workshop init --from "+pasteable(shellquote.Path(path.Join(path.Dir(i.File), first(p.value))), "FILE")+"`")
		case "mounts":
			for _, m := range p.value.each() {
				i.devMount(m)
			}
		case "containerEnv", "remoteEnv":
			for _, v := range p.value.pairs {
				value, ok := i.devValue(v.value.str())
				if !ok || !v.value.isScalar() {
					i.not(v.at, "the variable "+v.key, "its value has no counterpart", "write it by hand: env: {"+clip(v.key)+": …}")
					continue
				}
				i.env(c, v.key, value, v.at)
			}
		case "containerUser", "remoteUser":
			i.devUser(p)
		case "forwardPorts", "appPort":
			for _, v := range p.value.each() {
				i.devPort(v)
			}
		case "hostRequirements":
			i.devRequirements(p.value)
		case "secrets":
			for _, v := range p.value.pairs {
				if !isVariable(v.key) {
					i.not(v.at, "the secret "+v.key, "", "")
					continue
				}
				c.Secrets = append(c.Secrets, draft.Line{Text: "{name: " + draft.Scalar(strings.ToLower(v.key)) + ", env: " + draft.Scalar(v.key) + "}", Why: "at /run/secrets/" + strings.ToLower(v.key)})
			}
		case "runArgs":
			i.devArgs(p.value)
		default:
			i.devOther(p)
		}
	}
	i.took("%s", i.summary())
}

// first is the text of a scalar or of a list's first item.
func first(n *node) string {
	for _, x := range n.each() {
		return x.str()
	}
	return ""
}

// summary says what a container has, in a few words.
func (i *importing) summary() string {
	c := &i.Container
	var parts []string
	switch {
	case c.Build != nil:
		parts = append(parts, "build")
	case c.Image.Text != "":
		parts = append(parts, "image")
	}
	for _, x := range []struct {
		n    int
		noun string
	}{{len(c.Mounts), "mount"}, {len(c.Env), "variable"}, {len(c.Secrets), "secret"}, {len(c.Ports), "port"}} {
		if x.n > 0 {
			parts = append(parts, count(x.n, x.noun))
		}
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}

// devWorkspace is where the project is in the container.
func (i *importing) devWorkspace(n *node) {
	target := "/workspaces/" + i.Base
	i.workdir = target
	if folder := n.get("workspaceFolder").str(); folder != "" {
		if f := i.devPath(folder); path.IsAbs(f) && !strings.Contains(f, "$") {
			i.workdir = path.Clean(f)
		} else {
			i.not(n.get("workspaceFolder").at, "workspaceFolder", "it is not an absolute path", "write workdir: /workspace")
		}
	}
	b := bind{source: ".", target: target, readWrite: true}
	if m := n.get("workspaceMount"); m.str() != "" {
		if made, ok := i.devBind(m); ok {
			b = made
		}
	}
	i.addBind(&i.Container, b, n.at)
	i.Container.Workdir = draft.Line{Text: draft.Scalar(i.workdir)}
}

// devImage is the image, or how it is built.
func (i *importing) devImage(n *node) {
	c, dir := &i.Container, path.Dir(i.File)
	build := n.get("build")
	dockerfile := n.get("dockerFile")
	if d := build.get("dockerfile"); d != nil {
		dockerfile = d
	}
	if dockerfile != nil {
		at := n.get("context")
		if x := build.get("context"); x != nil {
			at = x
		}
		context := path.Join(dir, at.str())
		b := &draft.Build{Context: dotted(context), Target: build.get("target").str()}
		b.Dockerfile = relativeTo(path.Join(dir, dockerfile.str()), context)
		if strings.HasPrefix(context, "..") || path.IsAbs(at.str()) || strings.HasPrefix(b.Dockerfile, "..") || strings.Contains(b.Context+b.Dockerfile+b.Target, "$") {
			i.not(dockerfile.at, "the build", "it needs files outside of the project, or has a variable", "write build: {context: ./DIR}")
			return
		}
		for _, a := range build.get("args").pairsOf() {
			value, ok := i.devValue(a.value.str())
			if !ok || !a.value.isScalar() {
				i.not(a.at, "the build argument "+a.key, "its value has no counterpart", "")
				continue
			}
			b.Args = append(b.Args, draft.Pair{Name: a.key, Value: value})
		}
		for _, key := range []string{"cacheFrom", "options"} {
			if v := build.get(key); v != nil {
				i.not(v.at, "build."+key, "", "")
			}
		}
		c.Build = b
		return
	}
	if image := n.get("image"); image != nil {
		if value, ok := i.devValue(image.str()); ok && value != "" {
			c.Image = draft.Line{Text: draft.Scalar(value)}
		} else {
			i.not(image.at, "image", "its value has no counterpart", "write image: NAME:TAG")
		}
	}
}

// dotted is a relative path that begins with a dot.
func dotted(p string) string {
	if p == "." || strings.HasPrefix(p, "..") {
		return p
	}
	return "./" + p
}

// pairsOf are the pairs of a mapping that may not be there.
func (n *node) pairsOf() []pair {
	if n == nil {
		return nil
	}
	return n.pairs
}

// relativeTo is a path relative to a directory, of two that are relative.
func relativeTo(p, dir string) string {
	if dir == "." {
		return p
	}
	if rest, ok := strings.CutPrefix(p, dir); ok && strings.HasPrefix(rest, "/") {
		return rest[1:]
	}
	return "../" + p
}

// devMount imports an item of mounts.
func (i *importing) devMount(n *node) {
	if b, ok := i.devBind(n); ok {
		i.addBind(&i.Container, b, n.at)
	}
}

// devBind reads a mount: text as for `docker run --mount`, or a mapping.
func (i *importing) devBind(n *node) (bind, bool) {
	keys := map[string]string{}
	if n.kind == mapping {
		for _, p := range n.pairs {
			keys[p.key] = p.value.str()
		}
	} else {
		for part := range strings.SplitSeq(n.str(), ",") {
			key, value, _ := strings.Cut(part, "=")
			keys[key] = value
		}
	}
	source := keys["source"] + keys["src"]
	target := i.devPath(keys["target"] + keys["dst"] + keys["destination"])
	switch kind := keys["type"]; {
	case kind == "tmpfs":
		i.not(n.at, "the tmpfs at "+target, "", "/tmp, /scratch and the home directory are in memory; their sizes are tmp, scratch and home")
		return bind{}, false
	case kind == "volume" || kind == "" && !strings.ContainsAny(source, "/.~$"):
		i.not(n.at, "the volume "+clip(source), "there are no named volumes", "write a directory of the project: mounts: [./DIR:"+clip(target)+":rw]")
		return bind{}, false
	case kind != "bind" && kind != "":
		i.not(n.at, "a mount of the type "+clip(kind), "", "")
		return bind{}, false
	}
	_, readonly := keys["readonly"]
	_, ro := keys["ro"]
	return i.bind(i.devPath(source), target, ".", readonly || ro, n.at)
}

// devUser imports a user that is a number; a worker has the caller's otherwise.
func (i *importing) devUser(p pair) {
	user := p.value.str()
	uid, _, _ := strings.Cut(user, ":")
	switch n, err := strconv.Atoi(uid); {
	case user == "root" || err == nil && n == 0:
		i.refuse(p.at, p.key+" "+user, "a worker never runs as root (B4)", "workers have your user; what needs root is done in the image")
	case err != nil:
		i.not(p.at, p.key+" "+user, "a worker has your uid, as with updateRemoteUserUID", "")
	default:
		if !strings.Contains(user, ":") {
			user += ":" + user
		}
		i.Container.User = draft.Line{Text: strconv.Quote(user)}
	}
}

// devPort imports a port that is forwarded or published.
func (i *importing) devPort(n *node) {
	first, second, two := strings.Cut(n.str(), ":")
	a, err := strconv.Atoi(first)
	b := a
	var err2 error
	if two {
		b, err2 = strconv.Atoi(second)
	}
	if err != nil || err2 != nil {
		i.not(n.at, fmt.Sprintf("the port %q", n.str()), "it is another service's, or a range", "write ports: [\"8080:8080\"] in that worker's container")
		return
	}
	i.port(&i.Container, "", a, b, n.at)
}

// devRequirements imports what the machine must have as limits.
func (i *importing) devRequirements(n *node) {
	for _, p := range n.pairsOf() {
		switch p.key {
		case "cpus":
			if v, err := strconv.Atoi(p.value.str()); err == nil && v > 0 && v <= 1024 {
				i.Container.CPU = strconv.Itoa(v)
			}
		case "memory":
			if size, ok := sizeText(p.value.str()); ok {
				i.Container.Memory = size
			} else {
				i.not(p.value.at, "the memory "+p.value.str(), "", "write resources: {memory: 2G}")
			}
		case "gpu":
			i.not(p.at, "hostRequirements.gpu", "workers have no devices (B6)", "")
		}
	}
}

// sizeText writes a size such as 8gb as the file does.
func sizeText(s string) (string, bool) {
	s = strings.ToLower(strings.ReplaceAll(s, " ", ""))
	digits := strings.TrimRight(s, "abcdefghijklmnopqrstuvwxyz")
	unit, ok := map[string]string{"": "", "b": "", "k": "K", "kb": "K", "kib": "K", "m": "M", "mb": "M", "mib": "M", "g": "G", "gb": "G", "gib": "G", "t": "T", "tb": "T"}[s[len(digits):]]
	if _, err := strconv.ParseFloat(digits, 64); err != nil || !ok || strings.Trim(digits, "0123456789.") != "" {
		return "", false
	}
	return digits + unit, true
}

// devOther is a key that is an editor's, or has no counterpart.
func (i *importing) devOther(p pair) {
	switch why, hint, _ := workshop.InsteadOf(p.key); {
	case editorKeys[p.key]:
	case p.key == "privileged" && p.value.str() != "true":
	case p.key == "privileged":
		i.refuse(p.at, p.key, "no worker is (B2)", "leave it out; what needs it can't run in a worker")
	case p.key == "capAdd":
		for _, v := range p.value.each() {
			i.refuse(v.at, "the capability "+v.str(), "all are dropped (B1), and the firewall is outside of the worker", "leave it out")
		}
	case p.key == "securityOpt":
		for _, v := range p.value.each() {
			i.refuse(v.at, v.str(), "no-new-privileges and a seccomp profile are always set (B2)", "leave it out")
		}
	case p.key == "initializeCommand":
		i.refuse(p.at, p.key, "nothing in a file runs on the host (B43)", "read it, and run it yourself if it is needed")
	case strings.HasSuffix(p.key, "Command"):
		i.devCommand(p)
	case p.key == "features":
		for _, f := range p.value.pairsOf() {
			i.not(f.at, "the feature "+f.key, "it is installed into an image", "install it in a Dockerfile, and write build: {context: ./DIR}")
		}
	default:
		i.not(p.at, p.key, trimPeriod(why), hint)
	}
}

func trimPeriod(s string) string {
	s = strings.TrimSuffix(s, ".")
	if s == "" {
		return ""
	}
	return strings.ToLower(s[:1]) + s[1:]
}

// devCommand names a command, with the line that runs it in the worker.
func (i *importing) devCommand(p pair) {
	const whole = "COMMAND"
	hint, command := "run it when the worker is up", pasteable(commandText(p.value), whole)
	if command == whole {
		hint = "read it, and " + hint
	}
	i.not(p.at, p.key, "a workshop starts no command of its own", hint+": `workshop exec "+i.Worker+" -- "+command+"`")
}

// commandText is a command as words for a shell: text, or a list of words. Empty: it is
// neither.
func commandText(n *node) string {
	switch {
	case n.isScalar():
		return "sh -c " + shellquote.Quote(n.text)
	case n.kind == list:
		var words []string
		for _, x := range n.items {
			words = append(words, shellquote.Quote(x.str()))
		}
		return strings.Join(words, " ")
	}
	return ""
}

// pasteable is quoted text of the file in a command line that a person may paste, or
// other where it couldn't be read there as a whole.
func pasteable(quoted, other string) string {
	if quoted == "" || clip(quoted) != quoted || strings.ContainsRune(quoted, '`') || strings.ContainsFunc(quoted, visible.Hidden) {
		return other
	}
	return quoted
}
