package monitor

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/llmdo/workshop/internal/vm/kit"
	"github.com/llmdo/workshop/internal/vm/report"
)

// How long a guest may take until it is ready.
const (
	kvmTimeout = 10 * time.Second
	tcgTimeout = time.Minute
)

// checkMemory is the memory of a guest that is only booted, in MiB.
const checkMemory = 256

// Check proves that a kit boots on this machine: with KVM of the processor, or emulated.
func Check(ctx context.Context, dir string, a Accelerator) (r report.Answer, err error) {
	p, err := ThisProcessor()
	if err != nil {
		return r, err
	}
	if a == KVM {
		if err := p.Hardware(); err != nil {
			return r, err
		}
	}
	if r.QEMU, err = findQEMU(ctx, a); err != nil {
		return r, err
	}
	k, err := kit.Open(dir)
	if err != nil {
		return r, err
	}
	r.Dir, r.Kit = dir, &k
	timeout := kvmTimeout
	if a == TCG {
		timeout = tcgTimeout
	}
	began := time.Now()
	m, err := Boot(ctx, Spec{Accelerator: a, Kernel: filepath.Join(dir, kit.Vmlinux), Initramfs: filepath.Join(dir, kit.Initramfs),
		MemoryMiB: checkMemory, CPUs: 1, TSCkHz: p.TSCkHz}, timeout)
	if err != nil {
		return r, err
	}
	r.Ready = time.Since(began)
	m.Stop()
	return r, nil
}

func findQEMU(ctx context.Context, a Accelerator) (*report.QEMU, error) {
	version, err := Version(ctx)
	if err != nil {
		return nil, err
	}
	c, err := FindClosure(os.DirFS("/"), a)
	if err != nil {
		return nil, err
	}
	return &report.QEMU{Path: Program, Version: version, Files: len(c.Files), Size: c.Size, SHA256: c.SHA256}, nil
}
