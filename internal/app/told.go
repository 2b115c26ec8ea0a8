package app

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/llmdo/workshop/internal/session"
	"github.com/llmdo/workshop/tool"
)

const (
	// aMoment is how long a call that succeeded waits for what the guard says of it
	// where there is no connection to the guard yet, as at a first one.
	aMoment = 40 * time.Millisecond
	// maxToldPerson bounds what is remembered of a run, so that it is said once.
	maxToldPerson = 100
)

// watch is the [session.Watch] of tools: the model is told what the guard refused
// during its call, and what it could not write; the person is told once what would
// allow it.
func (h *Tools) watch(worker, name string) func(context.Context, session.Ended) []string {
	w := h.c.Worker(worker)
	if w == nil {
		return nil
	}
	var guard *guardLine // nil: the tool reaches none
	if HasNetwork(w) && usesNetwork(name) && h.engine != nil && h.engine.Capabilities().Contained {
		guard = h.guard()
		go guard.open() // while the call runs
	}
	began := time.Now()
	return func(ctx context.Context, e session.Ended) (notes []string) {
		defer func() {
			if h.o.Person {
				notes = nil
			}
		}()
		var signs Signs
		for _, text := range e.Output {
			signs.read(text)
		}
		signs.noted(e.Note)
		file := h.env.Shown(h.c.File)
		if e.Failed { // else the output may say anything
			dir := cwdOf(e.Arguments)
			unwritten, unknown := placed(e.Arguments, writtenPaths(name, e, &signs))
			if h.engine != nil {
				unwritten = append(unwritten, h.engine.notMade(ctx, h.c.Source, w, dir, &signs)...)
			}
			places := h.c.readOnlyPlaces(w, dir, unwritten)
			if text := toldReadOnly(places); text != "" {
				notes = append(notes, text)
				h.tellPerson("", hintReadOnly(places, file))
			} else if unknown {
				notes = append(notes, "Something that this call wrote to is read-only in this workshop. Don't try another way, tell the person.")
			}
			if full, ok := signs.fullPlace(w, dir); ok {
				if !strings.Contains(e.Note, full.path) {
					notes = append(notes, full.told())
				}
				h.tellPerson("", full.hint(worker, file))
			}
			if held := signs.heldText(w); held != "" {
				h.tellPerson("", "of "+limitText(w)+", "+held)
			}
			if signs.sawWorktree() {
				h.tellPerson("", hintWorktree)
			}
			if signs.sawNoProcess() {
				notes = append(notes, fmt.Sprintf("Perhaps the worker's limit of %d processes and threads was reached; those left in the background count.", w.Container.Resources.PIDs.V))
				h.tellPerson("", hintPIDs(w))
			}
		}
		if signs.sawNoIdentity() {
			h.tellPerson("", hintIdentity(file))
		}
		if guard == nil {
			return notes
		}
		patience := aMoment
		if e.Failed || signs.sawNetwork() || guard.connected() {
			patience = AskTime
		}
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		failed := guard.failures(ctx, worker, began)
		refused := signs.seen(failed.refused)
		if text := toldRefused(refused); text != "" {
			notes = append(notes, text)
			if others := h.c.sharers(worker); len(others) > 0 {
				notes = append(notes, "The room is shared with "+WorkersText(others)+": what this call didn't ask for was asked for there, or by an earlier call.")
			}
		}
		if e.Failed && len(refused) == 0 && (signs.sawNetwork() || signs.sawReset()) && h.noNetwork(worker) {
			notes = append(notes, "The worker's network doesn't run: tell the person.")
		}
		h.tellRefused(h.env.AgainstFile(context.WithoutCancel(ctx), h.c.ProjectRef, worker, refused))
		h.tellPerson("", failed.hintUnreachable())
		return notes
	}
}

// sharers are the other workers of a worker's room: the guard can't tell them apart.
func (p *Project) sharers(worker string) []string {
	if p.Compiled == nil || p.Compiled.Policy == nil {
		return nil
	}
	room := policyOf(p.Compiled.Policy, worker)
	if room == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(room.Workers), func(w string) bool { return w == worker })
}

// noNetwork reports whether a worker has none since its room or the guard ended, and
// tells the person.
func (h *Tools) noNetwork(worker string) bool {
	ctx, cancel := context.WithTimeout(h.ctx, AskTime)
	defer cancel()
	seen, err := h.engine.Look(ctx, false)
	if err != nil {
		return false
	}
	text := stoppedText(seen, worker)
	h.tellPerson("", text)
	return text != ""
}

// usesNetwork reports whether a tool may reach the network.
func usesNetwork(name string) bool {
	_, _, server := tool.SplitMCP(name)
	return server || name == tool.Shell || name == tool.FetchURL
}

// writtenPaths are those that a call could not write, as its output shows.
func writtenPaths(name string, e session.Ended, signs *Signs) []string {
	if name != tool.WriteFile && name != tool.EditFile {
		return signs.paths()
	}
	var a struct{ Path string }
	readOnly := slices.ContainsFunc(e.Output, func(text string) bool { return strings.Contains(text, "read-only") })
	if !readOnly || json.Unmarshal(e.Arguments, &a) != nil {
		return nil
	}
	return []string{a.Path}
}

// placed leaves out relative paths where a command changed its directory: nobody knows
// what they are below. unknown: there were some.
func placed(args json.RawMessage, paths []string) (known []string, unknown bool) {
	var a struct {
		Command string
		Argv    []string
	}
	_ = json.Unmarshal(args, &a) // a tool without a command changes none
	if !changesDirectory().MatchString(a.Command + " " + strings.Join(a.Argv, " ")) {
		return paths, false
	}
	for _, p := range paths {
		if path.IsAbs(p) {
			known = append(known, p)
		}
	}
	return known, len(known) < len(paths)
}

// changesDirectory matches a command that runs something in another directory.
var changesDirectory = pattern(`(^|[\s;&|({])(cd|pushd|-C)\s`)

// cwdOf is the directory that a call names; empty: none.
func cwdOf(args json.RawMessage) string {
	var a struct{ Cwd string }
	_ = json.Unmarshal(args, &a) // a tool without it works in the worker's directory
	return a.Cwd
}

// tellRefused says to the person what was refused during a call and wasn't said before,
// in as many lines as somebody reads.
func (h *Tools) tellRefused(list []Refusal) {
	shown, more := 0, 0
	for _, x := range list {
		switch {
		case shown == maxDenials:
			more++
		case h.untold(x.opens()):
			h.event(Event{Kind: Notice, Text: "workshop: " + x.Text()})
			shown++
		}
	}
	if more > 0 {
		h.event(Event{Kind: Notice, Text: fmt.Sprintf("workshop: and %d more refused: `workshop firewall log --denied`", more)})
	}
}

// tellPerson says something to the person, once in a run: a line of what happened,
// or what to do. It reports whether it was new.
func (h *Tools) tellPerson(line, hint string) bool {
	if !h.untold(line + hint) {
		return false
	}
	e := Event{Kind: Notice, Text: line}
	if hint != "" {
		e = Event{Kind: Hint, Text: hint}
	}
	h.event(e)
	return true
}

// event says something now or, with [ToolsOptions].Later, later.
func (h *Tools) event(e Event) {
	if !h.o.Later {
		h.env.event(e)
		return
	}
	h.toldMu.Lock()
	defer h.toldMu.Unlock()
	h.later = append(h.later, e)
}

// SayLater says what waits: who prints a call's result first has it in the order of an
// error and its hints.
func (h *Tools) SayLater() {
	h.toldMu.Lock()
	defer h.toldMu.Unlock()
	for _, e := range h.later {
		h.env.event(e)
	}
	h.later = nil
}

// untold reports whether the person wasn't told something yet, and is to be.
func (h *Tools) untold(text string) bool {
	h.toldMu.Lock()
	defer h.toldMu.Unlock()
	if text == "" || h.toldPerson[text] {
		return false
	}
	if len(h.toldPerson) >= maxToldPerson {
		clear(h.toldPerson) // rather once more than never again
	}
	h.toldPerson[text] = true
	return true
}
