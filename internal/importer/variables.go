package importer

import (
	"path"
	"regexp"
	"strings"
	"sync"

	"github.com/llmdo/workshop/diag"
)

// devVariable is a variable of a devcontainer.json (its reference, "Variables").
var devVariable = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$\{([a-zA-Z]+)(?::([^}:]*)(?::([^}]*))?)?\}`) })

// home is how the user's home directory is written on every system.
const home = "${localEnv:HOME}${localEnv:USERPROFILE}"

// devValue translates the variables of a devcontainer.json into ours. Not ok: it has
// one without a counterpart.
func (i *importing) devValue(s string) (string, bool) {
	ok := true
	var b strings.Builder
	for {
		m := devVariable().FindStringSubmatchIndex(s)
		if m == nil {
			break
		}
		part := func(k int) string {
			if m[2*k] < 0 {
				return ""
			}
			return s[m[2*k]:m[2*k+1]]
		}
		b.WriteString(diag.Literal(s[:m[0]]))
		switch name := part(1); {
		case (name == "localEnv" || name == "env") && isVariable(part(2)):
			b.WriteString("${" + part(2))
			if m[6] >= 0 {
				b.WriteString(":-" + diag.Literal(part(3)))
			}
			b.WriteString("}")
		case name == "localWorkspaceFolderBasename":
			b.WriteString(diag.Literal(i.Base))
		case name == "containerWorkspaceFolder":
			b.WriteString(diag.Literal(i.workdir))
		case name == "containerWorkspaceFolderBasename":
			b.WriteString(diag.Literal(path.Base(i.workdir)))
		default:
			ok = false
		}
		s = s[m[1]:]
	}
	b.WriteString(diag.Literal(s))
	return b.String(), ok
}

// devPath translates a path of the host.
func (i *importing) devPath(s string) string {
	for _, prefix := range []string{home, "${localEnv:HOME}", "${env:HOME}"} {
		if rest, ok := strings.CutPrefix(s, prefix); ok {
			return "~" + rest
		}
	}
	if rest, ok := strings.CutPrefix(s, "${localWorkspaceFolder}"); ok {
		return i.Project + rest
	}
	return strings.ReplaceAll(strings.ReplaceAll(s, "${localWorkspaceFolderBasename}", i.Base), "${containerWorkspaceFolder}", i.workdir)
}

// composeVariable is a variable of a Compose file, or a $ that is meant as it is.
var composeVariable = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\$(?:(\$)|([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)(?:(:?[-?+])([^}]*))?\}|)`)
})

// composeValue translates the variables of a Compose file into ours. Not ok: it has a
// form without a counterpart.
func composeValue(s string) (string, bool) {
	ok := true
	out := composeVariable().ReplaceAllStringFunc(s, func(all string) string {
		m := composeVariable().FindStringSubmatch(all)
		switch {
		case m[1] != "":
			return diag.Literal("$")
		case m[2] != "":
			return "${" + m[2] + "}"
		case m[3] == "" || strings.HasSuffix(m[4], "+") || strings.Contains(m[5], "$"):
			ok = false
			return all
		case m[4] == "":
			return "${" + m[3] + "}"
		}
		return "${" + m[3] + ":" + m[4][len(m[4])-1:] + m[5] + "}"
	})
	return out, ok
}

// serverVariable is a variable of an .mcp.json; VS Code's have a kind before the name.
var serverVariable = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}$`)
})

// hasServerVariable reports whether a text of an .mcp.json has a variable.
func hasServerVariable(s string) bool { return strings.Contains(s, "${") }
