package room

import (
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/made"
)

// Defaults of the command line: the mount point of the sockets in the compiled project,
// and its guard's user.
const (
	defaultDir      = "/run/workshop"
	defaultGuardUID = 65532
)

// Main is `workshop-init room`: it makes the room, prints what its container is (package
// made) and READY, or "FAILED reason", on stdout and stays until it gets a signal. It
// returns the exit code.
func Main(args []string, stdout, stderr io.Writer) int {
	// A room's container has 16 MiB and 16 pids, including threads.
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(20)
	debug.SetMemoryLimit(8 << 20)

	o, err := parseArgs(args, stderr)
	if err != nil {
		return 2
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT)
	stop := make(chan struct{})
	go func() {
		<-signals
		close(stop)
	}()
	o.Log = func(line string) { fmt.Fprintln(stderr, "room "+o.Name+": "+line) }
	if err := run(o, stdout, stop); err != nil {
		fmt.Fprintln(stdout, "FAILED "+oneLine(err.Error()))
		return 1
	}
	return 0
}

func parseArgs(args []string, stderr io.Writer) (Options, error) {
	var o Options
	var uid uint
	f := flag.NewFlagSet("workshop-init room", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.Name, "name", "", "name of the room (required)")
	f.BoolVar(&o.Open, "open", false, "redirect every TCP connection to the guard")
	f.BoolVar(&o.Outlet, "outlet", false, "tell the ports of the policy to an outlet in the room")
	f.BoolVar(&o.EveryAddress, "every-address", false, "give lo addresses of all IPv4 networks, for a sandbox that copies them (with --outlet)")
	f.StringVar(&o.Dir, "dir", defaultDir, "directory of the socket")
	f.UintVar(&uid, "guard-uid", defaultGuardUID, "user that the guard runs as")
	fallback := f.String("fallback", "", "anyip: work without nf_tables if the kernel lacks it")
	packets := f.String("packet-fds", "", "descriptors of packet sockets of the room's namespace, for --fallback anyip")
	err := f.Parse(args)
	if err == nil && f.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	if err == nil && !firewall.ValidRoomName(o.Name) {
		err = fmt.Errorf("--name %q is not valid as a room name", o.Name)
	}
	if err == nil && o.EveryAddress && !o.Outlet {
		err = fmt.Errorf("--every-address needs --outlet")
	}
	if o.AnyIP = *fallback == "anyip"; err == nil && !o.AnyIP && *fallback != "" {
		err = fmt.Errorf("unknown --fallback %q, want anyip", *fallback)
	}
	if err == nil && *packets != "" {
		o.Packets, err = parsePackets(*packets)
	}
	if err != nil {
		fmt.Fprintln(stderr, "workshop-init: error: room: "+err.Error())
	}
	o.GuardUID = uint32(uid)
	return o, err
}

// parsePackets reads the value of --packet-fds.
func parsePackets(list string) (fds []int, err error) {
	for s := range strings.SplitSeq(list, ",") {
		n, err := strconv.ParseUint(s, 10, 16)
		if err != nil || n < 3 || slices.Contains(fds, int(n)) {
			return nil, fmt.Errorf("--packet-fds %s: %q is not the number of a descriptor", list, s)
		}
		unix.CloseOnExec(int(n))
		fds = append(fds, int(n))
	}
	return fds, nil
}

func run(o Options, stdout io.Writer, stop <-chan struct{}) error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("PR_SET_DUMPABLE: %w", err)
	}
	r, err := New(o)
	if err != nil {
		return err
	}
	defer r.Close()
	return r.Serve(func() { io.WriteString(stdout, made.Line(made.Mountinfo())+"READY\n") }, stop)
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
