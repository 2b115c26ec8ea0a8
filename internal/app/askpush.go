package app

import (
	"context"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/llmdo/workshop/internal/broker"
	"github.com/llmdo/workshop/internal/guard/lease"
	"github.com/llmdo/workshop/internal/session/approval"
)

// displayVariables are those by which an approvals_command finds the user's screen.
var displayVariables = []string{"DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY"}

// pushApprovals says whom the broker asks about pushes; nil: nobody, which is said where a
// credential wants it.
func (env *Env) pushApprovals(c *creds) (*broker.Approvals, error) {
	var names []string
	for _, l := range c.lines {
		if c.byName[l.Credential].AskPush {
			names = appendNew(names, l.Credential)
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	argv, socket, err := env.approvers()
	if err != nil {
		return nil, err
	}
	a := &broker.Approvals{Command: slices.Clone(argv), Socket: socket}
	switch {
	case len(argv) > 0:
		// The broker has another directory, and no variables of this command's.
		if a.Command[0], err = exec.LookPath(argv[0]); err == nil {
			a.Command[0], err = filepath.Abs(a.Command[0])
		}
		if err != nil {
			return nil, Fail(CodeUsage, "setting approvals_command: %w", err).Hint("name a program that is installed")
		}
		for _, name := range displayVariables {
			if v, ok := env.Lookup(name); ok {
				a.Display = append(a.Display, name+"="+v)
			}
		}
	case socket == "":
		env.warn("each push with %s is asked about, and nobody can be asked: pushes are refused", strings.Join(names, ", "))
		env.hint("set approvals_command or approvals_socket in %s, and run this again", env.Shown(env.userSettings()))
		return nil, nil
	}
	return a, nil
}

// askPush asks the user about a push, as the settings of the command say that used the broker
// last.
func (env *Env) askPush(ctx context.Context, u broker.Use, m *lease.Ask) (lease.Decided, error) {
	if u.Approvals == nil {
		return lease.Nobody, nil
	}
	p := approval.Push{Workers: []string{"a worker of the room " + m.Room}, Credential: m.Credential, Host: m.Host, Repository: m.Repository}
	if i := slices.IndexFunc(u.Lines, func(l broker.Line) bool { return l.Line == m.Line && len(l.Workers) > 0 }); i >= 0 {
		p.Workers = u.Lines[i].Workers
	}
	for _, r := range m.Refs {
		p.Refs = append(p.Refs, approval.Ref(r))
	}
	q, err := p.Question()
	if err != nil {
		return lease.Unanswered, err
	}
	var asker approval.Asker = &approval.Socket{Path: u.Approvals.Socket, Timeout: lease.AskTime}
	if len(u.Approvals.Command) > 0 {
		asker = &approval.Command{Argv: u.Approvals.Command, Env: append(env.placesAndCommand(), u.Approvals.Display...), Dir: rootOf(u.Directory), Timeout: lease.AskTime}
	}
	answer, err := asker.Ask(ctx, q)
	switch {
	case err != nil:
		return lease.Unanswered, err
	case answer == approval.Once:
		return lease.Yes, nil
	}
	return lease.No, nil
}

// rootOf is the root directory of a path's volume: nobody's project, and always there.
func rootOf(path string) string { return filepath.VolumeName(path) + string(filepath.Separator) }

// placesAndCommand are variables for a program that the broker starts: where the user's files
// are, and what commands of sources get.
func (env *Env) placesAndCommand() []string {
	out := env.commandVariables()
	for name, value := range env.Places() {
		out = append(out, name+"="+value)
	}
	return out
}
