package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/llmdo/workshop/internal/carrier/outlet"
	"github.com/llmdo/workshop/internal/guard"
	"github.com/llmdo/workshop/internal/guard/control"
	"github.com/llmdo/workshop/internal/probe"
	"github.com/llmdo/workshop/internal/room"
	"github.com/llmdo/workshop/internal/toolbox"
	"github.com/llmdo/workshop/internal/vm/guest"
	"github.com/llmdo/workshop/internal/workerinit"
)

func roomMain(args []string, stdout, stderr io.Writer) int { return room.Main(args, stdout, stderr) }
func guestMain(args []string, _, stderr io.Writer) int {
	return guest.Main(args, stderr, room.LocalAddresses)
}

func workerMain(args []string, stdout, stderr io.Writer) int {
	return workerinit.Main(args, stdout, stderr)
}

func guardMain(args []string, stdout, stderr io.Writer) int { return guard.Main(args, stdout, stderr) }

func outletMain(args []string, stdout, stderr io.Writer) int {
	return outlet.Main(args, stdout, stderr)
}

func probeMain(args []string, stdout, stderr io.Writer) int { return probe.Main(args, stdout, stderr) }

// toolsMain is one session of the toolbox; stdin and stdout are its connection.
func toolsMain(args []string, _, stderr io.Writer) int {
	return toolbox.Main(args, os.Stdin, os.Stdout, stderr)
}

// connectMain connects its caller to the control socket of the guard, in whose container
// it runs.
func connectMain(args []string, stdout, stderr io.Writer) int {
	if len(args) != 0 {
		fmt.Fprint(stderr, usage)
		return 2
	}
	return control.Connect(control.SocketPath, os.Stdin, stdout, stderr)
}

// healthMain is the health check of plain Compose: it exits with 0 or prints what is
// missing. Our own engines don't use it.
func healthMain(args []string, _, stderr io.Writer) int {
	checks := map[string]func() error{
		"room":  room.Health,
		"guard": guard.Health, "outlet": outlet.Health,
		"gate": func() error { return workerinit.Health(context.Background()) },
	}
	if len(args) != 1 || checks[args[0]] == nil {
		fmt.Fprint(stderr, usage)
		return 2
	}
	if err := checks[args[0]](); err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	return 0
}
