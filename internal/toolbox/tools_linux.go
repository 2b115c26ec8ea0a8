package toolbox

import (
	"github.com/llmdo/workshop/internal/tool"
)

// tools by name: what each is given and gives, and how it is run.
var tools = map[string]runner{
	tool.Shell: typed[tool.ShellArgs, tool.ShellResult]{f: runShell, check: shellProblems, timed: true},
}
