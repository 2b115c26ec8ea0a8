package app

import (
	"strings"
	"testing"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/workshop"
)

// TestRefuseSaysAReasonOnce: limits that lack for one reason are one line.
func TestRefuseSaysAReasonOnce(t *testing.T) {
	var i engine.Info
	i.Limits.Seccomp = true
	for _, name := range []string{"memory", "swap", "cpu", "pids"} {
		why := "no group"
		if name == "pids" {
			why = "no controller"
		}
		i.Findings = append(i.Findings, engine.Finding{Promise: "B5", Name: name, Meaning: why, Do: "make one"})
	}
	err := refuse(&Project{Source: &Source{Workshop: &workshop.Workshop{}}}, i)
	if want := "B5: memory, swap, cpu: can't be enforced there: no group\nB5: pids: can't be enforced there: no controller"; err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%v", err)
	}
}
