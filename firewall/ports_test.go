package firewall

import (
	"strings"
	"testing"
)

func TestParsePorts(t *testing.T) {
	for in, want := range map[string]string{
		"22": "22", "1": "1", "65535": "65535", "8000-8010": "8000-8010", "5-5": "5",
		"443,80": "80,443", "22, 23": "22-23", "1-10,5-20": "1-20", "1-10,11": "1-11", "1-65535,80": "1-65535", "22,22": "22",
	} {
		if p, err := ParsePorts(in); err != nil || FormatPorts(p) != want {
			t.Errorf("%q: %q, %v", in, FormatPorts(p), err)
		}
	}
	for _, in := range []string{"", ",", "22,", "0", "65536", "-1", "+22", " ", "022", "0x16", "22-", "-22", "30-20", "1-2-3", "a", "99999999999", "٢٢", "22/tcp", strings.Repeat("1,", 2000) + "1"} {
		if p, err := ParsePorts(in); err == nil {
			t.Errorf("%.20q was accepted as %v", in, p)
		}
	}
}

func TestPortsMeant(t *testing.T) {
	for in, want := range map[string]string{
		"443/tcp": "443", "https": "443", "HTTP": "80", "ssh": "22", "80,443/TCP": "80,443", "8000-8010/tcp": "8000-8010", "http, https": "80,443",
		"443": "", "": "", "443/udp": "", "database": "", "70000/tcp": "", "/tcp": "", "443/": "", "https/udp": "",
	} {
		if got := PortsMeant(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestSubtractPorts(t *testing.T) {
	for _, c := range []struct{ a, b, want string }{
		{"1-65535", "53,80,443", "1-52,54-79,81-442,444-65535"},
		{"53", "53", ""}, {"1-10", "5-20", "1-4"}, {"5-10", "1-7", "8-10"}, {"1-10", "20", "1-10"}, {"1-10,20-30", "8-22", "1-7,23-30"},
		{"65535", "65535", ""}, {"1-65535", "1-65535", ""}, {"65534-65535", "65534", "65535"},
	} {
		if got := FormatPorts(SubtractPorts(ports(t, c.a), ports(t, c.b))); got != c.want {
			t.Errorf("%s - %s: %q, want %q", c.a, c.b, got, c.want)
		}
	}
}

func TestRedirectPorts(t *testing.T) {
	p := RoomPolicy{Allow: rulesOf(t, "a.example", "b.example@22", "10.0.0.0/8@80,5432,8000-8010"), Deny: rulesOf(t, "c.example@99")}
	if got := FormatPorts(RedirectPorts(p)); got != "22,5432,8000-8010" {
		t.Error(got)
	}
}
