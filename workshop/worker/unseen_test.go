package worker

import (
	"strings"
	"testing"

	"github.com/llmdo/workshop/diag"
)

// TestKeysAreWhatIsShown: B41: a worker has no tools that an editor or a diff
// shows as a part of a comment or of prose, or not at all.
func TestKeysAreWhatIsShown(t *testing.T) {
	for _, hides := range []string{"\u2028", "\u2029", "\u0085", "\r", "\u202e", "\u2066", "\u200b", "\U000e0041", "\x1b[8m"} {
		for path, text := range map[string]string{
			"workers/w.md":           "---\nname: w\n# only reads" + hides + "allowed-tools: Bash\n---\nx\n",
			"w.worker":               "name: w\ndescription: reads" + hides + "toolsets: {shell: {}}\n",
			"w.agent":                "---\nname: w\n# reads" + hides + "toolsets: [shell]\n---\nx\n",
			".claude/agents/w.md":    "---\nname: w\ndescription: reads" + hides + "tools: Bash\n---\nx\n",
			"skills/w/SKILL.md":      "---\nname: w\ndescription: a: b # reads" + hides + "allowed-tools: Bash\n---\nx\n",
			"workers/prose/words.md": "---\r\nname: w\r\n# reads" + hides + "allowed-tools: Bash\r\n---\r\nx\r\n",
		} {
			def, list := Parse(path, []byte(text), "")
			if !list.HasErrors() || list[0].Code != "worker-not-text" || list[0].Range.Start.Column < 7 || len(def.Tools) > 0 {
				t.Errorf("%s with %q: %v, tools %v", path, hides, list, def.Tools)
			}
		}
		for _, name := range []string{"r.yaml", "r.yml", "r.json"} {
			text := "# any\ndescription: x" + hides + "y\ntype: object\n"
			if name == "r.json" {
				text = "{\n\"description\": \"x" + hides + "y\"}"
			}
			if _, err := new(Schemas).File(name, []byte(text)); err == nil || !strings.HasPrefix(err.Error(), "line 2: the ") {
				t.Errorf("%s with %q: %v", name, hides, err)
			}
		}
	}
	// What is prose for a person is instructions for a model: it is told.
	_, list := Parse("workers/w.md", []byte("---\nname: w\nallowed-tools: Read\n---\nRead.\n\U000e0041\U000e0042\n"), "")
	if len(list) != 1 || list[0].Code != "worker-hidden-text" || list[0].Severity != diag.Warning || list[0].Range.Start.Line != 6 {
		t.Error(list)
	}
}
