package doctor

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/llmdo/workshop/internal/lib/shellquote"
)

// name is whose port it is.
func (c PortClaim) name() string {
	return fmt.Sprintf("worker %s of project %s (%s)", c.Worker, c.Project, c.Dir)
}

// names are those of several, each in its words.
func names(all []PortClaim) string {
	texts := make([]string, len(all))
	for i, c := range all {
		texts[i] = c.name()
	}
	return strings.Join(texts, " and ")
}

// what is the port with how the worker has it.
func (c PortClaim) what() string {
	if c.Reserved {
		return fmt.Sprintf("%s, which the file of %s reserves,", c.Address(), c.name())
	}
	return fmt.Sprintf("%s, which was chosen for %s,", c.Address(), c.name())
}

// open is how a file leaves the number open.
func (c PortClaim) open() string { return fmt.Sprintf("`\"0:%d\"`", c.Target) }

// command is one that works on the claim's workshop, wherever it is pasted.
func (c PortClaim) command(words string) string {
	return fmt.Sprintf("`workshop -f %s -p %s %s`", shellquote.Quote(cmp.Or(c.File, c.Dir)), shellquote.Quote(c.Project), words)
}

func (c PortClaim) release() string {
	return c.command(fmt.Sprintf("port --release %s %d", shellquote.Quote(c.Worker), c.Target))
}

// end is the command that ends a project. Its name is a label of containers.
func end(project string) string {
	return "`workshop -p " + shellquote.Quote(project) + " down`"
}

// leftover is the finding on a lease that nobody needs any more.
func (c PortClaim) leftover() PortFinding {
	name, why := PortDirectoryGone, "its directory is gone"
	if c.State != PortGone {
		name, why = PortStale, "the file doesn't publish that port any more"
	}
	f := portFinding(name, Warning, c.Address(), fmt.Sprintf("%s is leased to %s, and %s", c.Address(), c.name(), why), "give it up: `workshop doctor ports --fix`")
	f.Fixable, f.Lease = true, &c.Lease
	return f
}

// privileged is the finding on a port that an engine without privileges can't listen on.
func (c PortClaim) privileged(first uint16) PortFinding {
	return portFinding(PortPrivileged, Error, c.Address(), fmt.Sprintf("only root may listen on %s others may from %d on", strings.TrimSuffix(c.what(), ",")+":", first),
		fmt.Sprintf("let them: `sudo sysctl net.ipv4.ip_unprivileged_port_start=%d`, or publish a higher number", c.Port))
}

// text names a program. Its own name is what it says itself.
func (l Listener) text(seen bool) string {
	if !seen {
		return "a program that can't be seen from here"
	}
	user := cmp.Or(l.User, fmt.Sprintf("uid %d", l.UID))
	if l.PID == 0 {
		return "a program of " + user
	}
	return fmt.Sprintf("%s (pid %d) of %s", cmp.Or(l.Program, "a program"), l.PID, user)
}

// look says how to see what a program is.
func (l Listener) look(port uint16) string {
	if l.PID == 0 {
		return fmt.Sprintf("see what it is: `sudo ss -Hltnp 'sport = :%d'`", port)
	}
	return fmt.Sprintf("see what it is: `ps -fp %d`", l.PID)
}
