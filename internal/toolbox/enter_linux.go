package toolbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"syscall"

	"github.com/llmdo/workshop/internal/lib/workdir"
	"github.com/llmdo/workshop/internal/toolbox/wire"
	"github.com/llmdo/workshop/internal/workerinit/pid1"
)

// EnterMain is `workshop-init enter DIR -- COMMAND…`: it executes what an engine
// was to start in a worker, in DIR, which is relative to the worker's working
// directory. Exit codes are Docker's.
func EnterMain(args []string, _, stderr io.Writer) int {
	if len(args) < 3 || args[1] != "--" {
		fmt.Fprintln(stderr, "usage: workshop-init enter DIR -- COMMAND [ARG]...")
		return 2
	}
	err := enterWorkers(args[0])
	if err == nil {
		err = execute(program{argv: args[2:]})
	}
	fmt.Fprintln(stderr, "workshop-init: error:", err)
	refused, _ := errors.AsType[*wire.Error](err)
	switch {
	case refused == nil:
		return 125
	case refused.Code == wire.CodeNotFound:
		return 127
	}
	return 126
}

// execute returns only where the program can't be started.
func execute(p program) error {
	file, err := lookUp(p.argv[0], os.Environ())
	if err != nil {
		return err
	}
	return startError(syscall.Exec(file, p.argv, os.Environ()), p, file)
}

func enterWorkers(dir string) error {
	if !path.IsAbs(dir) {
		args, _, err := pid1.Arguments()
		if err != nil {
			return fmt.Errorf("read the worker's working directory: %w", err)
		}
		base, ok := pid1.Value(args, pid1.Workdir)
		if !ok {
			return errors.New("the worker's main process has no working directory: run `workshop up`")
		}
		if err := workdir.Enter(base); err != nil || dir == "." {
			return err
		}
	}
	return workdir.Enter(dir)
}
