package dns

import (
	"net/netip"
	"testing"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/policy"
)

// TestTTLClamps: an upstream decides neither that the guard never asks again nor
// that a client keeps an address for longer than its pin (D10).
func TestTTLClamps(t *testing.T) {
	addrs := []netip.Addr{netip.MustParseAddr("198.51.100.10")}
	for ttl, want := range map[uint32]time.Duration{0: minTTL, 300: 300 * time.Second, 1<<31 - 1: maxTTL} {
		a := answer(result{addrs: addrs, ttl: ttl})
		if left := time.Until(a.Expires); left > want || left < want-500*time.Millisecond {
			t.Errorf("TTL %d: kept for %v, want %v", ttl, left, want)
		}
		s := &Server{Pins: &Pins{}, Answer: func(*firewall.Matcher, firewall.Name, netip.Addr) firewall.Decision {
			return firewall.Decision{Allowed: true}
		}}
		name, err := firewall.ParseName("allowed.example.org")
		if err != nil {
			t.Fatal(err)
		}
		if r := s.found(&policy.Room{}, name, a); r.ttl < 1 || r.ttl > maxClientTTL {
			t.Errorf("TTL %d: the client hears %d", ttl, r.ttl)
		}
	}
}
