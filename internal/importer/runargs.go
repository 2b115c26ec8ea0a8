package importer

import (
	"strings"
)

// runArg is what is done with a flag of `docker run`.
type runArg struct {
	value bool // it takes one
	why   string
}

// runArgs are those that open a boundary, or are imported.
var runArgs = map[string]runArg{
	"--privileged": {false, "no worker is (B2)"}, "--network": {true, "workers have a network namespace of their own (B20)"}, "--net": {true, "workers have a network namespace of their own (B20)"},
	"--pid": {true, "workers have no namespace of the host (B6)"}, "--ipc": {true, "workers have no namespace of the host (B6)"}, "--uts": {true, "workers have no namespace of the host (B6)"},
	"--userns": {true, "workers have no namespace of the host (B6)"}, "--cgroupns": {true, "workers have no namespace of the host (B6)"},
	"--cap-add": {true, "all capabilities are dropped (B1), and the firewall is outside of the worker"}, "--security-opt": {true, "no-new-privileges and a seccomp profile are always set (B2)"},
	"--device": {true, "workers have no devices (B6)"}, "--gpus": {true, "workers have no devices (B6)"}, "-v": {true, ""}, "--volume": {true, ""}, "--mount": {true, ""},
	"-m": {true, ""}, "--memory": {true, ""}, "--cpus": {true, ""}, "--shm-size": {true, ""}, "-e": {true, ""}, "--env": {true, ""}, "-p": {true, ""}, "--publish": {true, ""},
	"-u": {true, ""}, "--user": {true, ""}, "--cap-drop": {true, ""}, "--init": {}, "--rm": {}, "--name": {true, ""}, "--hostname": {true, ""}, "-h": {true, ""},
}

// devArgs reads the arguments of `docker run`.
func (i *importing) devArgs(n *node) {
	items := n.each()
	for k := 0; k < len(items); k++ {
		at := items[k].at
		flag, value, has := strings.Cut(items[k].str(), "=")
		known, ok := runArgs[flag]
		if ok && known.value && !has && k+1 < len(items) {
			k++
			value = items[k].str()
		}
		if known.why != "" {
			i.refuse(at, strings.TrimSpace(flag+" "+value), known.why, "leave it out")
			continue
		}
		i.devArg(at, items[k], flag, value)
	}
}

func (i *importing) devArg(at place, item *node, flag, value string) {
	c := &i.Container
	size, isSize := sizeText(value)
	switch flag {
	case "--init", "--rm", "--name", "--hostname", "-h", "--cap-drop":
	case "-m", "--memory":
		if isSize {
			c.Memory = size
		}
	case "--shm-size":
		if isSize {
			c.Shm.Text = size
		}
	case "--cpus":
		if strings.Trim(value, "0123456789.") == "" && value != "" {
			c.CPU = value
		}
	case "-v", "--volume":
		source, rest, _ := strings.Cut(value, ":")
		target, options, _ := strings.Cut(rest, ":")
		if !strings.ContainsAny(source, "/.~$") {
			i.not(at, "the volume "+clip(source), "there are no named volumes", "write a directory of the project: mounts: [./DIR:/workspace/DIR:rw]")
			return
		}
		if b, ok := i.bind(i.devPath(source), i.devPath(target), ".", strings.Contains(options, "ro"), at); ok {
			i.addBind(c, b, at)
		}
	case "--mount":
		i.devMount(&node{kind: text, text: value, at: item.at})
	case "-e", "--env":
		name, text, ok := strings.Cut(value, "=")
		if translated, fine := i.devValue(text); fine && ok {
			i.env(c, name, translated, at)
		} else {
			i.not(at, "the variable "+clip(name), "", "write env: {"+clip(name)+": \"${"+clip(name)+"}\"}")
		}
	case "-p", "--publish":
		i.devPort(&node{kind: text, text: value, at: at})
	case "-u", "--user":
		i.devUser(pair{key: flag, at: at, value: &node{kind: text, text: value, at: at}})
	default:
		i.not(at, "the argument "+clip(flag), "", "")
	}
}
