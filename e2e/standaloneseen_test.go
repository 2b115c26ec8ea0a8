//go:build linux

package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/llmdo/workshop/internal/dev/testnet"
)

func differs[T any](got, want T) string {
	if fmt.Sprint(got) == fmt.Sprint(want) {
		return ""
	}
	return fmt.Sprintf("%v, want %v", got, want)
}

// standaloneProbes are made in a container at once: each start of a program there takes
// longer than all of them.
var standaloneProbes = []string{"mount /", "writable", "status CapBnd", "status CapEff", "status NoNewPrivs", "status Seccomp", "bind tcp 0.0.0.0:534", "interfaces",
	"connect " + testnet.Evil + ":9000 limit=100ms"}

// seen is what one of them saw.
func (m *standaloneModel) seen(service, probe string) string {
	m.Helper()
	id := m.Inspect(service).ID
	if m.probed[id] == nil {
		m.probed[id] = map[string]string{}
		for i, r := range m.Probe(service, standaloneProbes...) {
			m.probed[id][standaloneProbes[i]] = r.Seen
		}
	}
	return m.probed[id][probe]
}

func (m *standaloneModel) saw(service, probe, want string) string {
	m.Helper()
	if got := m.seen(service, probe); got != want {
		return fmt.Sprintf("%s: %s, want %s. ", probe, got, want)
	}
	return ""
}

func (m *standaloneModel) limit(service, name, want string) string {
	m.Helper()
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(m.Pid(service)), "limits"))
	if err != nil {
		return err.Error()
	}
	_, rest, _ := strings.Cut(string(b), name)
	if f := strings.Fields(rest); len(f) > 1 {
		return differs(f[:2], []string{want, want})
	}
	return "no " + name
}

// served is the port's address on its network, once something listens there.
func (m *standaloneModel) served() string {
	m.Helper()
	m.Eventually("the port is served", func() bool {
		status, _, _ := m.ask("GET", "/health")
		return status != 0
	})
	return net.JoinHostPort(m.inspect(modelPort).NetworkSettings.Networks[m.Project+"_port"].IPAddress, "8080")
}

// ofServer is a file of /proc of llama-server, once the program before it has become it.
func (m *standaloneModel) ofServer(name string) (text string) {
	m.Helper()
	read := func(name string) string {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", m.Pid(modelServer), name))
		if err != nil {
			m.Fatal(err)
		}
		return string(b)
	}
	m.Eventually("llama-server runs", func() bool { return strings.HasPrefix(read("cmdline"), "/app/llama-server\x00") })
	return read(name)
}

// listen makes a process of the server's container listen on one more port.
func (m *standaloneModel) listen(port int) error {
	_, err := exec.Command("docker", "exec", "-d", m.Inspect(modelServer).ID, "/usr/bin/perl", "-MIO::Socket::INET", "-e",
		fmt.Sprintf("my $l = IO::Socket::INET->new(LocalPort => %d, Listen => 5, ReuseAddr => 1) or exit 1; 1 while $l->accept", port)).Output()
	if err != nil {
		return err
	}
	problem := m.eventually(func() string {
		return differs(m.Probe(modelServer, fmt.Sprintf("connect 127.0.0.1:%d", port))[0].Seen, "open")
	})
	if problem != "" {
		return fmt.Errorf("the second listener: %s", problem)
	}
	return nil
}

// eventually asks until there is no problem, for two seconds.
func (m *standaloneModel) eventually(ask func() string) (problem string) {
	for end := time.Now().Add(2 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if problem = ask(); problem == "" || time.Now().After(end) {
			return problem
		}
	}
}
