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
	root := NewWorkshop(&command.System{Env: &app.Env{Dir: dir, Lookup: nothing}})
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
				for _, o := range offered {
					values[f.Name] = append(values[f.Name], o)
				}
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
		"engine": {"auto", "docker", "namespace", "process"}, "isolation": {"process"}, "worker": {"one"},
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
