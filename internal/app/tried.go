package app

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/doctor"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/lib/boundedfile"
	"github.com/llmdo/workshop/workshop"
)

// TriedLine is this machine as a row of docs/engines-tried.md: what it is, and what works on
// it. It boots a guest if there is a kit of virtual machines.
func (env *Env) TriedLine(ctx context.Context, r DoctorReport) (string, error) {
	cells := []string{
		time.Now().UTC().Format(time.DateOnly), r.Version, osName("/etc/os-release") + ", " + r.Platform,
		textsOf(r, doctor.Kernel, "release"), textsOf(r, doctor.Cgroups, "version"), textsOf(r, doctor.Security, "apparmor", "selinux", "landlock"),
		engineWords(r.engine), env.triedGVisor(r.engine), env.triedVM(ctx),
	}
	if r.engine.Kind == "" {
		cells[6], cells[7] = "none answers", "no"
	}
	for i, c := range cells {
		cells[i] = strings.ReplaceAll(Printable(strings.Join(strings.Fields(c), " ")), "|", `\|`)
	}
	return "| " + strings.Join(cells, " | ") + " |", ctx.Err()
}

// textsOf joins findings by their names.
func textsOf(r DoctorReport, group string, names ...string) string {
	var texts []string
	for _, f := range r.Of(group) {
		for _, name := range names {
			if f.Name == name {
				texts = append(texts, f.Text)
			}
		}
	}
	return strings.Join(texts, "; ")
}

func (env *Env) triedGVisor(i engine.Info) string {
	if f := i.Kernel(workshop.KernelSandboxed, env.Settings.Kernels, func() compose.KernelFacts { return machinesUnseen }); f.Mechanism == "" {
		return "no: " + f.Why
	}
	return "registered"
}

func (env *Env) triedVM(ctx context.Context) string {
	a, err := env.CheckVM(ctx, false)
	if err == nil {
		return fmt.Sprintf("ok: QEMU %s, kernel %s, ready after %v", a.QEMU.Version, a.Kit.Kernel.Release, a.Ready.Round(time.Millisecond))
	}
	if f, ok := errors.AsType[*Failure](err); ok {
		return "no: " + f.Error()
	}
	return "no: " + err.Error()
}

// osName is the name of a distribution (os-release(5), PRETTY_NAME); "" without one.
func osName(file string) string {
	text, err := boundedfile.Read(file, 64<<10)
	if err != nil {
		return ""
	}
	for s := bufio.NewScanner(strings.NewReader(string(text))); s.Scan(); {
		if value, ok := strings.CutPrefix(s.Text(), "PRETTY_NAME="); ok {
			return strings.Trim(value, `"'`)
		}
	}
	return ""
}
