package made

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fields is a line of fields.
func fields(all ...string) string {
	return strings.ReplaceAll(strings.Join(all, endField)+endField, "\n", endLine)
}

// TestParse_Fields: every field becomes what is compared.
func TestParse_Fields(t *testing.T) {
	mountinfo := "1 0 0:1 / / ro - overlay o rw\n2 1 0:2 / /tmp rw,nosuid,nodev,noexec - tmpfs t rw,size=64k\n3 1 0:3 /null /proc/keys rw - devtmpfs d rw\n"
	got, err := Parse(fields("mountinfo="+mountinfo, "status=Name:\ta\nUid:\t1\t1\t1\t1\n", "limits=1024 -1 0.5 64", "rlimit=nofile 1 2",
		"exists=/proc/kcore", "exists=/proc/keys", "device=null", "device=tty", "interface=lo", "socket=AF_ALG EPERM", "boot_id=b\n", "version=v\n",
		"uid_map=         0       1000          1\n 1 2 3\n", "gid_map=0 0 1\n", "namespace=net net:[1]", "end="))
	if err != nil {
		t.Fatal(err)
	}
	want := &Report{
		Kernel:  Kernel{BootID: "b", Version: "v", UIDMap: "0 1000 1, 1 2 3", GIDMap: "0 0 1", Namespaces: map[string]string{"net": "net:[1]"}},
		Status:  map[string]string{"Uid": "1 1 1 1"},
		Rlimits: map[string][2]uint64{"nofile": {1, 2}},
		Limits:  &Limits{Memory: 1024, Swap: -1, CPUs: 0.5, PIDs: 64},
		Mounts: []Mount{
			{Target: "/", Type: "overlay", ReadOnly: true},
			{Target: "/tmp", Type: "tmpfs", NoSetuid: true, NoDevice: true, NoExec: true, Size: 64 << 10},
			{Target: "/proc/keys", Type: "devtmpfs", Device: "null", Null: true},
		},
		Unmasked: []string{"/proc/kcore"}, Devices: []string{"null", "tty"}, Interfaces: []string{"lo"},
		Sockets: map[string]string{"AF_ALG": "EPERM"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestParse(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"empty", "", `it is cut at ""`},
		{"cut in a field", "exists=/proc/kc", `it is cut at "exists=/proc/kc"`},
		{"cut between fields", fields("exists=/proc/kcore"), `it is cut at ""`},
		{"unknown", fields("boot=b", "end="), `"boot=b": unknown`},
		{"limits", fields("limits=1 2", "end="), `"limits=1 2": not four numbers`},
		{"a limit", fields("limits=1 2 x 3", "end="), `"limits=1 2 x 3": strconv.ParseFloat: parsing "x": invalid syntax`},
		{"an rlimit", fields("rlimit=nofile 1 max", "end="), `"rlimit=nofile 1 max": strconv.ParseUint: parsing "max": invalid syntax`},
		{"too long", fields("boot_id=" + strings.Repeat("x", MaxLine)), "longer than 262144 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := Parse(tt.text); err == nil || err.Error() != tt.want {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

// FuzzParse: no text panics, and none that is cut is taken.
func FuzzParse(f *testing.F) {
	f.Add(fields("mountinfo=1 0 0:1 / / ro - overlay o rw\n", "exists=/proc/keys", "limits=1 2 0.5 3", "rlimit=core 0 0", "end="))
	f.Fuzz(func(t *testing.T, text string) {
		if r, err := Parse(text); (err == nil) != (r != nil) || err == nil && !strings.Contains(text, "end=") {
			t.Errorf("%+v, %v", r, err)
		}
	})
}
