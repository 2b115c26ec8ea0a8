package cli

import (
	"context"
	"errors"
	"flag"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/command"
	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/initimage"
	"github.com/llmdo/workshop/internal/promise"
)

var update = flag.Bool("update", false, "rewrite the expected texts of the scripts and docs/cli.md")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"workshop": func() {
			testOnlyResolvConf = "/dev/null" // no resolver of this machine is asked
			os.Exit(Main(NewWorkshop))
		},
		"llmdo": func() { os.Exit(Main(NewLLMDo)) },
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
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"code": cmdCode, "registry": cmdRegistry},
		Setup: func(e *testscript.Env) error {
			// Beside the script's directory: what contains a home isn't mounted.
			home, err := os.MkdirTemp("", "workshop-home-")
			if err != nil {
				return err
			}
			e.Defer(func() { os.RemoveAll(home) })
			e.Setenv("HOME", home)
			program, err := exec.LookPath("workshop") // as the scripts call it
			if err != nil {
				return err
			}
			e.Setenv("PROGRAM", program)
			e.Setenv("XDG_RUNTIME_DIR", filepath.Join(home, "run"))
			return errors.Join(os.Mkdir(filepath.Join(home, "run"), 0o700), env(e))
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

// cmdRegistry is `registry`: an empty registry on the loopback, at $REGISTRY.
func cmdRegistry(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: registry")
	}
	s := httptest.NewServer(testutil.Registry(nil))
	ts.Defer(s.Close)
	ts.Setenv("REGISTRY", s.Listener.Addr().String())
}

// TestScripts runs everything that needs no engine; the one that is named
// does not exist.
func TestScripts(t *testing.T) {
	testscript.Run(t, params("testdata/script", func(e *testscript.Env) error {
		e.Setenv("DOCKER_HOST", "unix://"+filepath.Join(e.WorkDir, "no.sock"))
		e.Setenv("WORKSHOP_ENGINE", "docker") // what another engine does is asked for by name
		return nil
	}))
}

// TestEngineScripts runs the verbs against the engine of this machine. Every
// script has a project name of its own and is taken down in any case.
func TestEngineScripts(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	e, err := app.Engines(ctx, "", app.EngineOptions{Lookup: os.LookupEnv})
	if err == nil {
		var info engine.Info
		info, err = e.Info(ctx)
		e.Close()
		testutil.Require(t, err == nil && info.Local, "no engine answers that sees this machine's files")
		_, err = initimage.Default().Digest(info.Arch)
	}
	testutil.Require(t, err == nil, "the workshop-init of the engine's architecture is not built: make build")
	testscript.Run(t, params("testdata/engine", func(e *testscript.Env) error {
		project := app.ProjectSafe("clitest-"+strconv.Itoa(os.Getpid())+"-"+filepath.Base(e.WorkDir), "clitest")
		e.Setenv("DOCKER_HOST", os.Getenv("DOCKER_HOST"))
		e.Setenv("WORKSHOP_ENGINE", promise.Docker)
		e.Setenv("WORKSHOP_PROJECT_NAME", project)
		e.Defer(func() {
			Run(context.Background(), NewWorkshop, []string{"--quiet", "-p", project, "down"}, &command.System{Env: &app.Env{Dir: "/", Lookup: os.LookupEnv, Engine: app.Engines}, Out: io.Discard, Err: io.Discard})
			left, _ := filepath.Glob("/dev/shm/workshop-*/" + project + "-*")
			for _, dir := range left {
				if !t.Failed() {
					t.Errorf("left behind: %s", dir)
				}
				os.RemoveAll(dir)
			}
		})
		return nil
	}))
}
