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

// NoHardwareError is why this machine runs no virtual machine in hardware (B13).
type NoHardwareError struct {
	Why string
	// Do is what a person can do; empty: nothing on this machine.
	Do string
}

// Error implements error.
func (e *NoHardwareError) Error() string { return "no virtual machines in hardware (B13): " + e.Why }

// Hardware returns a [NoHardwareError] unless KVM on this machine is the processor's own
// virtualization, as far as can be told without booting a guest.
func (p Processor) Hardware() error {
	own := map[string]string{"kvm_intel": "vmx", "kvm_amd": "svm"}
	flag := ""
	for _, name := range p.Modules {
		if flag == "" {
			flag = own[name]
		}
	}
	switch {
	case slices.Contains(p.Modules, "kvm_pvm"):
		return &NoHardwareError{Why: "/dev/kvm is the module kvm_pvm, which is emulation: this machine is virtual itself, and its processor passes no virtualization on",
			Do: "Use a machine whose processor has vmx or svm"}
	case errors.Is(p.Device, fs.ErrNotExist) && flag == "":
		return &NoHardwareError{Why: "there is no /dev/kvm, and neither module kvm_intel nor kvm_amd is loaded",
			Do: "Turn virtualization on in the firmware, then as root: `modprobe kvm_intel || modprobe kvm_amd`"}
	case errors.Is(p.Device, fs.ErrPermission):
		return &NoHardwareError{Why: "/dev/kvm is not yours to open", Do: "As root: `usermod -aG kvm USER`, then log in again"}
	case p.Device != nil:
		return &NoHardwareError{Why: p.Device.Error()}
	case flag == "":
		return &NoHardwareError{Why: "what serves /dev/kvm is neither module kvm_intel nor kvm_amd"}
	case !slices.Contains(p.Flags, flag):
		return &NoHardwareError{Why: "the processor has no " + flag, Do: "Turn virtualization on in the firmware"}
	}
	return nil
}

// ThisProcessor is [ReadProcessor] of this machine.
func ThisProcessor() (Processor, error) {
	f, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0)
	if err == nil {
		f.Close()
	}
	return ReadProcessor(os.DirFS("/"), err)
}
