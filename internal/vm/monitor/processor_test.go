package monitor

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// B13: what isn't the processor's own virtualization is emulation, and said to be.
func TestHardware(t *testing.T) {
	const pvm = "/dev/kvm is of the module kvm_pvm, which is emulation: this machine is virtual itself, and its processor has no virtualization to pass on"
	missing, closed := &fs.PathError{Op: "open", Path: "/dev/kvm", Err: fs.ErrNotExist}, &fs.PathError{Op: "open", Path: "/dev/kvm", Err: fs.ErrPermission}
	for _, c := range []struct {
		name string
		p    Processor
		want string // empty: hardware
	}{
		{"Intel", Processor{Modules: []string{"kvm_intel"}, Flags: []string{"fpu", "vmx"}}, ""},
		{"AMD", Processor{Modules: []string{"kvm_amd"}, Flags: []string{"svm"}}, ""},
		{"pvm", Processor{Modules: []string{"kvm_pvm"}, Flags: []string{"vmx", "svm"}},
			pvm},
		{"pvm and Intel", Processor{Modules: []string{"kvm_intel", "kvm_pvm"}, Flags: []string{"vmx"}},
			pvm},
		{"nothing", Processor{Device: missing}, "there is no /dev/kvm, and neither module kvm_intel nor kvm_amd is loaded"},
		{"no device", Processor{Device: missing, Modules: []string{"kvm_intel"}, Flags: []string{"vmx"}}, "open /dev/kvm: file does not exist"},
		{"another's", Processor{Device: closed, Modules: []string{"kvm_intel"}, Flags: []string{"vmx"}}, "/dev/kvm is not yours to open"},
		{"unknown", Processor{Flags: []string{"vmx"}}, "what serves /dev/kvm is neither module kvm_intel nor kvm_amd"},
		{"flag of the other", Processor{Modules: []string{"kvm_amd"}, Flags: []string{"vmx"}}, "the processor has no svm"},
		{"no flag", Processor{Modules: []string{"kvm_intel"}}, "the processor has no vmx"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ""
			if missing := c.p.Hardware("me"); missing != nil {
				got = strings.TrimPrefix(missing.Why, "no virtual machines in hardware (B13): ")
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A line for root is one that can be pasted.
func TestHardwareForRoot(t *testing.T) {
	closed := Processor{Device: fs.ErrPermission, Modules: []string{"kvm_amd"}, Flags: []string{"svm"}}
	if got := closed.Hardware("me").Root; got != "usermod -aG kvm me" {
		t.Errorf("got %q", got)
	}
}

func TestReadProcessor(t *testing.T) {
	const cpu = "processor\t: %\nmodel name\t: Some: Processor\nflags\t\t: fpu vmx\nbogomips\t: 4199.99\n\n"
	root := fstest.MapFS{
		"proc/cpuinfo":                    {Data: []byte(cpu + cpu)},
		"sys/module/kvm/parameters/x":     {},
		"sys/module/kvm_intel/refcnt":     {},
		"sys/module/kvm_intel_other/x":    {},
		"sys/module/kvm_pvm_but_not/kvm_": {},
	}
	got, err := ReadProcessor(root, nil)
	if diff := cmp.Diff(Processor{Modules: []string{"kvm_intel"}, Flags: []string{"fpu", "vmx"}, TSCkHz: 2099995}, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	for _, mips := range []string{"-1", "NaN", "1e300", "many", ""} {
		root["proc/cpuinfo"] = &fstest.MapFile{Data: []byte("bogomips\t: " + mips + "\n")}
		if got, err := ReadProcessor(root, nil); got.TSCkHz != 0 || err != nil {
			t.Errorf("bogomips %q: %d kHz, %v", mips, got.TSCkHz, err)
		}
	}
}
