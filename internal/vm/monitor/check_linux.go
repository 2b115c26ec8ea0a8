package monitor

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/llmdo/workshop/internal/vm/config"
	"github.com/llmdo/workshop/internal/vm/kit"
	"github.com/llmdo/workshop/internal/vm/report"
)

// How long a guest may take until it is ready.
const (
	kvmTimeout = 10 * time.Second
	tcgTimeout = time.Minute
)

func timeoutOf(a config.Accelerator) time.Duration {
	if a == config.TCG {
		return tcgTimeout
	}
	return kvmTimeout
}

// checkMemory is the memory of a guest that is only booted, in MiB.
const checkMemory = 256

// FindQEMU returns this machine's QEMU, whose files it reads.
func FindQEMU(ctx context.Context, a config.Accelerator) (*report.QEMU, error) {
	system := os.DirFS("/")
	if err := missingQEMU(system); err != nil {
		return nil, err
	}
	version, err := Version(ctx)
	if err != nil {
		return nil, err
	}
	c, err := FindClosure(system, a)
	if err != nil {
		return nil, err
	}
	return &report.QEMU{Path: Program, Version: version, Files: c.Files, Size: c.Size, SHA256: c.SHA256}, nil
}

// Check proves that a kit boots on this machine with an init, workshop-init: with KVM of the
// processor, or emulated. It returns the time until the guest was ready.
func Check(ctx context.Context, dir, init string, a config.Accelerator, p Processor) (ready time.Duration, err error) {
	timeout := timeoutOf(a)
	began := time.Now()
	initrd, err := kit.Initrd(dir, init, nil)
	if err != nil {
		return 0, err
	}
	defer initrd.Close()
	m, err := Boot(ctx, Spec{Accelerator: a, Kernel: filepath.Join(dir, kit.Vmlinux), Initramfs: initrd,
		MemoryMiB: checkMemory, CPUs: 1, TSCkHz: p.TSCkHz}, timeout)
	if err != nil {
		return 0, err
	}
	ready = time.Since(began)
	m.Stop()
	return ready, nil
}
