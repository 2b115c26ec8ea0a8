//go:build linux

// Command runtime is an OCI runtime that doesn't do what it is asked for: it runs runc
// after it has changed the container's configuration as the file "change" beside this
// program says (runtime-spec: config.md).
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

func main() {
	if err := run(os.Args); err != nil {
		fmt.Fprintln(os.Stderr, "runtime:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 3 && args[1] == "over" {
		return over(args[2])
	}
	if slices.Contains(args, "create") {
		if err := change(args); err != nil {
			return err
		}
	}
	for _, dir := range []string{"/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"} {
		_ = syscall.Exec(filepath.Join(dir, "runc"), append([]string{"runc"}, args[1:]...), os.Environ())
	}
	return fmt.Errorf("no runc")
}

// config is config.json; parts of it are replaced as a whole.
type config = map[string]any

func part(c any, path ...string) config {
	for _, name := range path {
		c = c.(config)[name]
	}
	return c.(config)
}

func each(list any, do func(config)) {
	for _, x := range list.([]any) {
		do(x.(config))
	}
}

// changes by name.
var changes = map[string]func(config){
	"nothing": func(config) {},
	"boot id": func(c config) { hook(c, "/proc/sys/kernel/random/boot_id") },
	"version": func(c config) { hook(c, "/proc/version") },
	"seccomp": func(c config) { delete(part(c, "linux"), "seccomp") },
	"filter": func(c config) {
		part(c, "linux")["seccomp"] = config{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": []any{config{"names": []any{"reboot"}, "action": "SCMP_ACT_ERRNO"}}}
	},
	"capability": func(c config) { part(c, "process", "capabilities")["bounding"] = []any{"CAP_SYS_ADMIN"} },
	"privileges": func(c config) { part(c, "process")["noNewPrivileges"] = false },
	"root":       func(c config) { part(c, "root")["readonly"] = false },
	"memory":     func(c config) { delete(part(c, "linux", "resources"), "memory") },
	"cpu":        func(c config) { delete(part(c, "linux", "resources"), "cpu") },
	"pids":       func(c config) { delete(part(c, "linux", "resources"), "pids") },
	"device": func(c config) {
		linux := part(c, "linux")
		devices, _ := linux["devices"].([]any)
		linux["devices"] = append(devices, config{"path": "/dev/kmsg", "type": "c", "major": 1, "minor": 11, "fileMode": 0o666, "uid": 0, "gid": 0})
	},
	"mount": func(c config) {
		c["mounts"] = append(c["mounts"].([]any), config{"destination": "/data", "type": "tmpfs", "source": "tmpfs", "options": []any{"nosuid", "nodev"}})
	},
	"writable": func(c config) {
		each(c["mounts"], func(m config) {
			if m["destination"] == "/opt/workshop" {
				m["options"] = []any{"rbind", "rprivate"}
			}
		})
	},
	"size": func(c config) {
		each(c["mounts"], func(m config) {
			if m["destination"] == "/tmp" {
				m["options"] = slices.DeleteFunc(m["options"].([]any), func(o any) bool { return strings.HasPrefix(o.(string), "size=") })
			}
		})
	},
	"ipc":    func(c config) { without(c, "ipc") },
	"net":    func(c config) { without(c, "network") },
	"user":   func(c config) { part(c, "process")["user"] = config{"uid": 0, "gid": 0} },
	"groups": func(c config) { part(c, "process", "user")["additionalGids"] = []any{0} },
	"masks":  func(c config) { part(c, "linux")["maskedPaths"] = []any{} },
	"sys":    func(c config) { part(c, "linux")["readonlyPaths"] = []any{} },
}

// without leaves the machine's namespace of a kind.
func without(c config, kind string) {
	linux := part(c, "linux")
	linux["namespaces"] = slices.DeleteFunc(linux["namespaces"].([]any), func(n any) bool { return n.(config)["type"] == kind })
}

// hook has a file of the kernel covered while the container is made: runc itself mounts
// nothing there.
func hook(c config, file string) {
	self, _ := os.Executable()
	c["hooks"] = config{"createContainer": []any{config{"path": self, "args": []any{self, "over", file}}}}
}

// over is that hook: its working directory is the root file system of the container.
func over(file string) error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return syscall.Mount(filepath.Join(filepath.Dir(self), "other"), filepath.Join(dir, file), "", syscall.MS_BIND, "")
}

func change(args []string) error {
	at := slices.Index(args, "--bundle") + 1
	if at == 0 || at == len(args) {
		return fmt.Errorf("no bundle in %q", args)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	name, err := os.ReadFile(filepath.Join(filepath.Dir(self), "change"))
	if err != nil {
		return err
	}
	do := changes[string(name)]
	if do == nil {
		return fmt.Errorf("no change %q", name)
	}
	file := filepath.Join(args[at], "config.json")
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var c config
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber() // arguments of seccomp have 64 bits
	if err := d.Decode(&c); err != nil {
		return err
	}
	do(c)
	if b, err = json.Marshal(c); err != nil {
		return err
	}
	return os.WriteFile(file, b, 0o600)
}
