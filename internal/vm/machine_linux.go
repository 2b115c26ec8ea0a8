package vm

import (
	"context"
	"flag"
	"io"

	"github.com/llmdo/workshop/internal/vm/kit"
	"github.com/llmdo/workshop/internal/vm/monitor"
	"github.com/llmdo/workshop/internal/vm/report"
)

// machine looks for all that a worker's machine is made of, and boots none.
func machine(ctx context.Context, args []string, stderr io.Writer) (a report.Answer, err error) {
	f := flag.NewFlagSet("machine", flag.ContinueOnError)
	dir := f.String("kit", "", "directory of the kit")
	accelerator := emulated(f)
	if err := parse(f, args, stderr, dir); err != nil {
		return a, err
	}
	if _, a.Refused, err = processor(accelerator()); err != nil {
		return a, err
	}
	if a.QEMU, err = monitor.FindQEMU(ctx, accelerator()); err != nil {
		return a, err
	}
	k, err := kit.Open(*dir)
	if err != nil {
		return a, err
	}
	a.Kit, a.Dir = &k, *dir
	return a, nil
}
