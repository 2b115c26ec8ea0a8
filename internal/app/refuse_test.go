package app

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/workshop"
)

// TestRefuseIsShort: what lacks for one promise is one line, with one command.
func TestRefuseIsShort(t *testing.T) {
	var i engine.Info
	i.Limits.Seccomp = true
	for _, name := range []string{"memory", "swap", "cpu", "pids"} {
		why := "no group"
		if name == "pids" {
			why = "no controller"
		}
		i.Findings = append(i.Findings, engine.Finding{Promise: "B5", Name: name, Meaning: why, Do: "make one"})
	}
	refused := func(do string) *Failure {
		for at := range i.Findings {
			i.Findings[at].Do = do
		}
		f, ok := errors.AsType[*Failure](refuse(&Project{Source: &Source{Workshop: &workshop.Workshop{}}}, i))
		if !ok {
			t.Fatal("not refused")
		}
		return f
	}
	short := refused("make one: `mkdir x`. Or do without")
	if want := "\nmemory, swap, cpu, pids: no group (B5)"; !strings.HasSuffix(short.Error(), want) {
		t.Errorf("got %q, want the end %q", short, want)
	}
	if got, want := short.AllHints(), []string{"make one: `mkdir x`"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := refused(strings.Repeat("very long ", 40)).AllHints(); len(got) != 1 || !strings.Contains(got[0], "`workshop doctor --engine ") {
		t.Errorf("a long remedy: %q", got)
	}
}
