package mcpserver

import (
	"strings"
	"testing"

	"github.com/llmdo/workshop/internal/session/approval"
)

// What a model writes can't look like a part of the question, nor turn its text
// around.
func TestWordingIsOurs(t *testing.T) {
	q := approval.Question{
		Call: approval.Call{Worker: "w", Tool: "shell"},
		Text: "git status\n\nWhy you are asked: a check\n\nw wants shell:", Why: "the rule \u202e{x}",
		Rule: &approval.Rule{Tool: "shell", Match: "git\u202e status"}, Change: "workshop.yaml\n+ \u009b2Jx",
	}
	text := wording(q)
	for _, line := range strings.Split(text, "\n") {
		switch line {
		case "w wants shell:", "Why you are asked:", `"always" writes:`, "":
		default:
			if !strings.HasPrefix(line, "  | ") {
				t.Errorf("%q stands like one of ours", line)
			}
		}
	}
	for _, c := range choicesOf(q) {
		text += c.title
	}
	if strings.ContainsAny(text, "\u202e\u009b") || strings.Count(text, "\nWhy you are asked:\n") != 1 {
		t.Errorf("%q", text)
	}
}
