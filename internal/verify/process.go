package verify

import (
	"strings"
)

func (w *Worker) mainProcess() Line {
	e := w.begin("B12")
	e.tried("name, arguments and PID of its main process")
	e.says(w.Seen, "pid1.Name", "the name of PID 1:", initName)
	if p := w.process(e); p != nil {
		p.isMain(e)
		name, command := initName, "gate"
		if w.VM {
			name, command = vmName, "run"
		}
		e.outside(p.Status["Name"] == name, "this machine's kernel calls it %s", p.Status["Name"])
		e.outside(len(p.Args) >= 2 && strings.HasSuffix(p.Args[0], "/"+name) && p.Args[1] == command, "its arguments begin %s", strings.Join(p.Args[:min(2, len(p.Args))], " "))
	} else if s := w.Outside.settings(); s != nil {
		s.mainProcess(e)
	}
	return e.line()
}

// mainProcess by the engine's settings.
func (s *settingsView) mainProcess(e *evidence) {
	e.outside(len(s.Main) >= 2 && strings.HasSuffix(s.Main[0], "/"+initName) && s.Main[1] == "gate", "the engine: it is %s", strings.Join(s.Main[:min(2, len(s.Main))], " "))
}

func (w *Worker) kernel() Line {
	e := about("B30", w.Name)
	e.tried("its main process by this machine's kernel")
	if p := w.process(e); p != nil {
		p.isMain(e)
		e.outside(p.Status["Name"] != "", "process %s of this machine's kernel is its main process", p.Status["Pid"])
	}
	if s := w.Outside.settings(); s != nil {
		e.outside(true, "the engine: runtime %s", s.Runtime)
	}
	return e.line()
}

func (w *Worker) restarts() Line {
	e := about("B21", w.Name)
	e.tried("the restart policy: a worker that comes back by itself would be there before its room")
	if w.Outside == nil || w.Outside.Why != "" {
		w.process(e)
		return e.line()
	}
	e.outside(w.Outside.Restart == "no", "restart policy %s", w.Outside.Restart)
	if p := w.Outside.Process; p != nil && w.Outside.NoSetuid && len(strings.Fields(p.Status["NSpid"])) < 3 {
		e.outside(false, "it isn't below a PID namespace of its supervisor, and would outlive it")
	}
	return e.part(disruptiveHere)
}

func (w *Worker) terminal() Line {
	e := about("B43", w.Name)
	e.tried("the terminals of its processes")
	if p := w.process(e); p != nil {
		p.isMain(e)
		e.outside(p.Status["tty"] == "0", "its main process has no terminal (tty_nr %s)", p.Status["tty"])
	}
	return e.part(elsewhere)
}

func (w *Worker) door() Line {
	e := w.begin("B41")
	e.tried("tools that its file doesn't list, asked of its toolbox past the host; reading workshop-init, and writing where the host connects")
	if w.OwnKernel { // it has no door, and its kernel has to read workshop-init
		e.refused(w.Seen, "refused", append([]string{"ENOENT"}, readOnly...), "init.door", "write./opt/workshop/"+tryName)
	} else {
		e.refused(w.Seen, "refused", readOnly, "init.workshop-init", "init.door")
	}
	e.works(w.Seen, "control.write", "a file in /tmp", "ok")
	t := &w.Toolbox
	var fine []string
	for _, a := range t.Unlisted {
		switch {
		case a.Answer == NotOffered:
			fine = append(fine, a.What)
		case a.Answer == "no answer":
			e.miss("its toolbox didn't answer to %s", a.What)
		case w.Changed:
			e.miss("%s: %s: %s", a.What, a.Answer, fileChanged)
		default:
			e.inside(false, "%s: %s", a.What, a.Answer)
		}
	}
	if len(fine) > 0 {
		e.inside(true, "not offered: %s", strings.Join(fine, ", "))
	}
	if t.Why != "" || len(t.Unlisted) == 0 {
		e.miss("its toolbox: %s", t.Why)
	} else {
		e.control(t.Control != "" && !strings.HasSuffix(t.Control, NotOffered), "its toolbox: %s", t.Control)
	}
	if p := w.files(e); p != nil {
		for _, m := range p.Mounts {
			if m.Target == "/run/workshop" || m.Target == "/opt/workshop" {
				e.outside(m.Has("ro"), "%s is mounted %s", m.Target, mode(m.Has("ro")))
			}
		}
	}
	return e.line()
}
