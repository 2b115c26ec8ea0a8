package check

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/command"
	"github.com/llmdo/workshop/internal/doctor"
	"github.com/llmdo/workshop/internal/vm/report"
)

// VM is the group of commands about virtual machines.
func VM(p *command.Program) *cobra.Command {
	a := verbs{p}
	cmd := &cobra.Command{
		Use:   "vm",
		Short: "What virtual machines for workers need on this machine",
		Long: `vm sets up and checks what a virtual machine with QEMU needs here, on linux/amd64. It is
a preview: no engine runs a worker with ` + "`kernel: vm`" + ` yet.`,
		Args: cobra.ArbitraryArgs,
		RunE: command.Unknown,
	}
	cmd.AddCommand(a.vmSetupCommand(), a.vmCheckCommand())
	return cmd
}

func (a verbs) vmSetupCommand() *cobra.Command {
	var s app.VMSource
	cmd := &cobra.Command{
		Use:   "setup",
		Short: "Make a kit of a kernel, and say what is missing",
		Long: `setup looks for QEMU and for KVM in hardware, and makes a kit: the kernel of a
distribution, unpacked, and its modules. Where
KVM is hardware, a guest boots with it. The kit's hash is written into your settings, as
vm_kit. It needs no root; lines that do are printed, not run.

The kernel is this machine's, or one of an unpacked package: its tree has
boot/vmlinuz-RELEASE and lib/modules/RELEASE.`,
		Example: `  workshop vm setup
  apt-get download linux-image-6.1.0-50-cloud-amd64
  dpkg -x linux-image-*.deb kernel && workshop vm setup --kernel kernel`,
		RunE: a.Run(func(ctx context.Context, _ *cobra.Command, _ []string) error {
			var root []string
			err := a.SetUpVM(ctx, s, func(step app.VMStep) {
				a.vmStep(step)
				if step.Root != "" {
					root = append(root, step.Root)
				}
			})
			if len(root) > 0 {
				a.Say("as root, then `workshop vm setup` again:")
				for _, line := range root {
					fmt.Fprintln(a.Out, "  "+app.Printable(line))
				}
			}
			return err
		}),
	}
	cmd.Flags().StringVar(&s.Tree, "kernel", "", "unpacked package of a kernel (default: this machine's kernel)")
	_ = cmd.MarkFlagDirname("kernel")
	cmd.Flags().StringVar(&s.Release, "release", "", "the kernel's release, where there are several")
	command.FreeText(cmd, "release")
	return cmd
}

func (a verbs) vmStep(step app.VMStep) {
	level, text, do := doctor.OK, "", step.Hint
	switch {
	case step.Problem != "":
		level, text = doctor.Error, step.Problem
	case step.Name == "qemu":
		text = qemuText(step.QEMU)
	case step.Name == "kvm":
		text = "KVM of the processor"
	case step.Name == "kit":
		text = kitText(step.Answer)
		if old := oldKernel(step.Kit.Kernel); old != "" {
			level, do = doctor.Warning, old
		}
	case step.Name == "guest":
		text = "a guest, ready after " + readyText(step.Ready)
	case step.Name == "settings":
		text = "settings: vm_kit, in " + app.Printable(step.File)
	}
	if level == doctor.OK && a.Quiet {
		return
	}
	a.doctorLine(level, text, do)
}

func qemuText(q *report.QEMU) string {
	return fmt.Sprintf("QEMU %s: %s, %d files, sha256 %.12s", app.Printable(q.Version), q.Path, len(q.Files), q.SHA256)
}

func kitText(answer report.Answer) string {
	k := answer.Kit.Kernel
	from := k.Release
	if k.Package != "" {
		from = k.Package
	}
	text := fmt.Sprintf("kit %.12s: kernel %s", answer.Dir[strings.LastIndexByte(answer.Dir, '/')+1:], app.Printable(from))
	if !k.Date.IsZero() {
		text += ", built " + k.Date.Format(time.DateOnly)
	}
	return text
}

// oldKernel says what to do about a kernel that is old; "": it isn't.
func oldKernel(k report.Kernel) string {
	old := doctor.OldKernel(k, time.Now())
	if old != "" {
		old += ": " + doctor.NewerKernel
	}
	return old
}

func readyText(d time.Duration) string { return d.Round(10 * time.Millisecond).String() }

func (a verbs) vmCheckCommand() *cobra.Command {
	emulate := false
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Boot a virtual machine of your kit",
		Long: `check boots a guest of the kit that your settings name, with KVM of the processor, and
waits until it is ready. It exits with 4 where KVM is missing, is emulation, or starts
no guest (B13). With --emulate the guest boots without KVM: a test of the kit, and no
boundary.`,
		Example: `  workshop vm check
  workshop vm check --emulate`,
		Annotations: command.Formats("text", "json"),
		RunE: a.Run(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
			format, err := a.Format(cmd)
			if err != nil {
				return err
			}
			answer, err := a.CheckVM(ctx, emulate)
			if format == "json" && answer.QEMU != nil {
				if writeErr := a.WriteJSON(answer); writeErr != nil {
					return writeErr
				}
				return err
			}
			if err != nil {
				return err
			}
			fmt.Fprintln(a.Out, qemuText(answer.QEMU))
			fmt.Fprintln(a.Out, kitText(answer))
			if old := oldKernel(answer.Kit.Kernel); old != "" {
				a.Warn("%s", old)
			}
			ok := "ok"
			if emulate {
				ok = "ok, emulated: not a boundary (B13)"
			}
			fmt.Fprintf(a.Out, "%s (ready after %s)\n", ok, readyText(answer.Ready))
			return nil
		}),
	}
	cmd.Flags().BoolVar(&emulate, "emulate", false, "without KVM: slow, and no boundary")
	return cmd
}
