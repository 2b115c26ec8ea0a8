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
