package cli

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/command"
)

const docsFile = "../../docs/cli.md"

// TestDocs keeps the commands of docs/cli.md those of the program.
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
		t.Error("docs/cli.md doesn't have the commands of the program: run `go test ./internal/cli -update`")
	}
	for _, key := range app.SettingKeys {
		if _, ok := app.NotInEnvironment[key]; ok {
			alone := "| | | --" + strings.ReplaceAll(key, "_", "-") + " |" // nothing but the flag
			if !strings.Contains(docsTail, "| "+key+" | | ") && !strings.Contains(docsTail, alone) {
				t.Errorf("the table of settings lacks %s, or gives it a variable", key)
			}
			continue
		}
		if !strings.Contains(docsTail, "| WORKSHOP_"+strings.ToUpper(key)+" |") && !strings.Contains(docsTail, "| WORKSHOP_"+strings.ToUpper(key)+", ") && !strings.Contains(docsTail, "| WORKSHOP_"+strings.ToUpper(key)+" (") {
			t.Errorf("the table of settings lacks %s", key)
		}
	}
}

// Help that isn't wrapped, as in a pipe, can be read: its lines have the usual width.
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
	visit(NewLLMDo(&command.System{Env: &app.Env{}}))
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
	visit(NewLLMDo(&command.System{Env: &app.Env{}}))
}

// reference is the text of docs/cli.md: what is written by hand, with the list of the
// commands in it.
func reference(root *cobra.Command) []byte {
	var list strings.Builder
	root.InitDefaultCompletionCmd() // as running a command does
	for _, g := range root.Groups() {
		list.WriteString(g.Title + "\n\n")
		for _, c := range root.Commands() {
			if c.GroupID == g.ID {
				commands(&list, "", c)
			}
		}
		list.WriteString("\n")
	}
	return []byte(docsHead + strings.TrimSuffix(list.String(), "\n") + docsTail)
}

// commands writes a line for a command, and for those below it.
func commands(b *strings.Builder, before string, c *cobra.Command) {
	if !c.IsAvailableCommand() {
		return
	}
	fmt.Fprintf(b, "- `%s%s`: %s\n", before, c.Name(), c.Short)
	if c.Name() == "completion" {
		return
	}
	for _, below := range c.Commands() {
		commands(b, before+c.Name()+" ", below)
	}
}

const docsHead = `# The command line

` + "`" + `workshop X` + "`" + ` and ` + "`" + `llmdo workshop X` + "`" + ` are the same commands. ` + "`" + `workshop help X` + "`" + ` has the flags
and examples of each.

## The commands

`

const docsTail = `
## What may surprise

- ` + "`" + `up` + "`" + ` returns once workers are ready, and leaves alone what already runs as it should.
  One that fails or is interrupted takes back what it made; running workers go on. After
  one that was killed, the next ` + "`" + `up` + "`" + ` or ` + "`" + `down` + "`" + ` repairs what it left.
- ` + "`" + `restart` + "`" + ` applies no change of the workshop file; ` + "`" + `up` + "`" + ` does.
- ` + "`" + `config` + "`" + ` prints the values of variables, tokens too. Don't commit or publish private ones.
- Commands of ` + "`" + `exec` + "`" + ` end with the program that started them, even if it is killed. What
  they left in the background stays, except in process mode. ` + "`" + `resources.timeout` + "`" + ` ends tool
  calls only.
- ` + "`" + `run` + "`" + ` with a file publishes no ports of it, and with ` + "`" + `--rw` + "`" + ` writes to your files, as a worker would.
  After ` + "`" + `kill -9` + "`" + ` the command ends with it. In namespaces everything else does, too; on Docker the
  containers stay, idle, until the next ` + "`" + `run` + "`" + `.
- ` + "`" + `cp` + "`" + ` has the permissions of the worker's user. What leads out of the target, devices and
  set-uid bits are skipped and reported. A path here that a symbolic link leads out of what
  workers may write is refused: name its real path. More than 10 GiB, 100,000 entries or 128
  levels out of a worker need ` + "`" + `--unlimited` + "`" + `.
- ` + "`" + `call` + "`" + ` takes one JSON object (` + "`" + `-` + "`" + `: standard input, ` + "`" + `@FILE` + "`" + `) or ` + "`" + `KEY=VALUE` + "`" + `; ` + "`" + `KEY.NAME=VALUE` + "`" + ` sets a
  part.
- In ` + "`" + `logs` + "`" + ` and ` + "`" + `firewall log` + "`" + `, ` + "`" + `-f` + "`" + ` is ` + "`" + `--follow` + "`" + `; the workshop file is ` + "`" + `--file` + "`" + `, or ` + "`" + `-f` + "`" + ` before
  the command.
- ` + "`" + `firewall allow` + "`" + ` lasts until the guard ends, unless with ` + "`" + `--save` + "`" + `. ` + "`" + `firewall explain` + "`" + ` exits with
  1 where guard or worker see something other than the file says, ` + "`" + `--check` + "`" + ` with 4 if refused.
- ` + "`" + `firewall export` + "`" + ` prints rules, and changes nothing: [egress proxies](egress-proxy.md),
  [host firewall](host-firewall.md).
- ` + "`" + `firewall suggest` + "`" + ` lists what untrusted code asked for: read it line by line.
- ` + "`" + `down` + "`" + ` keeps [shared caches](running.md#what-stays-after-down), and names and leaves
  objects that only have the project's name.
- ` + "`" + `ps` + "`" + `, ` + "`" + `up` + "`" + ` and ` + "`" + `down` + "`" + ` name [watched files](mounts.md#what-is-compared-b8) that changed;
  with ` + "`" + `--strict` + "`" + ` they exit with 4 then, or if not all could be checked.

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

` + "`" + `exec` + "`" + `, ` + "`" + `shell` + "`" + ` and ` + "`" + `run` + "`" + ` pass on the command's own code. Theirs are 125 (not started), 126 (not
executable), 127 (not found) and 130, and 124 after ` + "`" + `run --timeout` + "`" + `. ` + "`" + `call WORKER shell` + "`" + ` passes the command's code on too; its
own are those of the table.

## Settings

A flag wins over the environment, the environment over
` + "`" + `~/.config/workshop/config.yaml` + "`" + ` (or ` + "`" + `$XDG_CONFIG_HOME/workshop/config.yaml` + "`" + `).

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
| kernels | | |
| podman | | |
| runtimes | | |
| vm_kit | | |
| secrets_on_disk | WORKSHOP_SECRETS_ON_DISK | --secrets-on-disk |
| without_limits | | --without-limits |
| | | --credentials |
| | | --accept-credentials |
| frozen | WORKSHOP_FROZEN (only true) | --frozen |
| wait_timeout | WORKSHOP_WAIT_TIMEOUT | --wait-timeout |
| approvals_max | WORKSHOP_APPROVALS_MAX | |
| approvals_command | WORKSHOP_APPROVALS_COMMAND | |
| approvals_socket | WORKSHOP_APPROVALS_SOCKET | |
| boundary | | |
| signers | | |
| sources | | |

` + "`" + `boundary` + "`" + ` (a workshop file: nothing runs that is granted more), ` + "`" + `signers` + "`" + ` (a file of keys that sign sources) and
` + "`" + `sources: {allow: [HOST/PATH]}` + "`" + ` bind what comes from [other repositories](sharing.md#files-of-other-repositories). Files are
absolute, or next to the settings. The machine's settings, ` + "`" + `/etc/workshop/config.yaml` + "`" + `, may have these three; yours
only narrow them.

The engine is found as the docker command finds it: DOCKER_HOST, DOCKER_CONTEXT,
the current context, the default socket.

Completion: ` + "`" + `workshop completion SHELL --help` + "`" + `. Bash needs its package bash-completion
(version 2), then ` + "`" + `source <(workshop completion bash)` + "`" + `.
`
