package app

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/llmdo/workshop/internal/guard/events"
	"github.com/llmdo/workshop/internal/session"
	"github.com/llmdo/workshop/tool"
)

const (
	// patient is how long a call that failed waits for what the guard has to say
	// of it: engines show a line of its log with some delay.
	patient = 150 * time.Millisecond
	// quick calls that succeed wait for nothing, others that long.
	quick   = 4 * time.Millisecond
	aMoment = 40 * time.Millisecond
	// maxToldPerson bounds the hints of one run.
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
	network := HasNetwork(w) && usesNetwork(name)
	if network {
		h.feedOnce.Do(h.feedBegins)
	}
	began := time.Now()
	return func(ctx context.Context, e session.Ended) (notes []string) {
		var signs Signs
		for _, text := range e.Output {
			signs.read(text)
		}
		places := readOnlyPlaces(w, cwdOf(e.Arguments), writtenPaths(name, e, &signs))
		if text := toldReadOnly(places); text != "" {
			notes = append(notes, text)
			h.tellPerson("", hintReadOnly(places, h.env.Shown(h.c.File)))
		}
		if !network || h.engine == nil || !h.engine.Capabilities().Contained {
			return notes
		}
		wait := aMoment
		switch {
		case len(places) > 0, time.Since(began) < quick && !e.Failed && !signs.sawNetwork():
			wait = 0 // the cause was seen, or there was no time for one
		case e.Failed || signs.sawNetwork():
			wait = patient
		}
		refused := h.feed.wait(ctx, worker, began, wait, func() { <-h.engine.AskGuard(ctx) })
		refused = signs.seen(refused, worker)
		if text := toldRefused(refused); text != "" {
			notes = append(notes, text)
		}
		for _, x := range refused {
			h.tellPerson("workshop: "+x.Text(), "")
		}
		return notes
	}
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

// feedBegins follows the guard's log until the tools are closed.
func (h *Tools) feedBegins() {
	since := time.Now().Add(-joinTime)
	go func() {
		select {
		case <-h.ready:
		case <-h.ctx.Done():
			return
		}
		if h.err == nil && h.engine != nil && h.engine.Capabilities().Contained {
			h.engine.FollowEvents(h.ctx, since, func(l events.Line) { h.feed.add(l) })
		}
	}()
}

// tellPerson says something to the person, once in a run: a line of what happened,
// or what to do.
func (h *Tools) tellPerson(line, hint string) {
	text := line + hint
	h.toldMu.Lock()
	known := text == "" || h.toldPerson[text] || len(h.toldPerson) >= maxToldPerson
	if !known {
		h.toldPerson[text] = true
	}
	h.toldMu.Unlock()
	switch {
	case known:
	case hint != "":
		h.env.hint("%s", hint)
	default:
		h.env.say("%s", line)
	}
}
