package engine

import (
	"strings"
	"testing"
)

func TestGVisorFlags(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"--host-uds=open --network=sandbox", ""},
		{"-host-uds=open", ""},
		{"--host-uds=open --network=sandbox --platform=kvm --directfs=false --oci-seccomp --systemd-cgroup=true", ""},
		{"", "no --host-uds=open"},
		{"--network=sandbox", "no --host-uds=open"},
		{"--host-uds=all --network=host", "--host-uds=all, --network=host"},
		{"--host-uds=open --host-uds=create", "--host-uds=create"},
		{"--host-uds=open --ignore-cgroups", "--ignore-cgroups"},
		{"--host-uds=open --allow-flag-override=true --net-raw", "--allow-flag-override=true, --net-raw"},
		{"--host-uds=open --overlay2=all:memory --file-access-mounts=exclusive", "--overlay2=all:memory, --file-access-mounts=exclusive"},
		{"--host-uds=open --TESTONLY-unsafe-nonroot --profile", "--TESTONLY-unsafe-nonroot, --profile"},
		{"--host-uds open", "--host-uds, open"},
		{"--host-uds=open network=sandbox", "network=sandbox"},
	} {
		t.Run(tt.args, func(t *testing.T) {
			if got := strings.Join(badGVisorFlags(strings.Fields(tt.args)), ", "); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
