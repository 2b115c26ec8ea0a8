// Package vm is the program workshop-vm: its commands. Each prints one JSON object
// ([report.Answer]) and exits with 0, or with 1 where the object has a problem.
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

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/lib/boundedfile"
	"github.com/llmdo/workshop/internal/vm/kit"
	"github.com/llmdo/workshop/internal/vm/monitor"
	"github.com/llmdo/workshop/internal/vm/report"
)

const usage = `usage: workshop-vm kit --tree DIR [--release RELEASE] --init FILE --dir DIR
       workshop-vm check --kit DIR [--emulate]
`

// commands by name.
var commands = map[string]func(ctx context.Context, args []string, stderr io.Writer) (report.Answer, error){
	"kit":   makeKit,
	"check": check,
}

// errUsage is a wrong command line, which was told.
var errUsage = errors.New("usage")

// Main runs a command and returns the exit code.
func Main(args []string, stdout, stderr io.Writer) int {
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
		if hinted, ok := errors.AsType[*monitor.NoHardwareError](err); ok {
			a.Hint = hinted.Do
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
	for _, value := range required {
		if *value == "" || f.NArg() > 0 {
			f.Usage()
			return errUsage
		}
	}
	return nil
}

// maxInit bounds the size of workshop-init, in bytes.
const maxInit = 64 << 20

// makeKit makes a kit of a kernel, and writes it into a directory of its hash below --dir.
func makeKit(_ context.Context, args []string, stderr io.Writer) (a report.Answer, err error) {
	f := flag.NewFlagSet("kit", flag.ContinueOnError)
	tree := f.String("tree", "", "root of a machine, or an unpacked package")
	release := f.String("release", "", "of the kernel")
	init := f.String("init", "", "workshop-init")
	dir := f.String("dir", "", "where kits are kept")
	if err := parse(f, args, stderr, tree, init, dir); err != nil {
		return a, err
	}
	root, err := os.OpenRoot(*tree)
	if err != nil {
		return a, err
	}
	defer root.Close()
	source, err := kit.Find(root.FS(), *release)
	if err != nil {
		return a, fmt.Errorf("%s: %w", *tree, err)
	}
	program, err := boundedfile.Read(*init, maxInit)
	if err != nil {
		return a, err
	}
	made, err := kit.Make(source, program)
	if err != nil {
		return a, fmt.Errorf("%s: %w", *tree, err)
	}
	a.Kit = &made.Kit
	a.Dir, err = made.Write(*dir)
	return a, err
}

// check boots a guest of a kit.
func check(ctx context.Context, args []string, stderr io.Writer) (report.Answer, error) {
	f := flag.NewFlagSet("check", flag.ContinueOnError)
	dir := f.String("kit", "", "directory of the kit")
	emulate := f.Bool("emulate", false, "without KVM")
	if err := parse(f, args, stderr, dir); err != nil {
		return report.Answer{}, err
	}
	accelerator := monitor.KVM
	if *emulate {
		accelerator = monitor.TCG
	}
	return monitor.Check(ctx, *dir, accelerator)
}
