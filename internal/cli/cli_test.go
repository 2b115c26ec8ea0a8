package cli

import (
	"context"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/llmdo/workshop/internal/testutil"
)

var update = flag.Bool("update", false, "rewrite the expected texts of the scripts and docs/cli.md")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"workshop": func() { os.Exit(Main(NewWorkshop)) },
		"llmdo":    func() { os.Exit(Main(NewLLMDo)) },
	})
}

// params are what all scripts have in common. Scripts run the real program as
// a process, in an empty home directory.
func params(dir string, env func(*testscript.Env) error) testscript.Params {
	return testscript.Params{
		Dir:                 dir,
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"code": cmdCode},
		Setup: func(e *testscript.Env) error {
			home := filepath.Join(e.WorkDir, "home")
			e.Setenv("HOME", home)
			e.Setenv("XDG_RUNTIME_DIR", filepath.Join(e.WorkDir, "run"))
			return errors.Join(os.MkdirAll(home, 0o755), os.MkdirAll(filepath.Join(e.WorkDir, "run"), 0o700), env(e))
		},
	}
}

// cmdCode is `code N COMMAND…`: the command must end with exit code N.
func cmdCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N COMMAND [ARG…]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// TestScripts runs everything that needs no engine; the one that is named
// does not exist.
func TestScripts(t *testing.T) {
	testscript.Run(t, params("testdata/script", func(e *testscript.Env) error {
		e.Setenv("DOCKER_HOST", "unix://"+filepath.Join(e.WorkDir, "no.sock"))
		return nil
	}))
}

// TestEngineScripts runs the verbs against the engine of this machine.
func TestEngineScripts(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	e, err := dockerEngine(ctx, "", EngineOptions{Lookup: os.LookupEnv})
	if err == nil {
		_, err = e.Info(ctx)
		e.Close()
	}
	testutil.Require(t, err == nil, "no engine answers")
	testscript.Run(t, params("testdata/engine", func(e *testscript.Env) error {
		e.Setenv("DOCKER_HOST", os.Getenv("DOCKER_HOST"))
		return nil
	}))
}
