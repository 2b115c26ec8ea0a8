package cli

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/command"
)

const docsFile = "../../docs/cli.md"

// TestDocs keeps docs/cli.md what --help says.
func TestDocs(t *testing.T) {
	want := reference(NewWorkshop(&command.System{Env: &app.Env{}}))
	if *update {
		if err := os.MkdirAll("../../docs", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(docsFile, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(docsFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("docs/cli.md is not what --help says: run `go test ./internal/cli -update`")
	}
	for _, key := range app.SettingKeys {
		if _, ok := app.NotInEnvironment[key]; ok {
			if !strings.Contains(docsHead, "| "+key+" | | ") {
				t.Errorf("the table of settings lacks %s, or gives it a variable", key)
			}
			continue
		}
		if !strings.Contains(docsHead, "| WORKSHOP_"+strings.ToUpper(key)+" |") && !strings.Contains(docsHead, "| WORKSHOP_"+strings.ToUpper(key)+", ") {
			t.Errorf("the table of settings lacks %s", key)
		}
	}
}

// Help that isn't wrapped, as in docs/cli.md, can be read: its lines have the usual width.
func TestHelpLines(t *testing.T) {
	const most = 88
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		for line := range strings.Lines(c.Long) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > most {
				t.Errorf("%s: a line of %d columns, want at most %d: %s", c.CommandPath(), n, most, line)
			}
		}
		for _, below := range c.Commands() {
			visit(below)
		}
	}
	visit(NewWorkshop(&command.System{Env: &app.Env{}}))
}

// A flag's default is shown once.
func TestFlagDefaults(t *testing.T) {
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		for text := range strings.SplitSeq(c.LocalFlags().FlagUsages(), "\n") {
			if strings.Count(text, "(default") > 1 {
				t.Errorf("%s: %s", c.CommandPath(), text)
			}
		}
		for _, below := range c.Commands() {
			visit(below)
		}
	}
	visit(NewWorkshop(&command.System{Env: &app.Env{}}))
}

func reference(root *cobra.Command) []byte {
	var b bytes.Buffer
	b.WriteString(docsHead)
	root.InitDefaultCompletionCmd() // as running a command does
	var global map[string]bool
	help := func(c *cobra.Command) {
		var text bytes.Buffer
		c.SetOut(&text)
		c.Help()
		own, flags, _ := strings.Cut(text.String(), "\nGlobal flags:\n")
		all, rest := flagEntries(flags)
		if c == root {
			global = make(map[string]bool)
			for _, f := range all {
				global[strings.Join(strings.Fields(f), " ")] = true
			}
		} else {
			all = slices.DeleteFunc(all, func(f string) bool { return global[strings.Join(strings.Fields(f), " ")] })
		}
		if len(all) > 0 {
			own += "\nGlobal flags:\n" + strings.Join(all, "")
		}
		b.WriteString("```text\n" + own + rest + "```\n")
	}
	help(root)
	for _, c := range root.Commands() {
		if !c.IsAvailableCommand() || c.Name() == "help" {
			continue
		}
		b.WriteString("\n## " + c.CommandPath() + "\n\n" + c.Short + ".\n\n")
		help(c)
		if c.GroupID == "" || !c.HasAvailableSubCommands() || c.Name() == "completion" {
			continue
		}
		for _, below := range c.Commands() {
			b.WriteString("\n### " + below.CommandPath() + "\n\n" + below.Short + ".\n\n")
			help(below)
		}
	}
	return []byte(strings.ReplaceAll(b.String(), " \n", "\n"))
}

// flagEntries returns the flags at the beginning of a text, each with the lines that
// continue it, and what follows them.
func flagEntries(text string) (flags []string, rest string) {
	for line := range strings.Lines(text) {
		switch {
		case rest == "" && strings.HasPrefix(strings.TrimLeft(line, " "), "-"):
			flags = append(flags, line)
		case rest == "" && strings.HasPrefix(line, "    ") && len(flags) > 0:
			flags[len(flags)-1] += line
		default:
			rest += line
		}
	}
	return flags, rest
}

const docsHead = `# The command line

` + "`workshop X` and `llmdo workshop X`" + ` are the same commands. This page is made from
their --help, and a test keeps it so. The flags that every command has are listed
[once](#the-commands).

## Exit codes

| code | means |
|---|---|
| 0 | done |
| 1 | failed |
| 2 | wrong usage, or wrong settings |
| 3 | the workshop is invalid |
| 4 | refused: by policy, or because the engine can't keep a promise |
| 5 | the engine failed, or doesn't answer |
| 130 | interrupted |

` + "`exec` and `shell`" + ` pass on the command's own code. Theirs are 125 (the command was
not started), 126 (it can't be executed), 127 (it is not there) and 130. So does
` + "`call WORKER shell`" + `, whose own codes are those of the table.

## Settings

A flag wins over the environment, the environment over
` + "`~/.config/workshop/config.yaml`" + ` (or ` + "`$XDG_CONFIG_HOME/workshop/config.yaml`" + `).

| config.yaml | environment | flag |
|---|---|---|
| | WORKSHOP_FILE | --file |
| | WORKSHOP_PROJECT_NAME | --project-name |
| | WORKSHOP_ENV_FILE | --env-file |
| engine | WORKSHOP_ENGINE | --engine |
| format | WORKSHOP_FORMAT | --format |
| quiet | WORKSHOP_QUIET | --quiet |
| verbose | WORKSHOP_VERBOSE | --verbose |
| no_color | WORKSHOP_NO_COLOR, NO_COLOR | --no-color |
| runtimes | | |
| secrets_on_disk | WORKSHOP_SECRETS_ON_DISK | --secrets-on-disk |
| without_limits | | --without-limits |
| wait_timeout | WORKSHOP_WAIT_TIMEOUT | --wait-timeout |
| approvals_max | WORKSHOP_APPROVALS_MAX | |
| approvals_command | WORKSHOP_APPROVALS_COMMAND | |
| approvals_socket | WORKSHOP_APPROVALS_SOCKET | |

The engine is found as the docker command finds it: DOCKER_HOST, DOCKER_CONTEXT,
the current context, the default socket.

Completion in bash needs its package bash-completion (version 2), and then
` + "`source <(workshop completion bash)`" + `. For other shells, ` + "`workshop completion SHELL --help`" + `
says how.

## The commands

`
