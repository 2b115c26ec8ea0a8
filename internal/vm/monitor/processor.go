package monitor

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Processor is what this machine says of itself that KVM depends on.
type Processor struct {
	// Device is the error of opening /dev/kvm; nil: none.
	Device error
	// Modules are the kernel's modules of KVM, such as kvm_intel.
	Modules []string
	// Flags are those of the processor, by the kernel's names.
	Flags []string
	// TSCkHz is the rate of the time stamp counter; zero: unknown.
	TSCkHz int
}

// kvmModules are the kernel's modules that serve /dev/kvm on x86. kvm_pvm runs guests without
// the processor's virtualization, in user mode.
var kvmModules = []string{"kvm_intel", "kvm_amd", "kvm_pvm"}

// ReadProcessor reads it from the files of a machine.
func ReadProcessor(root fs.FS, device error) (Processor, error) {
	p := Processor{Device: device}
	for _, name := range kvmModules {
		if _, err := fs.Stat(root, "sys/module/"+name); err == nil {
			p.Modules = append(p.Modules, name)
		}
	}
	text, err := fs.ReadFile(root, "proc/cpuinfo")
	if err != nil {
		return p, err
	}
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(line, ":")
		switch key = strings.TrimSpace(key); {
		case key == "flags" && p.Flags == nil:
			p.Flags = strings.Fields(value)
		case key == "bogomips" && p.TSCkHz == 0:
			// Linux computes it as kHz of the counter by 500 (arch/x86/kernel/tsc.c).
			if mips, err := strconv.ParseFloat(strings.TrimSpace(value), 64); err == nil && mips > 0 && mips < 1e6 {
				p.TSCkHz = int(math.Round(mips * 500))
			}
		}
	}
	return p, nil
}

// MissingError is what a machine lacks.
type MissingError struct {
	Why string
	// Hint is what a person can do, and Root a line to run as root; empty: nothing here.
	Hint, Root string
}

// Error implements error.
func (e *MissingError) Error() string { return e.Why }

// Hardware returns what is missing unless KVM on this machine is the processor's own
// virtualization, as far as can be told without booting a guest; nil: nothing. user is who
// would run it.
func (p Processor) Hardware(user string) *MissingError {
	const firmware = "turn virtualization on in the firmware"
	own := map[string]string{"kvm_intel": "vmx", "kvm_amd": "svm"}
	flag := ""
	for _, name := range p.Modules {
		if flag == "" {
			flag = own[name]
		}
	}
	why, hint, root := "", "", ""
	switch {
	case slices.Contains(p.Modules, "kvm_pvm"):
		why = "/dev/kvm is of the module kvm_pvm, which is emulation: this machine is virtual itself, and its processor has no virtualization to pass on"
	case errors.Is(p.Device, fs.ErrNotExist) && flag == "":
		why, hint, root = "there is no /dev/kvm, and neither module kvm_intel nor kvm_amd is loaded", firmware, "modprobe kvm_intel || modprobe kvm_amd"
	case errors.Is(p.Device, fs.ErrPermission):
		why, hint, root = "/dev/kvm is not yours to open", "log in again after the line for root", "usermod -aG kvm "+user
	case p.Device != nil:
		why = p.Device.Error()
	case flag == "":
		why = "what serves /dev/kvm is neither module kvm_intel nor kvm_amd"
	case !slices.Contains(p.Flags, flag):
		why, hint = "the processor has no "+flag, firmware
	default:
		return nil
	}
	return &MissingError{Why: "no virtual machines in hardware (B13): " + why, Hint: hint, Root: root}
}

// ThisProcessor is [ReadProcessor] of this machine.
func ThisProcessor() (Processor, error) {
	f, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0)
	if err == nil {
		f.Close()
	}
	return ReadProcessor(os.DirFS("/"), err)
}
