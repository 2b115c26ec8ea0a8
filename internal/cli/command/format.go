package command

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// formatsKey is the annotation with the output forms of a command.
const formatsKey = "formats"

// Formats are the annotations of a command that offers output forms, the default
// first.
func Formats(names ...string) map[string]string {
	return map[string]string{formatsKey: strings.Join(names, " ")}
}

// formats are the output forms that a command offers.
func formats(cmd *cobra.Command) []string { return strings.Fields(cmd.Annotations[formatsKey]) }

// Format returns the output form of a command that has [Formats]: --format if it
// was given (an unknown one is an error), else the user's default if the command
// has it, else the first.
func (a *Program) Format(cmd *cobra.Command) (string, error) {
	return a.FormatOr(cmd, formats(cmd)[0])
}

// FormatOr is [Program.Format] with another last resort.
func (a *Program) FormatOr(cmd *cobra.Command, otherwise string) (string, error) {
	offered := formats(cmd)
	if slices.Contains(offered, a.set.format) {
		return a.set.format, nil
	}
	if a.set.formatGiven {
		return "", UsageError(cmd, "--format %q: %s offers %s", a.set.format, verbName(cmd), strings.Join(offered, ", "))
	}
	return otherwise, nil
}

// verbName is a command's words after "workshop": "ps", "firewall show".
func verbName(cmd *cobra.Command) string {
	_, name, _ := strings.Cut(cmd.CommandPath(), "workshop ")
	return name
}
