package facts

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/workshop"
)

// Absent warns of sources of a project's mounts that don't exist on this machine.
// They are not errors before a run: a clean checkout lacks what a build makes. A
// missing directory of the project that a worker may write is left out, since `up`
// creates it, and so is one of which a diagnostic of the mount has the remedy already.
func Absent(mounts []workshop.Mount, dir string, have diag.List) diag.List {
	var out diag.List
	seen := map[string]bool{}
	for i := range mounts {
		m := &mounts[i]
		source := m.Source.V
		if seen[source] || m.ReadWrite && !m.OutsideProject {
			continue
		}
		seen[source] = true
		at := source
		if !filepath.IsAbs(at) {
			at = filepath.Join(dir, at)
		}
		create := m.CreateHint(at)
		if slices.ContainsFunc(have, func(x diag.Diagnostic) bool { return x.Range == m.At.Range && strings.HasPrefix(x.Hint, create) }) {
			continue
		}
		if _, err := os.Stat(at); errors.Is(err, fs.ErrNotExist) {
			out = append(out, diag.Diagnostic{
				Severity: diag.Warning, Code: "mount-source-missing", Range: m.At.Range,
				Summary: fmt.Sprintf("the mount source %s does not exist on this machine", source),
				Detail:  "`up` refuses it here; a warning, since another machine may have it.",
				Hint:    create + ", or correct the path",
			})
		}
	}
	return out
}
