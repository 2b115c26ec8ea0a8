// Workshop-init is the only program of ours inside containers. Its first argument is its
// role: room, guard, outlet, connect, gate, tools, enter, health, probe or signal. Outside of
// containers, supervise runs a project's containers and contain starts one; guest is the
// /init of a virtual machine.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/llmdo/workshop/internal/engine/namespace/container"
	_ "github.com/llmdo/workshop/internal/engine/namespace/container/early"
	"github.com/llmdo/workshop/internal/engine/namespace/supervisor"
	"github.com/llmdo/workshop/internal/lib/execmark"
	"github.com/llmdo/workshop/internal/toolbox"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// commands by name; each returns the exit code of the process.
var commands = map[string]func(args []string, stdout, stderr io.Writer) int{
	"room":    roomMain,
	"guard":   guardMain,
	"outlet":  outletMain,
	"connect": connectMain,
	"gate":    workerMain,
	"tools":   toolsMain,
	"health":  healthMain,
	"probe":   probeMain,
	"signal":  execmark.Main,
	"enter":   toolbox.EnterMain,
	// Without an engine:
	"supervise": supervisor.Main,
	"contain":   container.Main,
	"guest":     guestMain,
}

const usage = `usage: workshop-init room --name NAME [--open] [--outlet [--every-address]] [--fallback anyip --packet-fds N,N,N,N]
       workshop-init guard [--control-fd N] [--inbound-fd PORT=N]...
       workshop-init outlet --socket SOCKET [--inbound PORT]...
       workshop-init connect
       workshop-init gate [--room [--relay SOCKET]] [--write DIR]... [--workdir DIR] [--tools JSON]
       workshop-init health room|guard|gate
       workshop-init probe ...
       workshop-init signal MARK SIGNAL
       workshop-init enter DIR -- COMMAND [ARG]...
       workshop-init supervise --dir DIR
       workshop-init contain FD [network]
       workshop-init guest
`

func run(args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(stderr, usage)
		return 2
	}
	command, ok := commands[args[0]]
	if !ok {
		fmt.Fprintf(stderr, "workshop-init: error: unknown command %q\n%s", args[0], usage)
		return 2
	}
	return command(args[1:], stdout, stderr)
}
