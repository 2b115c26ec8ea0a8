package made

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRead: what is read here is what /proc says, and survives its line.
func TestRead(t *testing.T) {
	r := Read()
	line := r.Line()
	text, prefixed := strings.CutPrefix(line, Prefix)
	if !prefixed || strings.Count(line, "\n") != 1 || !strings.HasSuffix(line, "\n") {
		t.Fatalf("not one line: %q", line)
	}
	got, err := Parse(strings.TrimSuffix(text, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(r, got); d != "" {
		t.Errorf("(-read +parsed)\n%s", d)
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil || r.BootID != strings.TrimSpace(string(boot)) || r.BootID == "" {
		t.Errorf("boot id %q, want %q %v", r.BootID, boot, err)
	}
	for _, field := range StatusFields {
		if _, ok := r.Status[field]; !ok {
			t.Errorf("no %s", field)
		}
	}
	if !slices.ContainsFunc(r.Mounts, func(m Mount) bool { return m.Target == "/proc" && m.Type == "proc" }) {
		t.Errorf("no /proc among %+v", r.Mounts)
	}
	if net, err := os.Readlink("/proc/self/ns/net"); err != nil || r.Namespaces["net"] != net {
		t.Errorf("net namespace %q, want %q %v", r.Namespaces["net"], net, err)
	}
	if !slices.Contains(r.Devices, "null") || slices.Contains(r.Devices, "fd") {
		t.Errorf("devices %q", r.Devices)
	}
	if len(r.Sockets) != len(families) || len(r.Rlimits) != len(rlimits) || !strings.HasPrefix(r.Version, "Linux version ") || r.UIDMap == "" {
		t.Errorf("%+v", r)
	}
}

func TestParse(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"empty", "", "unexpected end of JSON input"},
		{"null", "null", "it is null"},
		{"cut", `{"boot_id":"`, "unexpected end of JSON input"},
		{"too long", `{"boot_id":"` + strings.Repeat("x", MaxLine) + `"}`, "longer than 262144 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := Parse(tt.text); err == nil || err.Error() != tt.want {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

func BenchmarkRead(b *testing.B) {
	for b.Loop() {
		_ = Read().Line()
	}
}
