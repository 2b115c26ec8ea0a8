package app

import (
	"errors"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/llmdo/workshop/internal/callrule/shellline"
	"github.com/llmdo/workshop/internal/facts"
	"github.com/llmdo/workshop/internal/lib/hostlink"
	"github.com/llmdo/workshop/internal/lib/subpath"
	"github.com/llmdo/workshop/internal/session/approval"
	"github.com/llmdo/workshop/internal/trust"
	"github.com/llmdo/workshop/workshop"
)

// ApprovalOptions run what the workshop asks about without asking, or refuse it.
type ApprovalOptions struct {
	ApproveAll, Strict bool
	// OneCall says that one call of a command line is decided on.
	OneCall bool
}

// approvalGate decides on the calls of one session: by the workshop, capped by
// the user's settings. file is the workshop.yaml. Who is asked is what the
// settings name, else asker, which may be nil: then nobody is.
func (env *Env) approvalGate(w *workshop.Workshop, file string, o ApprovalOptions, asker approval.Asker) (*approval.Gate, error) {
	set, err := env.approvalSettings()
	if err != nil {
		return nil, err
	}
	if set.asker != nil {
		asker = set.asker
	}
	g := &approval.Gate{
		Policy: approval.Policy{
			Rules: w.Approvals.Rules, Default: w.Approvals.Default.V, Given: w.Approvals.Default.Source.Range.Filename != "",
			Max: set.max, ApproveAll: o.ApproveAll, Strict: o.Strict,
			Workdirs: map[string]string{}, Obeyed: func(worker, at string) bool { return obeyed(w, filepath.Dir(file), worker, at) },
		},
		Asker: asker, File: env.Shown(file), OneCall: o.OneCall,
	}
	for i := range w.Workers {
		g.Policy.Workdirs[w.Workers[i].Name] = w.Workers[i].Container.Workdir.V
	}
	dir := env.ConfigDir()
	if dir == "" {
		return g, nil // nowhere to keep what is agreed to
	}
	keep := &keptRules{env: env, file: file, accepted: trust.Rules[approval.Rule](dir)}
	if g.Policy.Accepted, err = keep.accepted.Of(RealPath(file)); err != nil {
		return nil, Fail(CodeUsage, "approvals: %w", err)
	}
	g.Remember, g.Settings = keep, filepath.Join(dir, "config.yaml")
	return g, nil
}

// Asks reports whether calls are approved without the client: by a person whom the
// settings name, or all at once.
func (h *Tools) Asks() bool {
	set, err := h.env.approvalSettings()
	return h.o.ApproveAll || err == nil && set.asker != nil
}

// obeyed reports whether programs of the host run or obey a file of a worker: it is in a
// read-write mount, and of a name that is watched, or what the workshop in dir is loaded
// from (B8).
func obeyed(w *workshop.Workshop, dir, worker, file string) bool {
	i := slices.IndexFunc(w.Workers, func(x workshop.Worker) bool { return x.Name == worker })
	if i < 0 {
		return false
	}
	m := workshop.MountAt(w.Workers[i].Container.Mounts, file)
	if m == nil || !m.ReadWrite {
		return false
	}
	below := strings.TrimPrefix(file, m.Target.V)
	if facts.Watched(path.Join(m.Source.V, below)) {
		return true
	}
	source := filepath.FromSlash(m.Source.V)
	if !filepath.IsAbs(source) {
		source = filepath.Join(dir, source)
	}
	at, root := path.Join(filepath.ToSlash(RealPath(source)), below), filepath.ToSlash(RealPath(dir))
	return slices.ContainsFunc(definedBy(w), func(name string) bool {
		name = path.Join(root, name)
		return subpath.Within(at, name) || subpath.Within(followed(at), followed(name))
	})
}

// followed is where a path leads by symbolic links, with slashes.
func followed(p string) string {
	end, _ := hostlink.Follow(filepath.FromSlash(p), nil) // too long: the path itself
	return filepath.ToSlash(end)
}

// definedBy are the files and directories that the workshop is loaded from, relative to
// its directory: those that grant, and schemas of results. Files of variables are watched.
func definedBy(w *workshop.Workshop) []string {
	out := w.GrantingFiles()
	for i := range w.Workers {
		if w.Workers[i].From != "" {
			continue
		}
		if file := w.Workers[i].File; file != "" {
			out = append(out, file) // which may be a link out of its directory
		}
		if schema := w.Workers[i].Definition.ResultFile.Name; schema != "" {
			out = append(out, path.Join(path.Dir(w.Workers[i].File), schema))
		}
	}
	return out
}

// approvalSettings are the user's settings for approvals.
type approvalSettings struct {
	max   workshop.Approval
	asker approval.Asker
}

func (env *Env) approvalSettings() (approvalSettings, error) {
	s := approvalSettings{max: workshop.Approval(env.Settings.ApprovalsMax)}
	argv, socket, err := env.approvers()
	switch {
	case len(argv) > 0:
		s.asker = &approval.Command{Argv: argv, Dir: env.Dir}
	case socket != "":
		s.asker = &approval.Socket{Path: socket}
	}
	return s, err
}

// approvers are what the settings name: a program, a socket, or neither.
func (env *Env) approvers() (argv []string, socket string, err error) {
	command, socket := env.Settings.ApprovalsCommand, env.Settings.ApprovalsSocket
	switch {
	case command != "" && socket != "":
		return nil, "", Fail(CodeUsage, "settings: approvals_command and approvals_socket are both set").Hint("one of them is asked; remove the other")
	case command != "":
		argv, ok := shellline.ParseLine(command)
		if runtime.GOOS == "windows" && !ok {
			argv, ok = []string{command}, true
		}
		if !ok {
			return nil, "", Fail(CodeUsage, "setting approvals_command: %q is not a program with its arguments", Printable(command)).
				Hint("it runs without a shell; put what needs a shell into a script")
		}
		if strings.ContainsAny(argv[0], `/\\`) && !filepath.IsAbs(argv[0]) {
			return nil, "", Fail(CodeUsage, "setting approvals_command: %q is not an absolute path", Printable(argv[0])).
				Hint("relative to the directory of a workshop, it would be a program that others write; a name alone is looked for in PATH")
		}
		return argv, "", nil
	case socket != "":
		if !filepath.IsAbs(socket) {
			return nil, "", Fail(CodeUsage, "setting approvals_socket: %q is not an absolute path", Printable(socket))
		}
	}
	return nil, socket, nil
}

// checkApprovalsMax wants one of the words, written out: another one would be
// less than was meant, or more.
func checkApprovalsMax(s string) error {
	switch workshop.Approval(s) {
	case workshop.ApprovalAuto, workshop.ApprovalAsk, workshop.ApprovalDeny:
		return nil
	}
	return errors.New("it is auto, ask or deny")
}
