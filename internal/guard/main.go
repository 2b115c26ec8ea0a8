package guard

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/control"
	"github.com/llmdo/workshop/internal/guard/policy"
)

// Paths inside the guard's container.
const (
	defaultPolicy  = "/etc/workshop"
	defaultSockets = "/run/workshop"
	resolvConf     = "/etc/resolv.conf"
)

// memoryLimit makes the garbage collector work harder well below the container's
// limit: the rest is the kernel's (buffers.go has the sum).
const memoryLimit = firewall.GuardMemory / 5

// Main is `workshop-init guard`: it serves the rooms of a workshop until it gets
// SIGTERM or SIGINT, and returns the exit code. Once every room is served it
// prints what its container is (package made) and READY, or FAILED and a reason; events
// follow as JSON lines.
func Main(args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("guard", flag.ContinueOnError)
	fs.SetOutput(stderr)
	dir := fs.String("policy", defaultPolicy, "directory with "+policy.File)
	sockets := fs.String("sockets", defaultSockets, "directory with the rooms' sockets")
	resolv := fs.String("resolv-conf", resolvConf, "resolvers if the policy names none")
	path := fs.String("control", control.SocketPath, "control socket; empty for none, as with --control-fd")
	var inherited descriptors
	fs.Var(controlFD{&inherited}, "control-fd", "descriptor of a SOCK_SEQPACKET unix socket that passes control connections")
	fs.Var(inboundFD{&inherited}, "inbound-fd", "PORT=N: descriptor N listens for the published port PORT of the policy; repeatable")
	if err := fs.Parse(args); err != nil {
		return 2
	}
	if fs.NArg() > 0 {
		fmt.Fprintf(stderr, "workshop-init guard: error: unexpected argument %q\n", fs.Arg(0))
		return 2
	}
	if inherited.control > 0 && !given(fs, "control") {
		*path = ""
	}
	if err := keepMemory(); err != nil {
		fmt.Fprintf(stdout, "FAILED %v\n", err)
		return 1
	}
	debug.SetMemoryLimit(memoryLimit)
	debug.SetGCPercent(50) // small heaps: memory is dearer than the collector here
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	fail := func(err error) int {
		// One line, whatever the error contains: `up` reads it.
		fmt.Fprintf(stdout, "FAILED %s\n", strings.ReplaceAll(err.Error(), "\n", "; "))
		return 1
	}
	p, digest, err := policy.Read(*dir, os.LookupEnv)
	if err != nil {
		return fail(err)
	}
	host, err := addresses(firewall.HostAddrsEnv)
	if err != nil {
		return fail(err)
	}
	loopback, err := addresses(firewall.LoopbackAddrsEnv)
	if err != nil {
		return fail(err)
	}
	g, err := New(Config{
		Policy: p, Digest: digest, Lookup: os.LookupEnv, Control: *path,
		UserUpstreams: strings.Split(os.Getenv(firewall.UserUpstreamsEnv), ","),

		Host: host, Loopback: loopback, Sockets: *sockets, ResolvConf: *resolv, Out: stdout, inherited: inherited,
	})
	if err != nil {
		return fail(err)
	}
	if err := g.Run(ctx); err != nil {
		return fail(err)
	}
	return 0
}

// addresses reads a variable. What can't be read stops the guard.
func addresses(variable string) ([]netip.Addr, error) {
	var out []netip.Addr
	for s := range strings.SplitSeq(os.Getenv(variable), ",") {
		if s == "" {
			continue
		}
		a, err := netip.ParseAddr(s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", variable, err)
		}
		out = append(out, a.Unmap())
	}
	return out, nil
}

// keepMemory keeps the guard's memory, which has values of credentials, from files of cores
// and from other processes of its user.
func keepMemory() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("PR_SET_DUMPABLE: %w", err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return fmt.Errorf("RLIMIT_CORE: %w", err)
	}
	return nil
}
