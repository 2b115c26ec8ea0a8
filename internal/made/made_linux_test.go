package made

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestLine: what is read here is what /proc says.
func TestLine(t *testing.T) {
	text, prefixed := strings.CutPrefix(Line(Mountinfo()), Prefix)
	if !prefixed || strings.Count(text, "\n") != 1 || !strings.HasSuffix(text, "\n") {
		t.Fatalf("not one line: %q", text)
	}
	r, err := Parse(strings.TrimSuffix(text, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil || r.BootID != strings.TrimSpace(string(boot)) || r.BootID == "" {
		t.Errorf("boot id %q, want %q %v", r.BootID, boot, err)
	}
	if d := cmp.Diff(ReadKernel(), r.Kernel); d != "" {
		t.Errorf("(-kernel +parsed)\n%s", d)
	}
	if is, err := ReadLimits(os.Getpid()); err != nil && r.Limits != nil || err == nil && *is != *r.Limits {
		t.Errorf("limits %+v, want %+v %v", r.Limits, is, err)
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

func BenchmarkLine(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		_ = Line(Mountinfo())
	}
}

func BenchmarkParse(b *testing.B) {
	b.ReportAllocs()
	text := strings.TrimSuffix(strings.TrimPrefix(Line(Mountinfo()), Prefix), "\n")
	for b.Loop() {
		if _, err := Parse(text); err != nil {
			b.Fatal(err)
		}
	}
}
