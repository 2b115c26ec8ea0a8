package verify

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const limitsWaived = "waived at `up` by --without-limits"

func (w *Worker) limits() Line {
	if slices.Contains(w.NotHeld, "B5") {
		return notTested("B5", w.Name, limitsWaived)
	}
	e := about("B5", w.Name)
	e.tried("the files of its control groups")
	if w.VM {
		e.tried("they bound its machine, whose guest bounds its processes")
	} else if w.OwnKernel {
		e.tried("they bound its kernel, which needs several threads for a process")
		w.files(e) // is in these groups
	}
	if p := w.process(e); p != nil && !p.unread(e, "groups") && p.Groups != nil {
		g := p.Groups
		e.control(g.Member, "the groups list process %s: %v", p.Status["Pid"], g.Member)
		w.limit(e, g.Memory > 0 && g.Memory <= w.Memory, "memory", strconv.FormatInt(g.Memory, 10), strconv.FormatInt(w.Memory, 10), g.Memory == 0)
		e.outside(g.Swap == 0, "swap beyond memory %d", g.Swap)
		w.limit(e, g.CPUs > 0 && g.CPUs <= w.CPUs*1.01, "cpu", fmt.Sprintf("%.3g", g.CPUs), fmt.Sprintf("%.3g", w.CPUs), g.CPUs == 0)
		w.limit(e, g.PIDs > 0 && g.PIDs <= w.PIDs, "pids", strconv.FormatInt(g.PIDs, 10), strconv.FormatInt(w.PIDs, 10), g.PIDs == 0)
	}
	if s := w.Outside.settings(); s != nil {
		e.outside(s.Memory > 0 && s.Swap == s.Memory && s.CPUs > 0 && s.PIDs > 0, "the engine: memory %d, with swap %d, cpu %.3g, pids %d", s.Memory, s.Swap, s.CPUs, s.PIDs)
	}
	if w.Outside != nil && w.Outside.Why == "" {
		e.outside(w.Outside.LogBounded, "what it prints is kept up to a size: %v", w.Outside.LogBounded)
	}
	return e.line()
}

// limit compares a limit with the file's. Where the file changed since, another one is
// no break; none is.
func (w *Worker) limit(e *evidence, ok bool, name, is, want string, none bool) {
	if !ok && w.Changed && !none {
		e.miss("%s is %s and not %s: %s", name, is, want, fileChanged)
		return
	}
	e.outside(ok, "%s %s of %s", name, is, want)
}

const fileChanged = "the file changed since `up`; `workshop up` applies it"

// anyLimits is for what isn't in the file.
func (p *Process) anyLimits(e *evidence) {
	if p.unread(e, "groups") || p.Groups == nil {
		return
	}
	g := p.Groups
	e.control(g.Member, "the groups list process %s: %v", p.Status["Pid"], g.Member)
	e.outside(g.Memory > 0 && g.Swap == 0 && g.CPUs > 0 && g.PIDs > 0, "memory %d, swap beyond it %d, cpu %.3g, pids %d", g.Memory, g.Swap, g.CPUs, g.PIDs)
}

func (w *Worker) bounds() Line {
	e := about("B60", w.Name)
	e.tried("limits of open files and queued signals of its main process")
	if p := w.process(e); p != nil && !p.unread(e, "limits") {
		p.isMain(e)
		for _, name := range []string{"Max open files", "Max pending signals"} {
			n, err := strconv.Atoi(p.Limits[name])
			e.outside(err == nil && n > 0 && n <= 1<<16 && (name != "Max pending signals" || n <= 4096), "%s %s", strings.ToLower(name[4:]), p.Limits[name])
		}
	}
	return e.part(disruptiveHere)
}
