//go:build linux

package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/llmdo/workshop/e2e/scenario"
	"github.com/llmdo/workshop/internal/dev/testnet"
)

// standaloneHas is what differs between the two containers.
var standaloneHas = map[string]struct {
	uid, writable, mounts string
	limits                scenario.Limits
	logSize               int64
	logFiles              int
}{
	modelServer: {"65530", "/run/local-llm /tmp", "/models ro\n/run/local-llm rw,nosuid,nodev,noexec tmpfs size=64k,mode=750,uid=65530,gid=65530\n/tmp rw,nosuid,nodev,noexec tmpfs size=65536k,mode=700,uid=65530,gid=65530",
		scenario.Limits{Memory: 8 << 30, CPUs: 2, Pids: 256}, 10 << 20, 3},
	modelPort: {"65531", "", "/run/local-llm ro tmpfs size=64k,mode=750,uid=65530,gid=65530",
		scenario.Limits{Memory: 64 << 20, CPUs: 0.5, Pids: 8}, 1 << 20, 2},
}

// standaloneChecks are what has to be so, each by what it is for. "" is fine.
var standaloneChecks = map[string]func(m *standaloneModel, service string) string{
	"image": func(m *standaloneModel, service string) string {
		if got := m.inspect(service).Config.Image; got != m.image {
			return fmt.Sprintf("runs %s, want %s", got, m.image)
		}
		return m.defaultImages()
	},
	"user": func(m *standaloneModel, service string) string {
		want := standaloneHas[service].uid
		return differs(strings.Fields(m.ProcStatus(service, "Uid")), []string{want, want, want, want})
	},
	"group": func(m *standaloneModel, service string) string {
		return differs(strings.Fields(m.ProcStatus(service, "Gid"))[0], "65530")
	},
	"root": func(m *standaloneModel, service string) string { return m.saw(service, "mount /", "ro") },
	"writable": func(m *standaloneModel, service string) string {
		var got []string
		for mount := range strings.SplitSeq(m.seen(service, "writable"), ",") {
			if mount = strings.TrimSpace(mount); mount != "" && mount != "/dev/mqueue" && !strings.HasPrefix(mount, "/proc") {
				got = append(got, mount)
			}
		}
		slices.Sort(got)
		return differs(strings.Join(got, " "), standaloneHas[service].writable)
	},
	"mounts": func(m *standaloneModel, service string) string {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", m.Pid(service)))
		if err != nil {
			return err.Error()
		}
		var got []string
		for line := range strings.Lines(string(b)) {
			f := strings.Fields(line)
			switch options := strings.TrimSuffix(f[5], ",relatime"); {
			case f[4] == "/models":
				got = append(got, f[4]+" "+options[:2])
			case f[4] == "/run/local-llm" && service == modelPort: // of what is read-only, engines drop the rest
				got = append(got, f[4]+" "+options[:2]+" "+f[len(f)-3]+" "+strings.TrimPrefix(f[len(f)-1], "rw,"))
			case f[4] == "/tmp" || f[4] == "/run/local-llm":
				got = append(got, f[4]+" "+options+" "+f[len(f)-3]+" "+strings.TrimPrefix(f[len(f)-1], "rw,"))
			}
		}
		slices.Sort(got)
		return differs(strings.Join(got, "\n"), standaloneHas[service].mounts)
	},
	"capabilities": func(m *standaloneModel, service string) string {
		return m.saw(service, "status CapBnd", zero) + m.saw(service, "status CapEff", zero)
	},
	"privileges": func(m *standaloneModel, service string) string { return m.saw(service, "status NoNewPrivs", "1") },
	"seccomp":    func(m *standaloneModel, service string) string { return m.saw(service, "status Seccomp", "2") },
	"low ports": func(m *standaloneModel, service string) string {
		return m.saw(service, "bind tcp 0.0.0.0:534", "EACCES")
	},
	"memory": func(m *standaloneModel, service string) string {
		return differs(m.Limits(service).Memory, standaloneHas[service].limits.Memory)
	},
	"swap": func(m *standaloneModel, service string) string { return differs(m.Limits(service).Swap, 0) },
	"processors": func(m *standaloneModel, service string) string {
		return differs(m.Limits(service).CPUs, standaloneHas[service].limits.CPUs)
	},
	"processes": func(m *standaloneModel, service string) string {
		return differs(m.Limits(service).Pids, standaloneHas[service].limits.Pids)
	},
	"core": func(m *standaloneModel, service string) string { return m.limit(service, "Max core file size", "0") },
	"files": func(m *standaloneModel, service string) string {
		if service == modelServer {
			return ""
		}
		return m.limit(service, "Max open files", "1024")
	},
	"log": func(m *standaloneModel, service string) string {
		l, want := m.Inspect(service).Log, standaloneHas[service]
		return differs(l.MaxSize, want.logSize) + differs(l.MaxFiles, want.logFiles)
	},
	"restart": func(m *standaloneModel, service string) string {
		return differs(m.inspect(service).HostConfig.RestartPolicy.Name, "unless-stopped")
	},
	// The command that the engine runs, now. TestStandaloneModel waits for the engine's word.
	"health": func(m *standaloneModel, service string) string {
		h := m.inspect(service).Config.Healthcheck
		if h == nil || len(h.Test) < 2 || h.Test[0] != "CMD" {
			return fmt.Sprintf("checked by %v", h)
		}
		return m.eventually(func() string {
			if out, err := exec.Command("docker", append([]string{"exec", m.Inspect(service).ID}, h.Test[1:]...)...).CombinedOutput(); err != nil {
				return fmt.Sprintf("%v %s", err, out)
			}
			return ""
		})
	},
	"published": func(m *standaloneModel, service string) string {
		var got, want []string
		for port, at := range m.inspect(service).NetworkSettings.Ports {
			for _, a := range at {
				got = append(got, a.HostIP+":"+a.HostPort+" "+port)
			}
		}
		if service == modelPort {
			want = []string{"127.0.0.1:8080 8080/tcp"}
		}
		return differs(got, want)
	},
	"network": func(m *standaloneModel, service string) string {
		if service == modelPort {
			return ""
		}
		return m.saw(service, "interfaces", "lo") + m.saw(service, "connect "+testnet.Evil+":9000 limit=100ms", "ENETUNREACH")
	},
	// A listener that was not there before is reached from nowhere.
	"second listener": func(m *standaloneModel, service string) string {
		if service == modelPort {
			return ""
		}
		if err := m.listen(9000); err != nil {
			return err.Error()
		}
		for _, s := range []string{modelServer, modelPort} {
			c, there := m.Containers()[s]
			if !there {
				continue
			}
			for _, n := range m.inspect(c.Service).NetworkSettings.Networks {
				if n.IPAddress == "" {
					continue
				}
				address := net.JoinHostPort(n.IPAddress, "9000")
				if conn, err := net.DialTimeout("tcp", address, time.Second); err == nil {
					conn.Close()
					return "this machine reaches it at " + address
				}
				if got := m.Control("connect " + address + " limit=500ms")[0].Seen; got == "open" {
					return "another container reaches it at " + address
				}
			}
		}
		return ""
	},
	"flags": func(m *standaloneModel, service string) string {
		if service == modelPort {
			return ""
		}
		return differs(strings.ReplaceAll(strings.TrimSuffix(m.ofServer("cmdline"), "\x00"), "\x00", " "),
			"/app/llama-server --host /run/local-llm/server.sock --model /models/model.gguf --ctx-size 8192 --threads 2 --offline --no-ui --no-slots --cors-origins localhost")
	},
	"environment": func(m *standaloneModel, service string) string {
		if service == modelPort {
			return ""
		}
		environ := "\x00" + m.ofServer("environ")
		for v := range strings.SplitSeq(environ, "\x00") {
			if strings.HasPrefix(v, "LLAMA_") {
				return "has " + v
			}
		}
		if !strings.Contains(environ, "\x00HOME=/tmp\x00") {
			return "HOME isn't /tmp"
		}
		return ""
	},
	"neighbours": func(m *standaloneModel, service string) string {
		if service == modelServer {
			return ""
		}
		address := m.served()
		try := []string{"run", "--rm", "--network", m.Project + "_port", "--entrypoint", "/usr/bin/perl", m.image, "-MIO::Socket::INET", "-e",
			`print IO::Socket::INET->new(PeerAddr => "` + address + `", Timeout => 1) ? "open" : "shut"`}
		if out, err := exec.Command("docker", try...).CombinedOutput(); err != nil || string(out) != "shut" {
			return fmt.Sprintf("a container of its network finds %s: %s %v", address, out, err)
		}
		if got := m.Control("connect " + address + " limit=500ms")[0].Seen; got == "open" {
			return "a container of another network reaches " + address
		}
		return ""
	},
	// A machine that sends this one packets for the container: engines before Docker 28 forward
	// them to a published port, whichever address that is published at.
	"routed": func(m *standaloneModel, service string) string {
		if service == modelServer {
			return ""
		}
		address := m.served()
		err := m.Internet.NS().Do(func() error {
			conn, err := net.DialTimeout("tcp", address, 500*time.Millisecond)
			if err == nil {
				conn.Close()
			}
			return err
		})
		if err == nil {
			return "another machine reaches " + address
		}
		return ""
	},
	// Its own address is all that it has: no way on, and no names.
	"way out": func(m *standaloneModel, service string) string {
		if service == modelServer {
			return ""
		}
		m.Internet.Reset()
		problem := ""
		for _, r := range m.Probe(service, "connect "+testnet.Evil+":9000 limit=200ms", "udp "+testnet.Evil+":5000 limit=200ms") {
			if r.Seen != "TIMEOUT" && r.Seen != "EHOSTUNREACH" { // while the gateway is looked for, which nobody is, and then
				problem += fmt.Sprintf("%s: %s. ", r.Probe, r.Seen)
			}
		}
		return problem + differs(m.Internet.Packets("tcp", testnet.Evil, 0)+m.Internet.Packets("udp", testnet.Evil, 0), 0)
	},
	"names": func(m *standaloneModel, service string) string {
		if service == modelServer {
			return ""
		}
		return differs(m.inspect(service).HostConfig.DNS, []string{"127.0.0.1"})
	},
	"masquerade": func(m *standaloneModel, service string) string {
		if service == modelServer {
			return ""
		}
		out, err := exec.Command("docker", "network", "inspect", "-f", `{{index .Options "com.docker.network.bridge.enable_ip_masquerade"}} {{.EnableIPv6}} {{.Driver}}`, m.Project+"_port").CombinedOutput()
		if err != nil {
			return string(out)
		}
		return differs(strings.TrimSpace(string(out)), "false false bridge")
	},
	"answers": func(m *standaloneModel, _ string) string {
		return m.eventually(func() string {
			status, body, _ := m.ask("POST", "/v1/chat/completions", "Authorization: Bearer any")
			if status != 200 {
				return fmt.Sprintf("%d %s", status, body)
			}
			return ""
		})
	},
	"other hosts": func(m *standaloneModel, _ string) string {
		m.served()
		status, _, _ := m.ask("GET", "/health", "Host: page.example.org:8080")
		return differs(status, 403)
	},
	"origins": func(m *standaloneModel, _ string) string {
		m.Eventually("the model answers", m.answers)
		_, _, head := m.ask("GET", "/health", "Origin: https://page.example.org")
		return differs(head.Get("Access-Control-Allow-Origin"), "")
	},
}

func (m *standaloneModel) check(name, service string) string {
	m.Helper()
	return standaloneChecks[name](m, service)
}

// defaultImages are by digest, where the user names none.
func (m *standaloneModel) defaultImages() string {
	cmd := exec.Command(m.compose, "-f", m.file, "config")
	cmd.Dir = m.Root
	out, err := cmd.CombinedOutput()
	images := regexp.MustCompile(`(?m)^ +image: (.*)$`).FindAllStringSubmatch(string(out), -1)
	for _, i := range images {
		if !regexp.MustCompile(`^ghcr\.io/ggml-org/llama\.cpp:[\w-]+@sha256:[0-9a-f]{64}$`).MatchString(i[1]) {
			return "the default is " + i[1]
		}
	}
	if err != nil || len(images) != 2 {
		return fmt.Sprintf("%v: %s", err, out)
	}
	return ""
}

// checkAll are the problems of both containers.
func (m *standaloneModel) checkAll() map[string]string {
	m.Helper()
	problems := map[string]string{}
	for name := range standaloneChecks {
		for _, service := range []string{modelServer, modelPort} {
			if problem := m.check(name, service); problem != "" {
				problems[name+" of "+service] = problem
			}
		}
	}
	return problems
}
