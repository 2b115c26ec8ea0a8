//go:build linux

package ownengine

import (
	"encoding/json"
	"os"

	"github.com/llmdo/workshop/compose"
)

// NewDocker is a dockerd of this run, with its own socket, data and containerd, to be
// started in namespaces of its own: it changes the netfilter rules of its network.
func NewDocker(args ...string) (*Service, error) {
	dir, err := os.MkdirTemp("/tmp", "workshop-own-engine.")
	if err != nil {
		return nil, err
	}
	s := &Service{Dir: dir}
	s.Host = "unix://" + s.At("docker.sock")
	s.Argv = append([]string{
		"dockerd", "--host", s.Host, "--data-root", s.At("data"), "--exec-root", s.At("exec"), "--pidfile", s.At("docker.pid"),
		"--default-address-pool", "base=10.214.0.0/17,size=24", "--bip", "10.214.255.1/24", "--exec-opt", "native.cgroupdriver=cgroupfs",
	}, args...)
	return s, nil
}

// WithGVisor are the arguments that register a program as gVisor's runtime, by a file of
// that name; without flags, with those that it needs.
func WithGVisor(file, program string, flags ...string) ([]string, error) {
	if len(flags) == 0 {
		flags = []string{"--host-uds=open", "--network=sandbox"}
	}
	b, err := json.Marshal(map[string]any{"runtimes": map[string]any{compose.GVisorRuntime: map[string]any{"path": program, "runtimeArgs": flags}}})
	if err != nil {
		return nil, err
	}
	return []string{"--config-file", file}, os.WriteFile(file, b, 0o644)
}
