package docker

import (
	"slices"
	"testing"
)

// TestCommands: annotations that a runtime obeys are found, also ones of runtimes that come.
func TestCommands(t *testing.T) {
	harmless := map[string]string{
		"io.container.manager": "libpod", "io.kubernetes.cri-o.TTY": "false", "io.kubernetes.cri-o.Created": "2026-01-01T00:00:00Z", "io.podman.annotations.init": "FALSE",
		"org.opencontainers.image.base.name": "docker.io/library/debian:12", "com.docker.official-images.bashbrew.arch": "amd64",
	}
	if got := commands(harmless); got != nil {
		t.Errorf("harmless: %v", got)
	}
	var want []string
	for _, name := range []string{
		"dev.gvisor.internal.nvproxy", "io.containers.trace-syscall", "io.container.managers", "io.kubernetes.cri-o.userns-mode", "io.katacontainers.config.runtime.internetworking_model",
		"org.opencontainers.imagery", "org.systemd.property.MemoryMax", "run.oci.handler", "run.oci.hooks.stdout", "run.oci.keep_original_groups", "run.oci.pidfd_receiver", "run.oci.seccomp.plugins",
		"run.oci.seccomp_bpf_data", "seccomp.security.alpha.kubernetes.io/pod",
	} {
		harmless[name] = "1"
		want = append(want, name)
	}
	slices.Sort(want)
	if got := commands(harmless); !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}
