package outlet

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/carrier"
	"github.com/llmdo/workshop/internal/carrier/mux"
	"github.com/llmdo/workshop/internal/made"
)

// askAgain is the pause before the next try to reach the room.
const askAgain = 100 * time.Millisecond

// betweenRelays bounds how often a relay that breaks the protocol is told of.
const betweenRelays = 20 * time.Millisecond

// memoryLimit makes the garbage collector work harder well below the container's limit,
// which buffers of sockets count against too.
const memoryLimit = firewall.OutletMemory / 3

// Main is `workshop-init outlet`: it listens for a relay, prints what its container is
// (package made) and READY, or "FAILED reason", and carries until it gets a signal. It
// returns the exit code.
func Main(args []string, stdout, stderr io.Writer) int {
	if err := prepare(); err != nil {
		fmt.Fprintln(stdout, "FAILED "+err.Error())
		return 1
	}
	socket, o, err := parseArgs(args, stderr)
	if err != nil {
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM, unix.SIGINT)
	defer stop()
	if err := run(ctx, socket, New(o), stdout, stderr); err != nil {
		fmt.Fprintln(stdout, "FAILED "+strings.Join(strings.Fields(err.Error()), " "))
		return 1
	}
	return 0
}

// prepare closes the process to others and bounds what it uses.
func prepare() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("PR_SET_DUMPABLE: %w", err)
	}
	// Each thread counts against the container's processes.
	runtime.GOMAXPROCS(2)
	debug.SetGCPercent(50)
	debug.SetMemoryLimit(memoryLimit)
	return nil
}

func parseArgs(args []string, stderr io.Writer) (socket string, o Options, err error) {
	f := flag.NewFlagSet("workshop-init outlet", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&socket, "socket", "", "where the relay connects (required)")
	f.Func("inbound", "port of the worker that connections here are carried to", func(text string) error {
		port, err := strconv.ParseUint(text, 10, 16)
		o.Inbound = append(o.Inbound, uint16(port))
		return err
	})
	err = f.Parse(args)
	if err == nil && f.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	if err == nil && socket == "" {
		err = fmt.Errorf("--socket is required")
	}
	if err != nil {
		fmt.Fprintln(stderr, "workshop-init: error: outlet: "+err.Error())
	}
	return socket, o, err
}

func run(ctx context.Context, socket string, o *Outlet, stdout, stderr io.Writer) error {
	if err := os.Remove(socket); err != nil && !os.IsNotExist(err) {
		return err
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	// Whoever sees the volume is the worker: its user differs from the outlet's.
	if err := os.Chmod(socket, 0o666); err != nil {
		return err
	}
	if err := o.Listen(ctx); err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { l.Close() })
	go o.follow(ctx)
	io.WriteString(stdout, made.Line(made.Mountinfo())+"READY\n")
	for {
		conn, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		go func() {
			if err := o.Serve(ctx, conn); errors.Is(err, mux.ErrProtocol) {
				fmt.Fprintln(stderr, "outlet: the relay is disconnected: "+err.Error())
			}
		}()
		time.Sleep(betweenRelays)
	}
}

// follow asks the room for the ports of the policy.
func (o *Outlet) follow(ctx context.Context) {
	for ctx.Err() == nil {
		if conn, err := net.Dial("unix", carrier.PortsSocket); err == nil {
			stop := context.AfterFunc(ctx, func() { conn.Close() })
			for {
				ports, err := carrier.ReadPorts(conn)
				if err != nil {
					break
				}
				o.SetPorts(ports)
			}
			stop()
			conn.Close()
		}
		select {
		case <-time.After(askAgain):
		case <-ctx.Done():
		}
	}
}
