package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/llmdo/workshop/internal/initimage"
	"github.com/llmdo/workshop/internal/lib/procgroup"
	"github.com/llmdo/workshop/internal/vm/report"
)

// vmProgram makes and runs virtual machines.
const vmProgram = "workshop-vm"

// vmTime bounds a command of workshop-vm: two emulated boots, a minute each, and reading files.
const vmTime = 3 * time.Minute

// maxVMAnswer bounds what a command of workshop-vm prints, in bytes.
const maxVMAnswer = 64 << 10

// kitHash is the name of a kit.
var kitHash = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-f]{64}$`) })

// kitSetting reads the value of the key `vm_kit`.
func kitSetting(hash string) (string, error) {
	if hash != "" && !kitHash().MatchString(hash) {
		return "", Fail(CodeUsage, "setting vm_kit: %q is not the hash of a kit", hash).Hint("`workshop vm setup` writes it, or remove the key")
	}
	return hash, nil
}

// VMStep is a step of [Env.SetUpVM], and what became of it.
type VMStep struct {
	Name string `json:"name"` // qemu, kvm, kit, guest or settings
	report.Answer
	// File is the file of settings.
	File string `json:"file,omitempty"`
}

// VMSource is where a kit's kernel is.
type VMSource struct {
	Tree    string // root of a machine, or an unpacked package; empty: of this machine
	Release string // empty: there is one alone
}

// SetUpVM looks for what virtual machines need on this machine, and makes what needs no root:
// the kit, and the setting that names it. done gets each step; one with a problem doesn't end
// those that don't need it.
func (env *Env) SetUpVM(ctx context.Context, s VMSource, done func(VMStep)) error {
	program, err := env.vmProgram()
	if err != nil {
		return err
	}
	failed, refused := false, false
	step := func(name string, args ...string) (a report.Answer, ok bool) {
		if a, err = runVM(ctx, program, args...); err != nil {
			return a, false
		}
		done(VMStep{Name: name, Answer: a})
		failed, refused = failed || a.Problem != "", refused || a.Refused
		return a, a.Problem == ""
	}
	_, hasQEMU := step("qemu", "qemu")
	if err != nil {
		return err
	}
	_, hasKVM := step("kvm", "kvm")
	if err != nil {
		return err
	}
	args := []string{"kit", "--dir", env.kitsDir(), "--tree", "/"}
	if s.Tree != "" {
		args[len(args)-1] = env.Abs(s.Tree)
	}
	if s.Release != "" {
		args = append(args, "--release", s.Release)
	}
	kit, hasKit := step("kit", args...)
	if err != nil {
		return err
	}
	if hasKit && hasQEMU && hasKVM {
		init, remove, unwritten := writeInit()
		if unwritten != nil {
			return unwritten
		}
		defer remove()
		if _, hasKit = step("guest", "check", "--kit", kit.Dir, "--init", init); err != nil {
			return err
		}
	}
	if hasKit {
		file, err := env.writeSetting("vm_kit", filepath.Base(kit.Dir))
		if err != nil {
			return err
		}
		done(VMStep{Name: "settings", File: file})
	}
	switch {
	case refused:
		return Exit(CodeRefused)
	case failed:
		return Exit(CodeFailed)
	}
	return nil
}

// CheckVM boots a guest of the kit that the settings name. With emulate it needs no KVM, and
// proves nothing of B13.
func (env *Env) CheckVM(ctx context.Context, emulate bool) (report.Answer, error) {
	none := report.Answer{}
	const again = "run `workshop vm setup`"
	program, err := env.vmProgram()
	if err != nil {
		return none, err
	}
	if env.Settings.VMKit == "" {
		return none, Fail(CodeFailed, "no kit for virtual machines: your settings have no vm_kit").Hint(again)
	}
	init, remove, err := writeInit()
	if err != nil {
		return none, err
	}
	defer remove()
	args := []string{"check", "--kit", filepath.Join(env.kitsDir(), env.Settings.VMKit), "--init", init}
	if emulate {
		args = append(args, "--emulate")
	}
	a, err := runVM(ctx, program, args...)
	if err != nil {
		return a, err
	}
	switch {
	case a.Problem == "":
		return a, nil
	case a.Refused:
		err = Fail(CodeRefused, "%s", a.Problem).Hint("`workshop vm check --emulate` boots a guest without KVM, which is a test and not a boundary")
	default:
		err = Fail(CodeFailed, "%s", a.Problem).Hint(again)
	}
	return a, err
}

// kitsDir is where kits are kept.
func (env *Env) kitsDir() string { return filepath.Join(env.DataDir(), "vm") }

// vmProgram finds workshop-vm.
func (env *Env) vmProgram() (string, error) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return "", Fail(CodeRefused, "virtual machines for workers are there on linux/amd64 alone, not on %s/%s", runtime.GOOS, runtime.GOARCH)
	}
	if env.DataDir() == "" {
		return "", Fail(CodeRefused, "there is no directory for kits: neither HOME nor XDG_DATA_HOME is set").Hint("set it: `export HOME=~`")
	}
	dirs := env.Programs
	if dirs == nil {
		dirs = initimage.ProgramDirs()
	}
	for _, dir := range dirs {
		path := filepath.Join(dir, vmProgram)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path, nil
		}
	}
	return "", Fail(CodeFailed, "%s is in none of %s", vmProgram, strings.Join(dirs, ", ")).
		Hint("put the one of this version's archive there; from the source, `make build` makes it")
}

// writeInit writes the init of guests to a file, which remove removes.
func writeInit() (path string, remove func(), err error) {
	program, err := initimage.Default().Binary("amd64")
	if err != nil {
		return "", nil, err
	}
	dir, err := os.MkdirTemp("", "workshop-vm-")
	if err != nil {
		return "", nil, err
	}
	path = filepath.Join(dir, "init")
	if err := os.WriteFile(path, program, 0o600); err != nil {
		os.RemoveAll(dir)
		return "", nil, err
	}
	return path, func() { os.RemoveAll(dir) }, nil
}

// runVM runs a command of workshop-vm. Its answer may have a problem.
func runVM(parent context.Context, program string, args ...string) (a report.Answer, err error) {
	ctx, cancel := context.WithTimeout(parent, vmTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	procgroup.Own(cmd)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = limited{&out}, limited{&errs}, time.Second
	cmd.Dir, cmd.Env = "/", []string{}
	failed := cmd.Run()
	if parent.Err() != nil {
		return a, context.Cause(parent)
	}
	err = json.Unmarshal(out.Bytes(), &a)
	if exit, ok := errors.AsType[*exec.ExitError](failed); ok && err == nil && exit.ExitCode() == 1 && a.Problem != "" {
		return a, nil
	}
	if failed != nil {
		err = failed
	}
	if err != nil {
		err = fmt.Errorf("%s %s: %w: %s", program, args[0], err, strings.TrimSpace(errs.String()))
	}
	return a, err
}

// limited refuses more than a command prints.
type limited struct{ b *bytes.Buffer }

// Write implements [io.Writer].
func (l limited) Write(p []byte) (int, error) {
	if l.b.Len()+len(p) > maxVMAnswer {
		return 0, io.ErrShortWrite
	}
	return l.b.Write(p)
}
