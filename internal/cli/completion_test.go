package cli

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/command"
)

// TestEveryFlagCompletes: a flag with a value offers some, or files, or is marked
// as free text.
func TestEveryFlagCompletes(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("workshop.yaml", "workshop:\n  name: demo\n  container: {image: host}\n  workers: [one]\n")
	write("workers/one.md", "---\nname: one\ndescription: Reads\nallowed-tools: Read\n---\nRead.\n")
	nothing := func(string) (string, bool) { return "", false }
	root := NewLLMDo(&command.System{Env: &app.Env{Dir: dir, Lookup: nothing}})
	flags, values := 0, map[string][]string{}
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		c.SetContext(t.Context())
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.NoOptDefVal != "" { // a switch
				return
			}
			flags++
			name := c.CommandPath() + " --" + f.Name
			complete, ok := c.GetFlagCompletionFunc(f.Name)
			switch {
			case command.IsFreeText(f):
			case completesFiles(f):
			case !ok:
				t.Errorf("%s: nothing completes it; see Program.CompleteFlags", name)
			default:
				offered, _ := complete(c, nil, "")
				values[f.Name] = append(values[f.Name], offered...)
				if len(offered) == 0 && (f.Name != "format" || c.Annotations["formats"] != "") {
					t.Errorf("%s completes to nothing", name)
				}
			}
		})
		if c.ValidArgsFunction == nil && takesNames(c) {
			t.Errorf("%s: its arguments complete to nothing", c.CommandPath())
		}
		for _, below := range c.Commands() {
			walk(below)
		}
	}
	walk(root)
	if flags < 100 {
		t.Errorf("only %d flags were seen", flags)
	}
	for flag, want := range map[string][]string{
		"engine": {"auto", "docker", "podman", "namespace", "process"}, "isolation": {"process"}, "worker": {"one"},
		"format": {"text", "json", "sarif", "github", "table", "yaml", "iptables"}, "print-config": {"claude"},
	} {
		for _, v := range want {
			if !slices.Contains(values[flag], v) {
				t.Errorf("--%s doesn't complete to %s: %v", flag, v, values[flag])
			}
		}
	}
}

func completesFiles(f *pflag.Flag) bool {
	_, file := f.Annotations[cobra.BashCompFilenameExt]
	_, dir := f.Annotations[cobra.BashCompSubdirsInDir]
	return file || dir
}

// takesNames reports whether a command has arguments that aren't files.
func takesNames(c *cobra.Command) bool {
	return !c.HasSubCommands() && c.Runnable() && c.Args != nil && !slices.Contains([]string{"init", "validate", "help"}, c.Name()) &&
		c.Args(c, []string{"x"}) == nil
}

// TestCopyCompletes: both forms of a side are offered, or the shell's own files.
func TestCopyCompletes(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"workshop.yaml":  "workshop:\n  name: demo\n  container: {image: host}\n  workers: [one, other]\n",
		"workers/one.md": "---\nname: one\ndescription: Reads\nallowed-tools: Read\n---\nRead.\n", "workers/other.md": "---\nname: other\ndescription: Reads\nallowed-tools: Read\n---\nRead.\n",
		"onions.txt": "", ".hidden": "",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cp, _, err := NewWorkshop(&command.System{Env: &app.Env{Dir: dir, Lookup: func(string) (string, bool) { return "", false }}}).Find([]string{"cp"})
	if err != nil {
		t.Fatal(err)
	}
	cp.SetContext(t.Context())
	const files, joined, none = cobra.ShellCompDirectiveDefault, cobra.ShellCompDirectiveNoSpace, cobra.ShellCompDirectiveNoFileComp
	for _, c := range []struct {
		name      string
		args      []string
		prefix    string
		want      []string
		directive cobra.ShellCompDirective
	}{
		{"nothing yet", nil, "", []string{"one:", "other:", "onions.txt", "workers/", "workshop.yaml"}, joined},
		{"both begin so", nil, "on", []string{"one:", "onions.txt"}, joined},
		{"a file alone begins so", nil, "./wo", nil, files},
		{"in a directory", nil, "workers/", nil, files},
		{"to a worker", []string{"onions.txt"}, "o", []string{"one:", "other:"}, joined},
		{"from a worker", []string{"one:/x"}, "", nil, files},
		{"all is there", []string{"one:/x", "."}, "", nil, none},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, directive := cp.ValidArgsFunction(cp, c.args, c.prefix)
			if !slices.Equal(got, c.want) || directive != c.directive {
				t.Errorf("%q, directive %d; want %q, %d", got, directive, c.want, c.directive)
			}
		})
	}
}
