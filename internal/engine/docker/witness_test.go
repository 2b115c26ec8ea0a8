package docker

import (
	"net/netip"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/llmdo/workshop/internal/engine"
)

func TestLinks(t *testing.T) {
	got := links(&container.NetworkSettings{Networks: map[string]*network.EndpointSettings{
		"b":       {NetworkID: "0123456789abcdef", IPAddress: "10.213.0.2", GlobalIPv6Address: "2001:db8::2"},
		"a":       {NetworkID: "abcdef0123456789", GlobalIPv6Address: "2001:db8::3"},
		"none":    {NetworkID: "ffffffffffffffff"},
		"stopped": {},
		"nothing": nil,
	}})
	want := []engine.Link{
		{Bridge: "br-abcdef012345", Addr6: netip.MustParseAddr("2001:db8::3")},
		{Bridge: "br-0123456789ab", Addr4: netip.MustParseAddr("10.213.0.2"), Addr6: netip.MustParseAddr("2001:db8::2")},
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Error(diff)
	}
	if links(nil) != nil {
		t.Error("without settings")
	}
}

// TestAsPodmanShows: what podman shows is judged as what Docker would show.
func TestAsPodmanShows(t *testing.T) {
	all := []string{"AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "NET_RAW", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"}
	for _, tt := range []struct {
		name      string
		add, drop []string
		pid, ipc  string
		want      engine.Settings
	}{
		{"a worker", nil, all, "private", "shareable", engine.Settings{CapDrop: []string{"ALL"}, Namespaces: map[string]string{"pid": "", "ipc": "private", "uts": ""}}},
		{"one capability kept", nil, all[1:], "private", "private", engine.Settings{CapAdd: []string{"CAP_AUDIT_WRITE"}, CapDrop: []string{"ALL"}, Namespaces: map[string]string{"pid": "", "ipc": "private", "uts": ""}}},
		{"one added, namespaces of the host", []string{"SYS_ADMIN"}, all, "host", "host", engine.Settings{CapAdd: []string{"CAP_SYS_ADMIN"}, CapDrop: []string{"ALL"}, Namespaces: map[string]string{"pid": "host", "ipc": "host", "uts": ""}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := engine.Witness{Settings: &engine.Settings{Namespaces: map[string]string{"pid": tt.pid, "ipc": tt.ipc, "uts": "private"}}}
			asPodmanShows(&w, &container.HostConfig{CapAdd: tt.add, CapDrop: tt.drop})
			if diff := cmp.Diff(&tt.want, w.Settings, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
