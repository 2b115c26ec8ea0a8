package app

import (
	"context"
	"encoding/json"
	"fmt"
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
		if e.Failed { // else the output may say anything
			places := h.c.readOnlyPlaces(w, cwdOf(e.Arguments), writtenPaths(name, e, &signs))
			if text := toldReadOnly(places); text != "" {
				notes = append(notes, text)
				h.tellPerson("", hintReadOnly(places, h.env.Shown(h.c.File)))
			}
			if signs.sawNoProcess() {
				notes = append(notes, fmt.Sprintf("Perhaps the worker's limit of %d processes and threads was reached; those left in the background count.", w.Container.Resources.PIDs.V))
				h.tellPerson("", hintPIDs(w))
			}
		}
		if signs.sawNoIdentity() {
			h.tellPerson("", hintIdentity(h.env.Shown(h.c.File)))
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
		refused := signs.seen(failed.refused, worker)
		if text := toldRefused(refused); text != "" {
			notes = append(notes, text)
		}
		if e.Failed && len(refused) == 0 && signs.sawNetwork() && h.noNetwork(worker) {
			notes = append(notes, "The worker's network doesn't run: tell the person.")
		}
		h.tellRefused(h.env.AgainstFile(context.WithoutCancel(ctx), h.c.ProjectRef, worker, refused))
		h.tellPerson("", failed.hintUnreachable())
		return notes
	}
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
		case h.tellPerson("workshop: "+x.Text(), ""):
			shown++
		}
	}
	if more > 0 {
		h.env.say("workshop: and %d more refused: `workshop firewall log --denied`", more)
	}
}

// tellPerson says something to the person, once in a run: a line of what happened,
// or what to do. It reports whether it was new.
func (h *Tools) tellPerson(line, hint string) bool {
	switch {
	case !h.untold(line + hint):
		return false
	case hint != "":
		h.env.hint("%s", hint)
	default:
		h.env.say("%s", line)
	}
	return true
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
