//go:build linux

package attacks

import (
	"io"
	"time"

	"github.com/llmdo/workshop/internal/probe"
)

// Main runs probes as [probe.Main] does, with the kinds of this package. A
// leading "probe" is left out, so that a program whose only verb this is can
// start itself as workshop-init would.
func Main(args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == "probe" {
		args = args[1:]
	}
	probe.Add("dial", "ADDR:PORT [type=T] [proto=P] [mark=N] [transparent=1] [freebind=1] [from=IP] [via=IP] [fastopen=TEXT]",
		"open or sent, or why not: a socket of any kind with options that lead around rules", 1, dial)
	probe.Add("raw", "ADDR PROTO [from=IP] [header=1] [fragment=1] [port=N] [next=N]",
		"sent, or why not: one IP packet by a raw socket", 2, raw)
	probe.Add("frame", "ADDR:PORT [from=ADDR:PORT] [proto=udp [hear=1]]",
		"reset, answered or silent, or heard by a socket of our own, or why not: a packet put on lo by a packet socket, around OUTPUT", 1, frame)
	probe.Add("share", "tcp|udp ADDR:PORT", "ok, or why not: a bind with SO_REUSEADDR and SO_REUSEPORT", 2, share)
	probe.Add("listening", "[above=PORT]", "what listens in this network namespace below that port, sorted", 0, listening)
	probe.Add("abstract", "", "names of abstract unix sockets here, or none", 0, abstract)
	probe.Add("netfilter", "nflog|queue|flows|forget", "ok, or why not (nfnetlink)", 1, netfilter)
	probe.Add("destroy", "ADDR:PORT", "ok, or why not: ends a listener of another process (sock_diag)", 1, destroy)
	probe.Add("userns", "PROBE...", "what the probe sees in a user namespace of its own, as root there, or why there is none", 1, userns)
	escapes()
	return probe.Main(args, stdout, stderr)
}

func escapes() {
	probe.Add("trace", "seize|memory|descriptor PID", "ok, or why not", 2, trace)
	probe.Add("enter", "PATH", "ok, or why not: setns to what a link of /proc stands for", 1, enter)
	probe.Add("parent", "user|pid|net|mnt|…", "ok, or why not: setns to the namespace above, or to the owner of one's own", 1, parent)
	probe.Add("mounting", "bind|FSTYPE [new=1] [data=TEXT]", "ok, or why not", 1, mounting)
	probe.Add("remount", "PATH", "ok, or why not: makes it writable", 1, remount)
	probe.Add("unix", "PATH|@NAME", "open, or why not", 1, unixDial)
	probe.Add("messages", "PATH HEX[.]...", "the answers of an ssh-agent in hex, closed or silent; after a HEX with a dot nothing more is written", 2, messages)
	probe.Add("device", "PATH", "ok when it could be opened for reading and writing", 1, device)
	probe.Add("node", "char|block MAJOR MINOR", "ok when one was made and opened", 3, node)
	probe.Add("type", "TEXT", "ok when it was put into the own terminal's input (TIOCSTI)", 1, typed)
	probe.Add("descriptors", "", "what is open beyond the three streams, or none", 0, descriptors)
	probe.Add("stop-started", "", "how many processes were stopped that were started from outside (parent 0), in a minute", 0, stopStarted)
	probe.Add("exchange-fifo", "FILE", "ok: a file and a FIFO were exchanged for each other for two seconds, again and again", 1, exchangeFIFO)
	probe.Add("slow", "CALL ID", "ok, or why not: a process, group or user gets less of the processor or of descriptors", 2, slow)
	probe.Add("flood", "PID FILE", "why not, or it goes on: signals to a process; the file says that it has begun", 2, flood)
	probe.Add("kernel", "CALL", "ok, or why not", 1, kernel)
}

// limit is the option that [probe.Add] always sets.
func limit(opts map[string]string) time.Duration {
	d, err := time.ParseDuration(opts["limit"])
	if err != nil {
		return time.Second
	}
	return d
}
