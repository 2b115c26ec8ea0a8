package monitor

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/llmdo/workshop/internal/vm/config"
)

var update = flag.Bool("update", false, "write the golden files")

// specs are machines of each kind.
var specs = map[string]Spec{
	"kvm": {Accelerator: config.KVM, Kernel: "/kit/vmlinux", MemoryMiB: 960, CPUs: 2, Root: "/root.erofs",
		Shares: []Share{{Tag: "work"}, {Tag: "a,b"}}},
	"tcg":         {Accelerator: config.TCG, Kernel: "/kit/vmlinux", MemoryMiB: 256, CPUs: 1, TSCkHz: 2100000},
	"tcg-console": {Accelerator: config.TCG, Kernel: "/kit/vmlinux", MemoryMiB: 256, CPUs: 1, TSCkHz: 2100000, Console: true},
	"kvm-console": {Accelerator: config.KVM, Kernel: "/kit/vmlinux", MemoryMiB: 256, CPUs: 1, Console: true},
}

// Golden: one option or its value per line.
func TestArgs(t *testing.T) {
	for name, spec := range specs {
		got, file := strings.Join(Args(spec), "\n")+"\n", "testdata/"+name+".args"
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if diff := cmp.Diff(string(want), got); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
}

// B20, B13: what a machine must never have, and what it always has.
func TestArgsHaveNoOtherDevice(t *testing.T) {
	never := []string{"-nic", "-net", "-netdev", "-monitor", "-mon", "-qmp", "-vnc", "-spice", "-usb", "-usbdevice", "-vga", "-gdb", "-s",
		"-virtfs", "-fsdev", "-hda", "-cdrom", "-bios", "-pflash", "-daemonize", "-incoming", "-loadvm", "-writeconfig", "-readconfig", "-plugin", "-chroot", "-runas"}
	devices := []string{"virtio-serial-device", "virtserialport", "virtio-balloon-device", "virtio-blk-device", "vhost-user-fs-device"}
	options := map[string]func(string) bool{
		"-M": func(v string) bool {
			return strings.HasPrefix(v, "microvm,") && !strings.Contains(v, "pcie=on") && !strings.Contains(v, "usb=on")
		},
		"-accel":  func(v string) bool { return v == "kvm" || v == "tcg" },
		"-device": func(v string) bool { kind, _, _ := strings.Cut(v, ","); return slices.Contains(devices, kind) },
		"-drive":  func(v string) bool { return strings.HasSuffix(v, ",readonly=on") && strings.Contains(v, ",if=none,") },
		"-chardev": func(v string) bool {
			return strings.HasPrefix(v, "socket,") && !strings.Contains(v, "server=") && !strings.Contains(v, "port=") && !strings.Contains(v, "host=")
		},
		"-sandbox": func(v string) bool {
			return v == "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"
		},
		"-object": func(v string) bool {
			return strings.HasPrefix(v, "memory-backend-memfd,") || v == "main-loop,id=loop,thread-pool-max=8"
		},
		"-serial":  func(v string) bool { return v == "stdio" },
		"-display": func(v string) bool { return v == "none" },
		"-global":  func(v string) bool { return v == "virtio-mmio.force-legacy=false" },
	}
	others := []string{"-cpu", "-smp", "-m", "-kernel", "-initrd", "-append"}
	alone := []string{"-nodefaults", "-no-user-config", "-no-reboot"}
	for name, spec := range specs {
		args, seen := Args(spec), map[string]bool{}
		for i := 0; i < len(args); i++ {
			option := args[i]
			seen[option] = true
			switch valid := options[option]; {
			case slices.Contains(never, option):
				t.Errorf("%s: %s", name, option)
			case valid != nil:
				i++
				if !valid(args[i]) {
					t.Errorf("%s: %s %s", name, option, args[i])
				}
			case slices.Contains(others, option):
				i++
			case !slices.Contains(alone, option):
				t.Errorf("%s: %s: say here what it may be", name, option)
			}
		}
		for _, must := range append([]string{"-sandbox", "-display", "-M", "-accel", "-global"}, alone...) {
			if !seen[must] {
				t.Errorf("%s: no %s", name, must)
			}
		}
		if !spec.Console && (seen["-serial"] || !slices.Contains(args, "-M") || !strings.Contains(strings.Join(args, " "), "isa-serial=off")) {
			t.Errorf("%s: a serial port", name)
		}
	}
	// A path is one value, whatever is in it.
	for _, arg := range Args(Spec{Root: "/x,readonly=off", Shares: []Share{{"t,server=on", nil}}}) {
		if strings.Contains(strings.ReplaceAll(arg, ",,", ""), ",server=on") || strings.Contains(strings.ReplaceAll(arg, ",,", ""), ",readonly=off") {
			t.Errorf("%s: the path is read as options", arg)
		}
	}
}
