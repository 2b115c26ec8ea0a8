// Package vm is the program workshop-vm: its commands. Each prints one JSON object
// ([report.Answer]) and exits with 0, or with 1 where the object has a problem; but for
// what runs in a worker's container.
package vm

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"os/user"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/vm/config"
	"github.com/llmdo/workshop/internal/vm/files"
	"github.com/llmdo/workshop/internal/vm/kit"
	"github.com/llmdo/workshop/internal/vm/monitor"
	"github.com/llmdo/workshop/internal/vm/report"
)

const usage = `usage: workshop-vm qemu [--emulate]
       workshop-vm kvm
       workshop-vm kit --tree DIR [--release RELEASE] --dir DIR
       workshop-vm check --kit DIR --init FILE [--emulate]
       workshop-vm machine --kit DIR [--emulate]
       workshop-vm run FILE
       workshop-vm files
`

// commands by name.
var commands = map[string]func(ctx context.Context, args []string, stderr io.Writer) (report.Answer, error){
	"qemu":    findQEMU,
	"kvm":     proveKVM,
	"kit":     makeKit,
	"check":   check,
	"machine": machine,
}

// programs run in a worker's container. What they print is for its supervisor.
var programs = map[string]func(args []string, stdout, stderr io.Writer) int{
	"run": func(args []string, stdout, stderr io.Writer) int {
		if len(args) != 1 {
			fmt.Fprint(stderr, usage)
			return 2
		}
		return monitor.Run(args[0], stdout, stderr)
	},
	monitor.FilesCommand: func(_ []string, _, stderr io.Writer) int { return files.Main(os.Stdin, stderr) },
}

// errUsage is a wrong command line, which was told.
var errUsage = errors.New("usage")

// Main runs a command and returns the exit code.
func Main(args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 && programs[args[0]] != nil {
		return programs[args[0]](args[1:], stdout, stderr)
	}
	if len(args) == 0 || commands[args[0]] == nil {
		fmt.Fprint(stderr, usage)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM, unix.SIGINT)
	defer stop()
	a, err := commands[args[0]](ctx, args[1:], stderr)
	if errors.Is(err, errUsage) {
		return 2
	}
	if err != nil {
		a.Problem = err.Error()
		if m, ok := errors.AsType[*monitor.MissingError](err); ok {
			a.Hint, a.Root = m.Hint, m.Root
		}
	}
	if json.NewEncoder(stdout).Encode(a) != nil || err != nil {
		return 1
	}
	return 0
}

// parse reads the flags of a command, of which those in required must be given.
func parse(f *flag.FlagSet, args []string, stderr io.Writer, required ...*string) error {
	f.SetOutput(stderr)
	f.Usage = func() { fmt.Fprint(stderr, usage) }
	if f.Parse(args) != nil {
		return errUsage
	}
	if f.NArg() > 0 || slices.ContainsFunc(required, func(value *string) bool { return *value == "" }) {
		f.Usage()
		return errUsage
	}
	return nil
}

// emulated is the flag of commands that are about a machine with KVM else.
func emulated(f *flag.FlagSet) func() config.Accelerator {
	emulate := f.Bool("emulate", false, "without KVM")
	return func() config.Accelerator {
		if *emulate {
			return config.TCG
		}
		return config.KVM
	}
}

// findQEMU looks for QEMU.
func findQEMU(ctx context.Context, args []string, stderr io.Writer) (a report.Answer, err error) {
	f := flag.NewFlagSet("qemu", flag.ContinueOnError)
	accelerator := emulated(f)
	if err := parse(f, args, stderr); err != nil {
		return a, err
	}
	a.QEMU, err = monitor.FindQEMU(ctx, accelerator())
	return a, err
}

// proveKVM looks whether KVM is hardware, without a guest.
func proveKVM(_ context.Context, args []string, stderr io.Writer) (a report.Answer, err error) {
	if err := parse(flag.NewFlagSet("kvm", flag.ContinueOnError), args, stderr); err != nil {
		return a, err
	}
	_, a.Refused, err = processor(config.KVM)
	return a, err
}

// processor is this machine's; it is refused if KVM is wanted and isn't hardware.
func processor(a config.Accelerator) (p monitor.Processor, refused bool, err error) {
	p, err = monitor.ThisProcessor()
	if err != nil || a != config.KVM {
		return p, false, err
	}
	name := "USER"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if missing := p.Hardware(name); missing != nil {
		return p, true, missing
	}
	return p, false, nil
}

// makeKit makes a kit of a kernel, and writes it into a directory of its hash below --dir.
func makeKit(_ context.Context, args []string, stderr io.Writer) (a report.Answer, err error) {
	f := flag.NewFlagSet("kit", flag.ContinueOnError)
	tree := f.String("tree", "", "root of a machine, or an unpacked package")
	release := f.String("release", "", "of the kernel")
	dir := f.String("dir", "", "where kits are kept")
	if err := parse(f, args, stderr, tree, dir); err != nil {
		return a, err
	}
	a.Hint = "name an unpacked package of a kernel: `workshop vm setup --kernel DIR`"
	root, err := os.OpenRoot(*tree)
	if err != nil {
		return a, err
	}
	defer root.Close()
	source, err := kit.Find(root.FS(), *release)
	if errors.Is(err, kit.ErrSeveral) {
		a.Hint = "choose one of them: `workshop vm setup --release RELEASE`"
	}
	if err != nil {
		return a, fmt.Errorf("%s: %w", *tree, err)
	}
	made, err := kit.Make(source)
	if err != nil {
		return a, fmt.Errorf("%s: %w", *tree, err)
	}
	a.Kit, a.Hint = &made.Kit, ""
	a.Dir, err = made.Write(*dir)
	return a, err
}

// found looks for all that a machine is made of.
func found(ctx context.Context, dir string, by config.Accelerator) (p monitor.Processor, a report.Answer, err error) {
	if p, a.Refused, err = processor(by); err != nil {
		return p, a, err
	}
	if a.QEMU, err = monitor.FindQEMU(ctx, by); err != nil {
		return p, a, err
	}
	k, err := kit.Open(dir)
	if err == nil {
		a.Kit, a.Dir = &k, dir
	}
	return p, a, err
}

// machine looks for all that a worker's machine is made of, and boots none.
func machine(ctx context.Context, args []string, stderr io.Writer) (a report.Answer, err error) {
	f := flag.NewFlagSet("machine", flag.ContinueOnError)
	dir := f.String("kit", "", "directory of the kit")
	accelerator := emulated(f)
	if err := parse(f, args, stderr, dir); err != nil {
		return a, err
	}
	_, a, err = found(ctx, *dir, accelerator())
	return a, err
}

// check boots a guest of a kit.
func check(ctx context.Context, args []string, stderr io.Writer) (a report.Answer, err error) {
	f := flag.NewFlagSet("check", flag.ContinueOnError)
	dir := f.String("kit", "", "directory of the kit")
	init := f.String("init", "", "workshop-init")
	accelerator := emulated(f)
	if err := parse(f, args, stderr, dir, init); err != nil {
		return a, err
	}
	p, a, err := found(ctx, *dir, accelerator())
	if err != nil {
		return a, err
	}
	a.Ready, err = monitor.Check(ctx, *dir, *init, accelerator(), p)
	// A guest that doesn't start with KVM: what KVM is claimed to be isn't so.
	a.Refused = err != nil && accelerator() == config.KVM && ctx.Err() == nil
	return a, err
}
