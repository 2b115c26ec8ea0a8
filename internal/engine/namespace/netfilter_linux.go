package namespace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/room/handover"
	"github.com/llmdo/workshop/internal/room/kernelsupport"
)

// netfilter is what is known of the kernel's netfilter before a room is created. The
// room's own check decides.
type netfilter struct {
	missing []string // modules that the kernel lacks and can't load
	unsure  bool     // the caller may not ask, and there is no program to do it
}

func (n netfilter) load() string { return "`sudo modprobe -a " + strings.Join(n.missing, " ") + "`" }

// lookForNetfilter asks the kernel. Without root the caller may ask only in its own
// network namespace, for which a process is started, unless all modules are visibly
// loaded.
func (e *Engine) lookForNetfilter() netfilter {
	missing, err := kernelsupport.Missing(kernelsupport.Extensions())
	switch {
	case err == nil, errors.Is(err, kernelsupport.ErrNobody):
		return netfilter{missing: missing}
	case modulesLoaded():
		return netfilter{}
	case e.rootless && e.whyNot() == nil && e.hasProgram():
		if missing, err := e.askApart(); err == nil {
			return netfilter{missing: missing}
		}
	}
	return netfilter{unsure: true}
}

// modulesLoaded reports whether all modules are loaded; it doesn't see those built
// into the kernel.
func modulesLoaded() bool {
	names := []string{"nfnetlink", "nf_tables", "nft_compat", "nft_chain_nat"}
	for _, x := range kernelsupport.Extensions() {
		names = append(names, x.Module())
	}
	for _, name := range names {
		if _, err := os.Stat("/sys/module/" + name); err != nil {
			return false
		}
	}
	return true
}

// askTime bounds the process of askApart, which takes milliseconds.
const askTime = 5 * time.Second

// askApart asks in new user and network namespaces.
func (e *Engine) askApart() ([]string, error) {
	dir, _, err := e.programDir()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), askTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(dir, programName), "contain", "look")
	cmd.Env, cmd.Dir = []string{}, "/"
	var out bytes.Buffer
	cmd.Stdout = &out
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
	}
	if err := cmd.Run(); err != nil {
		return nil, err
	}
	return strings.Fields(out.String()), nil
}

// netfilterFinding reports by what means rooms are closed. Nothing is refused for it.
func (e *Engine) netfilterFinding() engine.Finding {
	f := engine.Finding{Name: "nf_tables", Held: true, Rooms: true, Meaning: "rooms are made by nf_tables"}
	switch n := e.netfilter(); {
	case n.unsure:
		f.Meaning = "rooms are made by nf_tables, or by AnyIP if the kernel lacks it, which can't be checked before"
	case len(n.missing) > 0:
		f.Held, f.Do = false, n.load()+" if the kernel has them, or use a kernel with them: rooms then have all features"
		f.Meaning = fmt.Sprintf("rooms are made by AnyIP, as the kernel lacks %s: no `network: open`, no --learn, %d ports besides 80 and 443; denials are counted without the uid", strings.Join(n.missing, ", "), handover.MaxListeners)
	}
	return f
}

// checkRooms refuses what requires a room with netfilter.
func (e *Engine) checkRooms(c *compose.Compiled) error {
	if c.Policy == nil {
		return nil
	}
	for _, r := range c.Policy.Rooms {
		n := 0
		for _, p := range firewall.SubtractPorts(firewall.RoomPorts(r), []firewall.PortRange{{First: firewall.PortProxy, Last: firewall.PortProxy}}) {
			n += int(p.Last-p.First) + 1
		}
		var why, do string
		switch {
		case r.Mode == firewall.None, r.Mode != firewall.Open && n <= handover.MaxListeners:
			continue
		case r.Mode == firewall.Open:
			why, do = "`network: open` leads all ports to the guard", "list the needed hosts with `mode: restricted`"
		default:
			why, do = fmt.Sprintf("its lines allow %d ports besides 80 and 443, and at most %d can be opened", n, handover.MaxListeners), "allow fewer ports"
		}
		if err := e.needsNetfilter(strings.Join(r.Workers, ", ")+": "+why, do); err != nil {
			return err
		}
	}
	return nil
}

// needsNetfilter refuses something on a kernel without netfilter; if that isn't
// known, the room refuses it.
func (e *Engine) needsNetfilter(why, do string) error {
	n := e.netfilter()
	if len(n.missing) == 0 {
		return nil
	}
	return &engine.RefusedError{
		Reason: fmt.Sprintf("%s; this kernel lacks %s, which a room needs for that", why, strings.Join(n.missing, ", ")),
		Do:     n.load() + " loads it if the kernel has it; or " + do,
	}
}

// CanLearn refuses learning if rooms can't open ports that no line has.
func (e *Engine) CanLearn() error {
	return e.needsNetfilter("--learn opens every port", "learn on another machine, and commit the lines of `workshop firewall suggest`")
}
